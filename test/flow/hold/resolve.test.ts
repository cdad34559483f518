/** Held reports and conflicts end once, and what is let in is usage like any other. */
import { afterAll, beforeAll, expect, test } from "vitest";
import { exitOf } from "../../../audit/print.ts";
import { type Body, encodeEntry } from "../../../src/core/entry.ts";
import { leafHash } from "../../../src/core/hash.ts";
import { Problem } from "../../../src/core/problem.ts";
import { check } from "../../../src/flow/check/check.ts";
import { letIn } from "../../../src/flow/hold/open.ts";
import { resolveConflict, resolveHold } from "../../../src/flow/hold/resolve.ts";
import { revoke } from "../../../src/flow/key/revoke.ts";
import { openGuard } from "../../../src/flow/log/guard.ts";
import { seal } from "../../../src/flow/log/seal.ts";
import { refresh } from "../../../src/flow/usage/fold.ts";
import { rebuild } from "../../../src/flow/usage/rebuild.ts";
import { decodedAs } from "../../../src/flow/usage/show.ts";
import { folderArchive } from "../../../src/store/archive-folder.ts";
import { readEntry } from "../../../src/store/entries.ts";
import { auditFiles, filesOf, vkey } from "../../audit/archive.ts";
import { TestLog } from "../../audit/log.ts";
import { CARD, kidOf } from "../../core/history.ts";
import { freshDatabase } from "../../postgres.ts";
import {
  closeHouse,
  codes,
  type Door,
  entriesOf,
  type House,
  newAgent,
  newLog,
  ofKind,
  openHouse,
  reported,
  sha256,
  signerFor,
} from "../door.ts";
import { restore, tablesOf } from "../restored.ts";

let house: House;
/** Two processes of the service on one database. */
let doors: readonly [Door, Door];
let door: Door;

beforeAll(async () => {
  house = await openHouse();
  doors = [house.open(), house.open()];
  [door] = doors;
});
afterAll(() => closeHouse(house));

const WHY = { reason: "looked_at", ticket: "OPS-1" };

/** The new entry's index, or the code that it is refused with. */
async function told(attempt: Promise<{ index: bigint }>): Promise<string> {
  return await attempt.then(
    ({ index }) => String(index),
    (error: unknown) => {
      if (!(error instanceof Problem)) throw error;
      return [error.code, ...Object.values(error.extension)].join(" ");
    },
  );
}

function endHold(
  log: string,
  hold: string | undefined,
  outcome: "released" | "rejected",
  by: Door = door,
): Promise<string> {
  const resolving = { ...by, closeDelayDays: 3n, issuers: [] };
  return told(resolveHold(resolving, { log, by: "p_f" }, { ...WHY, hold: hold ?? "", outcome }));
}

function endConflict(
  log: string,
  conflict: string | undefined,
  outcome: "stands" | "corrected",
): Promise<string> {
  const end = { ...WHY, conflict: conflict ?? "", outcome };
  return told(
    resolveConflict({ ...door, closeDelayDays: 3n, issuers: [] }, { log, by: "p_f" }, end),
  );
}

async function submitted(...texts: string[]): Promise<{ codes: string[]; indices: string[] }> {
  const answered = await door.submit(...texts);
  return { codes: codes(answered), indices: answered.results.map(({ index }) => index ?? "") };
}

const CODES = ["key-ended", "outside-enrolment", "future", "over-cap", "no-rate"];
const LONG = "2678400001";

/** A report for each reason to hold one; all but the second can be rated once there is a card. */
async function heldOf(log: string): Promise<{ texts: string[]; indices: string[] }> {
  await newAgent(door, log, 1);
  await newAgent(door, log, 2, [{ runner_type: "group", uuid: "bound" }], ["8"]);
  await newAgent(door, log, 3, [{ effective_from: "2026-12-01T00:00:00.000Z" }]);
  const texts = [
    reported(3, log, { counter: "6", job: { id: "11" } }),
    reported(2, log, { uuid: "bound", job: { id: "12" } }),
    reported(1, log, {
      counter: "1",
      job: { id: "13" },
      usage: { finished_at: "2026-11-20T12:05:00.001Z" },
    }),
    reported(1, log, { counter: "2", job: { id: "14" }, usage: { duration_ms: LONG } }),
    reported(1, log, { counter: "3", job: { id: "15" } }),
  ];
  const end = { last_trusted_counter: "5", reason: "stolen" };
  await revoke(door, { log, kid: kidOf(3), by: "p_o" }, end);
  const { codes, indices } = await submitted(...texts);
  expect(codes).toEqual(CODES);
  return { texts, indices };
}

test("what was held for whatever reason is let in as usage right behind its release, and answered as before for ever", async () => {
  const log = await newLog(door, "released", { card: "none" });
  const { indices, texts } = await heldOf(log);
  for (const hold of indices) {
    expect(await endHold(log, hold, "released")).toBe("cannot-be-rated no-rate");
  }
  await door.appender.control(log, "rate_card", () => CARD);
  const before = (await entriesOf(house.database.reader, log)).length;
  for (const [i, hold] of indices.entries()) {
    expect(await endHold(log, hold, "released")).toBe(String(before + 2 * i));
  }
  const entries = await entriesOf(house.database.reader, log);
  expect(entries.slice(before).map(({ kind }) => kind)).toEqual(
    indices.flatMap(() => ["hold_resolved", "usage"]),
  );
  const usages = ofKind(entries, "usage");
  expect(usages.map(({ body }) => [body.hold, body.jws])).toEqual(
    indices.map((hold, i) => [hold, texts[i]]),
  );
  expect(usages.map(({ body }) => body.compute_ms)).toContain(`${LONG}.000000`);

  expect(await submitted(...texts)).toEqual({ codes: CODES, indices });
  const again = reported(1, log, { counter: "9", job: { id: "15" } });
  expect(await submitted(again)).toEqual({
    codes: ["duplicate"],
    indices: [String(usages.at(-1)?.index)],
  });
  const usage = { duration_ms: "1" };
  const other = reported(1, log, { counter: "10", job: { id: "15" }, usage });
  expect((await submitted(other)).codes).toEqual(["conflict"]);
});

test("a hold ends once, by whoever comes first of two processes", async () => {
  const log = await newLog(door, "once");
  await newAgent(door, log, 4);
  const held = Array.from({ length: 4 }, (_, i) => {
    return reported(4, log, {
      counter: String(i + 1),
      job: { id: String(i) },
      usage: { duration_ms: LONG },
    });
  });
  for (const hold of (await submitted(...held)).indices) {
    const ends = await Promise.all([
      endHold(log, hold, "released", doors[0]),
      endHold(log, hold, "rejected", doors[1]),
      endHold(log, hold, "released", doors[1]),
    ]);
    expect(ends.filter((said) => said === "already-decided")).toHaveLength(2);
    expect(await endHold(log, hold, "rejected")).toBe("already-decided");
  }
  expect(await endHold(log, "0", "rejected")).toBe("not-found");
  expect(await endHold(log, "999", "released")).toBe("not-found");
});

test("what cannot be charged is refused with the reason, and nothing is written", async () => {
  const log = await newLog(door, "refused");
  await newAgent(door, log, 6);
  const usage = { duration_ms: LONG };
  const [stranger, alone, stands, same] = (
    await submitted(
      reported(6, log, { counter: "1", uuid: "nobody's" }),
      reported(6, log, { counter: "2", job: { id: "21" }, usage }),
      reported(6, log, { counter: "3", job: { id: "22" }, usage }),
      reported(6, log, { counter: "4", job: { id: "22" }, usage }),
    )
  ).indices;
  const size = async (): Promise<number> => (await entriesOf(house.database.reader, log)).length;
  const before = await size();
  expect(await endHold(log, stranger, "released")).toBe("cannot-be-rated outside-enrolment");
  expect(await size()).toBe(before);
  expect(await endHold(log, stands, "released")).toBe(String(before));
  expect(await endHold(log, same, "released")).toBe(`job-stands ${before + 1}`);
  expect(await size()).toBe(before + 2);
  for (const hold of [stranger, same]) {
    expect(await endHold(log, hold, "rejected")).toMatch(/^[0-9]+$/);
  }
  expect(await endHold(log, alone, "released")).toMatch(/^[0-9]+$/);
});

test("a conflict ends once: what stands holds, or was corrected since", async () => {
  const log = await newLog(door, "conflicts");
  await newAgent(door, log, 7);
  const usage = { duration_ms: "50000" };
  const [stands, first, second] = (
    await submitted(
      reported(7, log, { counter: "1" }),
      reported(7, log, { counter: "2", usage }),
      reported(7, log, { counter: "3", usage: { duration_ms: "1" } }),
    )
  ).indices;
  expect(await endConflict(log, stands, "stands")).toBe("not-found");
  expect(await endConflict(log, first, "corrected")).toBe(`correction-needed ${stands}`);
  const line = { entry: stands ?? "", namespace_id: "7", project_id: "50", reverses: "" };
  await door.appender.control(log, "adjustment", () => ({
    ...{ ...WHY, approval: "", by: "p_f", salt: CARD.salt, billing_month: "2026-11-01" },
    ...{ credit_run: "", first_line: "0" },
    lines: [{ ...line, amount: "-10000.000000", usage_month: "2026-11-01" }],
  }));
  expect(await endConflict(log, first, "corrected")).toMatch(/^[0-9]+$/);
  expect(await endConflict(log, first, "stands")).toBe("already-decided");
  expect(await endConflict(log, second, "stands")).toMatch(/^[0-9]+$/);
});

test("what is let in after its month was cut off is posted to the open one", async () => {
  const log = await newLog(door, "late");
  await newAgent(door, log, 8);
  const usage = { duration_ms: LONG, finished_at: "2026-10-31T12:00:00.000Z" };
  const [hold] = (await submitted(reported(8, log, { counter: "1", usage }))).indices;
  const month = "2026-10-01";
  const closing = { approval: "", by: "p_f", month, salt: CARD.salt };
  await door.appender.control(log, "month_closing", () => closing);
  expect(await endHold(log, hold, "released")).toMatch(/^[0-9]+$/);
  const [late] = ofKind(await entriesOf(house.database.reader, log), "usage");
  expect(late?.body).toMatchObject({ billing_month: "2026-11-01", usage_month: month });
});

test("usage comes in by a report, or right behind a release and there alone", async () => {
  const log = await newLog(door, "kernel");
  await newAgent(door, log, 9);
  const texts = ["1", "2"].map((counter) => {
    return reported(9, log, { counter, job: { id: counter }, usage: { duration_ms: LONG } });
  });
  const [hold = "", other = ""] = (await submitted(...texts)).indices;
  const rated = { ...(await releasedOn(log, hold)), hold };
  const end = { ...WHY, approval: "", by: "p_f", salt: CARD.salt, hold };
  const released = { ...end, outcome: "released" } as const;
  const { appender } = door;
  for (const attempt of [
    () => appender.control(log, "usage", () => rated),
    () => appender.control(log, "hold_resolved", () => released),
    () =>
      appender.together(log, async (put) => {
        await put("hold_resolved", { ...end, outcome: "rejected" });
        await put("usage", rated);
      }),
    () =>
      appender.together(log, async (put) => {
        await put("hold_resolved", released);
        await put("hold_resolved", { ...released, hold: other });
      }),
  ]) {
    await expect(attempt()).rejects.toThrow(/^commit: /);
  }
});

/** What the usage of a hold would say. */
async function releasedOn(log: string, hold: string): Promise<Body<"usage">> {
  const { bytes } = await readEntry(house.database.reader, log, BigInt(hold));
  const prefix = await door.appender.prefix(log);
  return await letIn({ tx: house.database.reader, prefix }, decodedAs("hold", bytes));
}

test("checked, rebuilt, replayed from the archive and audited, all of it is proven to the last row", async () => {
  const { owner, reader, writer } = house.database;
  const clock = { now: () => door.now };
  const archive = folderArchive(house.archive);
  const guard = openGuard({ archive, signerFor, clock });
  const logs = await reader<{ log: string }[]>`select log from heads`;
  const copy = await freshDatabase();
  for (const { log } of logs) {
    await seal({ sql: writer, archive, guard, signerFor, clock, log });
    await restore(copy, house.archive, log);
    expect(await tablesOf(copy, log)).toEqual(await tablesOf(house.database, log));
    const written = await entriesOf(reader, log);
    // What a closing needs is not this test's.
    if (ofKind(written, "month_closing").length > 0) continue;
    const audited = new TestLog(log);
    const entries = written.map(encodeEntry);
    audited.entries.splice(0, 1, ...entries);
    audited.leaves.splice(0, 1, ...entries.map((bytes) => leafHash(bytes)));
    const result = await auditFiles(filesOf(audited), { log, vkeys: [vkey(log)] });
    expect(result.findings.listed).toEqual([]);
    expect(exitOf(result)).toBe(0);
  }
  await copy.drop();
  await refresh({ sql: writer, clock });
  const findings: unknown[] = [];
  for await (const event of check({ sql: reader }, { hash: sha256 })) {
    if (event.kind === "finding") findings.push(event);
  }
  expect(findings).toEqual([]);
  const rebuilt = await rebuild({ sql: owner, clock, hash: sha256 }, { write: false });
  expect(rebuilt.tables.filter(({ state }) => state !== "equal")).toEqual([]);
  expect(rebuilt.typed.count).toBe(0);
});
