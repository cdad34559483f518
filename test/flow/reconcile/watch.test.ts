import { beforeEach, expect, test } from "vitest";
import { ANOMALY_BOUNDS } from "../../../src/core/anomaly.ts";
import { TYP } from "../../../src/core/report.ts";
import { instantText } from "../../../src/core/unit.ts";
import { endBreaks } from "../../../src/flow/reconcile/open.ts";
import { isCaughtUp, type Watching, watch } from "../../../src/flow/reconcile/watch.ts";
import { type WatchingKeys, watchKeys } from "../../../src/flow/reconcile/watch-keys.ts";
import { attest } from "../../../src/flow/report/attest.ts";
import { readOpenBreaks } from "../../../src/store/breaks.ts";
import { startWatching } from "../../../src/store/reconcile-marks.ts";
import { kidOf, REVOCATION } from "../../core/history.ts";
import { entriesOf, newLog, ofKind, reported, sha256, sign } from "../door.ts";
import { DAY, door, HOUR, house, log, seed, withLogs } from "./scene.ts";

let watching: Watching & WatchingKeys;
let counter = 0;

withLogs("watch");
beforeEach(async () => {
  counter = 0;
  const anomalies = { ...ANOMALY_BOUNDS, capacity: new Map([["701", 2n]]) };
  const { writer: sql } = house.database;
  const clock = { now: () => door.now };
  const { appender, random } = door;
  watching = { sql, appender, random, hash: sha256, clock, graceMs: DAY, anomalies };
  await startWatching(sql);
});

/** Ended so long ago, after so long; in the order of counters unless one is said. */
function ran(job: number, agoMs: number, durationMs: number, own?: number): string {
  counter = own ?? counter + 1;
  const ended = door.now - agoMs;
  const usage = {
    duration_ms: String(durationMs),
    finished_at: instantText(ended),
    started_at: instantText(ended - durationMs),
  };
  return reported(seed, log, {
    counter: String(counter),
    uuid: `u${seed}`,
    job: { id: String(job) },
    usage,
  });
}

async function attested(marks: {
  counter?: number;
  spool?: number;
  offset?: number;
}): Promise<void> {
  const payload = {
    clock_offset_ms: String(marks.offset ?? 0),
    counter: String(marks.counter ?? counter),
    files: [],
    issued_at: instantText(door.now),
    log,
    malformed: "0",
    rejected: "0",
    spool: String(marks.spool ?? 0),
  };
  await attest(door, sign(seed, TYP.attestation, payload));
}

async function watched(): Promise<{ opened: number; healed: number }> {
  let opened = 0;
  for (;;) {
    const page = await watch(watching, log);
    opened += page.opened;
    if (isCaughtUp(page)) break;
  }
  const keys = await watchKeys(watching, log);
  return { opened: opened + keys.opened, healed: keys.healed };
}

/** Codes of breaks without an end. */
const open = async () => {
  const standing = await readOpenBreaks(house.database.reader, log, 2n ** 63n - 1n);
  return standing.map(({ code }) => code);
};

const found = async () => {
  const breaks = ofKind(await entriesOf(house.database.reader, log), "break");
  return breaks.map(({ body }) => [body.code, body.detail] as const);
};
const codes = async () => (await found()).map(([code]) => code);

test("an honest log has nothing strange in it, however often it is watched", async () => {
  await door.submit(...Array.from({ length: 20 }, (_, i) => ran(i, i * HOUR, 50 * 60_000)));
  await attested({});
  expect(await watched()).toEqual({ opened: 0, healed: 0 });
  expect(await watched()).toEqual({ opened: 0, healed: 0 });
});

test("a page that is not full is the last: nobody looks at the log once more to see that there is none", async () => {
  await door.submit(ran(1, 0, 60_000));
  const page = await watch(watching, log);
  expect(page.entries).toBeGreaterThan(0n);
  expect(isCaughtUp(page)).toBe(true);
  expect(isCaughtUp({ entries: 5_000n })).toBe(false);
});

test("G01: a job that took longer than any may is an anomaly, and its report is usage all the same", async () => {
  await door.submit(ran(1, 0, 710 * 60_000), ran(2, 0, 25 * HOUR));
  await watched();
  expect(await codes()).toContain("over-timeout");
  expect(ofKind(await entriesOf(house.database.reader, log), "usage")).toHaveLength(2);
});

test("more job time in an hour than what the runner had before and twice that is an anomaly, once an hour", async () => {
  // At noon: the hour before it, and all hours of the day before.
  await door.submit(ran(1, DAY, 24 * HOUR));
  await door.submit(...[2, 3].map((job) => ran(job, 0, HOUR)));
  await watched();
  expect(await codes()).toEqual([]);
  await door.submit(...[4, 5].map((job) => ran(job, 0, HOUR)));
  await watched();
  await door.submit(ran(6, 0, HOUR));
  await watched();
  expect(await found()).toEqual([
    [
      "over-capacity",
      "14400000 ms of jobs in the hour of 2026-11-20T11:00:00.000Z, of at most 2 jobs at once",
    ],
  ]);
});

test("a namespace that uses far more in a day than in the days before is an anomaly", async () => {
  await door.submit(...[1, 2, 3, 4, 5, 6, 7].map((job) => ran(job, job * DAY, HOUR)));
  await watched();
  await door.submit(...Array.from({ length: 8 }, (_, i) => ran(10 + i, HOUR, 20 * HOUR)));
  await watched();
  expect(await codes()).not.toContain("sudden-jump");
  // Eight times 20 hours are within the 10,000 minutes that may pass unseen.
  await door.submit(ran(30, HOUR, 20 * HOUR));
  await watched();
  expect(await codes()).toContain("sudden-jump");
});

test("a host whose clock is off says so itself, and is told of once a day", async () => {
  await attested({ offset: 90_000 });
  await watched();
  door.now += HOUR;
  await attested({ offset: -90_000 });
  await watched();
  door.now -= HOUR;
  expect(await codes()).toEqual(["clock-offset"]);
});

test("G25: counters that do not come are a break after the grace, and healed when the last of them comes", async () => {
  await door.submit(ran(1, 0, 60_000, 1), ran(2, 0, 60_000, 2), ran(5, 0, 60_000, 5));
  await attested({ counter: 7 });
  expect((await watched()).opened).toBe(0);
  door.now += DAY;
  await attested({ counter: 7 });
  expect((await watched()).opened).toBe(2);
  expect(await found()).toEqual([
    ["counter-gap", "2 of counters 3 to 4 have not come"],
    ["counter-gap", "2 of counters 6 to 7 have not come"],
  ]);
  await door.submit(ran(4, 0, 60_000, 4));
  expect(await watched()).toEqual({ opened: 0, healed: 0 });
  await door.submit(ran(3, 0, 60_000, 3));
  expect(await watched()).toEqual({ opened: 0, healed: 1 });
  door.now -= DAY;
});

test("a gap heals by none of its counters alone, nor by a report for another log", async () => {
  await door.submit(ran(1, 0, 60_000, 1), ran(4, 0, 60_000, 4));
  const other = await newLog(door, `another ${seed}`);
  for (const own of ["2", "5"]) await door.submit(reported(seed, other, { counter: own }));
  await attested({ counter: 5 });
  await watched();
  door.now += DAY;
  await attested({ counter: 5 });
  await watched();
  door.now -= DAY;
  expect(await found()).toEqual([
    ["counter-gap", "2 of counters 2 to 3 have not come"],
    ["counter-gap", "1 of counters 5 to 5 have not come"],
  ]);
  await door.submit(ran(3, 0, 60_000, 3));
  expect(await watched()).toEqual({ opened: 0, healed: 0 });
  const entries = await entriesOf(house.database.reader, log);
  const [gap] = ofKind(entries, "break");
  const evidence = ofKind(entries, "usage").at(-1)?.index ?? 0n;
  const early = endBreaks(watching, log, [{ index: gap?.index ?? 0n, evidence }]);
  await expect(early).rejects.toMatchObject({ code: "invalid-request" });
  await door.submit(ran(2, 0, 60_000, 2));
  expect(await watched()).toEqual({ opened: 0, healed: 1 });
});

test.each([2, 3])("a gap found anew when its %i has come is no other one", async (first) => {
  const come = (...own: number[]) => door.submit(...own.map((n) => ran(n, 0, 60_000, n)));
  await come(1, 5);
  await attested({});
  await watched();
  door.now += DAY;
  expect((await watched()).opened).toBe(2);
  await come(first);
  await forget();
  door.now += DAY;
  await attested({});
  expect(await watched()).toEqual({ opened: 0, healed: 0 });
  await come(5 - first, 4);
  expect(await watched()).toEqual({ opened: 0, healed: 1 });
  expect(await codes()).toEqual(["counter-gap", "missing-attestation"]);
  door.now -= 2 * DAY;
});

/** As a database that came back counts anew. */
async function forget(): Promise<void> {
  const { writer } = house.database;
  for (const table of ["namespace_days", "runner_hours", "key_marks", "counter_gaps"]) {
    await writer`delete from ${writer(table)} where log = ${log}`;
  }
  await writer`update reconcile_marks set index = 0 where log = ${log}`;
  expect(await watched()).toEqual({ opened: 0, healed: 0 });
}

test("an active key of a hosted runner that attests nothing for longer than the grace is a break, and heals", async () => {
  await attested({});
  expect((await watched()).opened).toBe(0);
  door.now += DAY;
  expect((await watched()).opened).toBe(1);
  expect((await watched()).opened).toBe(0);
  await attested({});
  // By the attestation itself: whoever closes a month right behind it waits for no look at the log.
  expect(await open()).toEqual([]);
  expect(await watched()).toEqual({ opened: 0, healed: 0 });
  door.now -= DAY;
  expect(await codes()).toEqual(["missing-attestation"]);
});

test("of a key that is revoked two persons say what is to become of it: its silence is a break as ever", async () => {
  await attested({});
  const revocation = { ...REVOCATION, kid: kidOf(seed), last_trusted_counter: "0" };
  await door.appender.control(log, "key_revoked", () => revocation);
  door.now += DAY;
  expect((await watched()).opened).toBe(1);
  expect(await open()).toEqual(["missing-attestation"]);
  door.now -= DAY;
});

test("reports that wait in a spool for longer than the grace are a break, from the first attestation that had any", async () => {
  for (let hours = 0; hours < 26; hours += 5) {
    await attested({ spool: 3 });
    await watched();
    door.now += 5 * HOUR;
  }
  expect(await codes()).toEqual(["undelivered"]);
  await attested({ spool: 1 });
  expect(await open()).toEqual(["undelivered"]);
  await attested({ spool: 0 });
  expect(await open()).toEqual([]);
  door.now -= 30 * HOUR;
});

test("every end of a break names the entry that shows it", async () => {
  await door.submit(ran(1, 0, 60_000, 1), ran(3, 0, 60_000, 3));
  await attested({ counter: 3, spool: 1 });
  await watched();
  door.now += 2 * DAY;
  expect((await watched()).opened).toBe(3);
  await door.submit(ran(2, 0, 60_000, 2));
  await attested({ counter: 3 });
  expect((await watched()).healed).toBe(1);
  expect(await open()).toEqual([]);
  door.now -= 2 * DAY;
  const entries = await entriesOf(house.database.reader, log);
  const shown = ofKind(entries, "break_resolved").map(({ body }) => {
    return entries[Number(body.evidence)]?.kind;
  });
  expect(shown.sort()).toEqual(["attestation", "attestation", "usage"]);
});

test("sums and marks come back when their mark is put to the beginning, and open nothing twice", async () => {
  await door.submit(...[1, 2, 3].map((job) => ran(job, job * HOUR, 26 * HOUR)));
  await attested({ counter: 5, offset: 99_000 });
  await watched();
  const { reader } = house.database;
  const kept = () =>
    Promise.all([
      reader`select * from namespace_days where log = ${log} order by day`,
      reader`select * from runner_hours where log = ${log} order by hour`,
      reader`select * from key_marks where log = ${log} order by kid`,
      reader`select * from counter_gaps where log = ${log} order by first`,
    ]);
  const before = await kept();
  await forget();
  expect(await kept()).toEqual(before);
});

test("two that watch at once count nothing twice", async () => {
  await door.submit(...[1, 2].map((job) => ran(job, 0, HOUR)));
  await Promise.all([watch(watching, log), watch(watching, log), watch(watching, log)]);
  const [row] = await house.database.reader<[{ duration_ms: bigint }]>`
    select duration_ms from runner_hours where log = ${log}`;
  expect(row.duration_ms).toBe(BigInt(2 * HOUR));
});
