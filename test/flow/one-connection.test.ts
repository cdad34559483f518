/** Nothing asks its pool for a second connection while it holds one: users who all do so wait for each other. */
import { mkdtemp, readdir, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, expect, onTestFinished, test } from "vitest";
import { ANOMALY_BOUNDS } from "../../src/core/anomaly.ts";
import { GRACE_MS, TOLERANCE_MS } from "../../src/core/match.ts";
import { TYP } from "../../src/core/report.ts";
import { instantText } from "../../src/core/unit.ts";
import { digestDays } from "../../src/flow/access/digest.ts";
import { countSource } from "../../src/flow/control/count-source.ts";
import { preview } from "../../src/flow/credit/preview.ts";
import { showRuns } from "../../src/flow/credit/show.ts";
import { uploadNamespaces } from "../../src/flow/credit/upload.ts";
import { ask } from "../../src/flow/export/ask.ts";
import { deliverDue } from "../../src/flow/export/deliver.ts";
import { expireDue } from "../../src/flow/export/expire.ts";
import { makeLoop } from "../../src/flow/export/make-loop.ts";
import { showExport } from "../../src/flow/export/read.ts";
import { askDue, Rule } from "../../src/flow/export/schedule.ts";
import { SOURCES } from "../../src/flow/export/sources.ts";
import { resolveHold } from "../../src/flow/hold/resolve.ts";
import { finish } from "../../src/flow/month/finish.ts";
import { showMonth, showMonths } from "../../src/flow/month/show.ts";
import { assignBreak } from "../../src/flow/reconcile/assign.ts";
import { completeness } from "../../src/flow/reconcile/completeness.ts";
import { cover } from "../../src/flow/reconcile/cover.ts";
import { matchDue } from "../../src/flow/reconcile/match.ts";
import { notice } from "../../src/flow/reconcile/notice.ts";
import { enlistRunners } from "../../src/flow/reconcile/pull.ts";
import { take } from "../../src/flow/reconcile/take.ts";
import { watch } from "../../src/flow/reconcile/watch.ts";
import { watchKeys } from "../../src/flow/reconcile/watch-keys.ts";
import { attest } from "../../src/flow/report/attest.ts";
import { connect, type Sql } from "../../src/store/connect.ts";
import { folderExports } from "../../src/store/export-files-folder.ts";
import { startWatching } from "../../src/store/reconcile-marks.ts";
import {
  closeHouse,
  type House,
  newAgent,
  newLog,
  openDoor,
  openHouse,
  reported,
  sha256,
  sign,
} from "./door.ts";
import { type MonthDesk, openDesk } from "./month/desk.ts";
import { startStandIn, walkAll } from "./reconcile/gitlab.ts";

const OCTOBER = "2026-10-01";
const [HOUR, DAY] = [3_600_000, 86_400_000];
const LOOKBACK = { lookbackMs: DAY, monthLookbackMs: 90 * DAY };
const NOON = Date.parse("2026-11-20T12:00:00.000Z");

let house: House;
let desk: MonthDesk;
let sql: Sql;
beforeAll(async () => {
  house = await openHouse();
  sql = connect(house.database.urls.writer, { max: 1 });
  desk = await openDesk(house, "one connection", { since: "2026-10-20T12:00:00.000Z" });
  await desk.account("");
  await desk.build({
    ...{ job: "1", namespace: "7", minutes: 20, finished: "2026-10-20T10:00:00.000Z" },
  });
});
afterAll(async () => {
  await sql.end();
  await closeHouse(house);
});

test("a credit run is looked for and kept on one connection, also of a list of namespaces", async () => {
  const { clock, random } = desk.finishing;
  const previewing = { sql, clock, random };
  expect(await preview(previewing, desk.log, { form: "zero_rate" })).toMatchObject({ lines: 1n });
  const { namespaces_sha256 } = await uploadNamespaces({ sql }, desk.log, { namespaces: "7\n9" });
  const asked = { form: "goodwill_pack", minutes: "5", namespaces_sha256 } as const;
  expect(await preview(previewing, desk.log, asked)).toMatchObject({ lines: 2n });
  expect((await showRuns({ sql }, { log: desk.log })).credit_runs).toEqual([]);
});

test("a month is shown, counted, closed and stated on one connection", async () => {
  desk.at("2026-11-05T00:00:00.000Z");
  await desk.attest();
  await desk.cover("2026-10-01T00:00:00.000Z", "2026-11-01T00:00:00.000Z");
  const showing = { ...desk.finishing, sql };
  const shown = async () => (await showMonth(showing, { log: desk.log, month: OCTOBER })).state;
  expect(await shown()).toBe("open");
  expect(await desk.close(OCTOBER)).toMatchObject(["done"]);
  await desk.settle();
  expect(await finish(showing, desk.log)).toMatchObject({ month: OCTOBER, missing: [] });
  expect(await shown()).toBe("closed");
  await desk.settle();
  await finish(showing, desk.log);
  expect(await desk.statement(OCTOBER)).toContain(`"month":"${OCTOBER}"`);
  expect((await showMonths({ sql }, desk.log)).months).toHaveLength(1);
  await completeness({ sql, ...LOOKBACK }, desk.log, "2026-10-20");
});

test("exports are asked for, made, delivered and removed on one connection, with one more by which each is held", async () => {
  await desk.settle();
  const folder = await mkdtemp(join(tmpdir(), "minutebook-one-"));
  onTestFinished(() => rm(folder, { recursive: true }));
  const holds = connect(house.database.urls.writer, { max: 1 });
  onTestFinished(() => holds.end());
  const { archive, clock, random } = desk.finishing;
  const door = openDoor(sql, { archive: house.archive });
  house.doors.push(door);
  const abort = new AbortController();
  const failures: unknown[] = [];
  const onFailure = (error: unknown): void => void failures.push(error);
  const files = folderExports(join(folder, "kept"));
  const working = {
    ...{
      archive,
      sql,
      holds,
      files,
      sources: SOURCES,
      clock,
      random,
      keyring: door.keyring,
      generator: "test 1",
    },
    ...{ signal: abort.signal, onFailure },
  };
  const asked = { name: "entries", format: "csv" } as const;
  const rule = Rule.parse({ ...asked, every: "day", logs: [desk.log], to: join(folder, "copies") });
  await askDue({ ...working, rules: [rule], closingSet: [] });
  const of = await ask(working, { log: desk.log, by: "p_test" }, { ...asked, names: true });
  // Rounds of both at once, as a process has them.
  const delivered = deliverDue({ ...working, open: async (to) => folderExports(to) });
  await makeLoop({ ...working, signal: abort.signal, onRound: () => abort.abort() });
  await delivered;
  const { signal } = new AbortController();
  await deliverDue({ ...working, signal, open: async (to) => folderExports(to) });
  expect(await readdir(join(folder, "copies", desk.log))).toHaveLength(3);
  expect((await showExport(working, of)).state).toBe("done");
  await expireDue({ ...working, signal, keptMs: -1 });
  await expect(showExport(working, of)).rejects.toMatchObject({ code: "not-found" });
  expect(failures).toEqual([]);
});

/** A process of the service that has no other connection. */
async function apart(unique_id: string) {
  const door = openDoor(sql, { archive: house.archive, seed: unique_id });
  house.doors.push(door);
  const log = await newLog(door, unique_id);
  const effective_from = instantText(door.now - 9 * DAY);
  await newAgent(door, log, 60, [{ uuid: "alone", effective_from }]);
  const { appender, random } = door;
  const clock = { now: () => door.now };
  const bounds = { tolerance_ms: TOLERANCE_MS, grace_ms: GRACE_MS };
  const looking = { anomalies: ANOMALY_BOUNDS, bounds, graceMs: GRACE_MS, hash: sha256 };
  return { door, log, flow: { sql, appender, random, clock, ...looking } };
}

/** Ended at noon, after so long. */
function ran(log: string, job: string, ms: number, finished = NOON): string {
  const usage = {
    duration_ms: String(ms),
    finished_at: instantText(finished),
    started_at: instantText(finished - ms),
  };
  return reported(60, log, { counter: job, uuid: "alone", job: { id: job }, usage });
}

test("what is strange in a log, and what it owes, is found and told of on one connection", async () => {
  const { door, flow, log } = await apart("strange");
  await startWatching(sql);
  await door.submit(ran(log, "1", 25 * HOUR), ran(log, "3", HOUR));
  const said = { counter: "3", files: [], malformed: "0", rejected: "0", spool: "0" };
  const attested = { ...said, clock_offset_ms: "90000", issued_at: instantText(door.now), log };
  await attest(door, sign(60, TYP.attestation, attested));
  expect((await watch(flow, log)).opened).toBe(2);
  expect((await watch(flow, log)).entries).toBeGreaterThan(0n);
  await watchKeys(flow, log);
  door.now += 2 * DAY;
  expect((await watchKeys(flow, log)).opened).toBe(2);
  await door.submit(ran(log, "2", HOUR));
  expect((await watchKeys(flow, log)).healed).toBe(1);
  const day = instantText(door.now - DAY).slice(0, 10);
  const count = { day, kind: "quota", source: "gitlab", stated: "1" } as const;
  expect(await countSource(flow, { log, by: "p_test" }, count)).toMatchObject({ counted: "0" });
});

test("what a platform says is uploaded, pulled, matched and resolved on one connection", async () => {
  const { door, flow, log } = await apart("pulled");
  const standIn = await startStandIn();
  const { url, token } = standIn;
  const pulling = {
    ...{ ...flow, gitlabs: [{ log, url, token }], intervalMs: HOUR, ...LOOKBACK },
    signal: new AbortController().signal,
  };
  const ended = door.now - 30 * HOUR;
  const times = { started_at: instantText(ended - HOUR), finished_at: instantText(ended) };
  standIn.jobs = [
    {
      id: 7,
      runner: 700,
      project: 50,
      status: "success",
      duration: "3600",
      created_at: times.started_at,
      ...times,
    },
  ];
  await enlistRunners(pulling);
  await walkAll(pulling, log);
  await standIn.close();
  const seen = { job_id: "8", runner_id: "700", status: "success", duration_ms: 5n, ...times };
  await take(flow, log, [seen], "upload");
  await notice(flow, log);
  expect((await matchDue(flow, log)).opened).toBe(2);
  const place = { log, runner: "700", to: instantText(door.now), by: "p_test" };
  const covered = await cover(flow, { ...place, source: "upload" });
  await assignBreak(door, { log, index: (covered ?? 0n) - 1n, by: "p_test" }, {});
});

test("a hold is ended, and a day of the access log digested, on one connection", async () => {
  const { door, flow, log } = await apart("held");
  const { results } = await door.submit(reported(60, log, { uuid: "nobody" }));
  const [held] = results;
  const resolving = { ...door, closeDelayDays: 3n, issuers: [] };
  const end = {
    hold: held?.index ?? "",
    outcome: "rejected" as const,
    reason: "looked_at",
    ticket: "T-1",
  };
  await resolveHold(resolving, { log, by: "p_test" }, end);
  const failures: unknown[] = [];
  await digestDays(flow, (error) => failures.push(error));
  expect(failures).toEqual([]);
});
