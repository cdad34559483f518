/** The process' copy of the ledger's figures beside a log that goes on, and beside one that does not. */
import { afterAll, afterEach, beforeAll, expect, test } from "vitest";
import { quotaAt } from "../../../src/core/quota/quota.ts";
import { SETTLED_MAX } from "../../../src/flow/quota/copy.ts";
import { type Ledger, type LedgerOptions, openLedger } from "../../../src/flow/quota/ledger.ts";
import { refresh } from "../../../src/flow/usage/fold.ts";
import type { TestLedger } from "../../ledger.ts";
import { type FreshDatabase, freshDatabase } from "../../postgres.ts";
import { failOn } from "../chain.ts";
import { HOSTED, OWN } from "../history.ts";
import { LIMIT, newLedger, switchable } from "./logs.ts";
import { countedOf } from "./oracle.ts";

const NOW = Date.UTC(2026, 10, 28);
const MINUTE = 60_000_000_000n;
const DAY_MS = 86_400_000;

let db: FreshDatabase;
let time = NOW;
const clock = { now: () => time };
const opened: Ledger[] = [];

beforeAll(async () => {
  db = await freshDatabase();
});
afterEach(async () => {
  await Promise.all(opened.splice(0).map((ledger) => ledger.close()));
});
afterAll(() => db.drop());

/** One process; without `pollMs` it polls only if it lives for a day. */
function open(options: Partial<LedgerOptions> = {}): Ledger {
  const ledger = openLedger({
    ...{ sql: db.reader, clock, failed: failOn, pollMs: DAY_MS },
    ...options,
  });
  opened.push(ledger);
  return ledger;
}

function keyOf({ log }: TestLedger, namespace = "1") {
  return { log, namespace };
}

/** Asks as often as it takes. */
async function until<T>(ask: () => Promise<T>, isIt: (found: T) => boolean): Promise<T> {
  for (;;) {
    const found = await ask();
    if (isIt(found)) return found;
    await new Promise(setImmediate);
  }
}

test("what another process commits is held after the next poll, without being asked for", async () => {
  const { ledger, agent } = newLedger();
  await ledger.load(db.owner);
  const copy = open({ pollMs: 1 });
  expect((await copy.hold(keyOf(ledger))).asOf).toBe(ledger.size);
  ledger.report(agent, { job: 1, runner: HOSTED });
  ledger.append("quota", LIMIT);
  await ledger.load(db.owner);
  const held = await until(
    () => copy.hold(keyOf(ledger)),
    ({ asOf }) => asOf === ledger.size,
  );
  expect(held.facts).toMatchObject({ limits: [{ monthly_minutes: 10n }] });
  expect(held.settled(held.since)).toEqual(["1"]);
});

test("a log on which nothing happens costs one question for all, and what is held grows no older", async () => {
  const logs = [newLedger(), newLedger(), newLedger()].map(({ ledger }) => ledger);
  for (const ledger of logs) await ledger.load(db.owner);
  const { read, sql } = switchable(db.reader);
  const copy = open({ sql, pollMs: 1 });
  for (const ledger of logs) await copy.hold(keyOf(ledger));
  read.length = 0;
  time += 1_000;
  for (const ledger of logs) {
    await until(
      () => copy.hold(keyOf(ledger)),
      ({ readAt }) => readAt === time,
    );
  }
  await copy.close();
  expect(read.length).toBeGreaterThan(0);
  for (const tables of read) expect([...tables]).toEqual(["heads"]);
});

test("a clock that steps back does not make what is held look new", async () => {
  const { ledger } = newLedger();
  await ledger.load(db.owner);
  const copy = open({ pollMs: 1 });
  await copy.hold(keyOf(ledger));
  time -= 30_000;
  const held = await until(
    () => copy.hold(keyOf(ledger)),
    ({ readAt }) => readAt !== 0,
  );
  expect(held.readAt).toBe(time);
});

test("a log that nobody asks for is forgotten", async () => {
  const { ledger } = newLedger();
  await ledger.load(db.owner);
  const copy = open({ pollMs: 1 });
  await copy.hold(keyOf(ledger));
  expect(copy.loaded()).toEqual({ logs: 1, namespaces: 1 });
  time += DAY_MS;
  await until(
    async () => copy.loaded(),
    ({ logs }) => logs === 0,
  );
  expect((await copy.hold(keyOf(ledger))).readAt).toBe(time);
});

test("T43, G18: a raise is effective at the next hold as of its entry, by the difference and at once", async () => {
  const { ledger, agent } = newLedger();
  ledger.append("quota", LIMIT);
  ledger.report(agent, { job: 1, runner: HOSTED, finished: "2026-11-01T00:00:00.000Z" });
  await ledger.load(db.owner);
  const copy = open();
  const before = quotaAt((await copy.hold(keyOf(ledger))).facts, "2026-11-28T00:00:00.000Z");
  ledger.append("quota", { ...LIMIT, monthly_minutes: "25", source_version: "2" });
  await ledger.load(db.owner);
  expect((await copy.hold(keyOf(ledger))).asOf).toBe(ledger.size - 1n);
  const held = await copy.hold(keyOf(ledger), { asOf: ledger.size });
  const after = quotaAt(held.facts, "2026-11-28T00:00:00.000Z");
  expect(after.available - before.available).toBe(15n * MINUTE);
  expect(held.touched).toBe(ledger.size - 1n);
});

test("T49: an entry that commits late is not passed by", async () => {
  const { ledger, agent } = newLedger();
  await ledger.load(db.owner);
  const before = ledger.size;
  const copy = open();
  await copy.hold(keyOf(ledger));
  ledger.report(agent, { job: 1, runner: HOSTED });
  await db.owner.begin(async (tx) => {
    await ledger.loadIn(tx);
    time += 1;
    expect((await copy.hold(keyOf(ledger), { readSince: time })).asOf).toBe(before);
  });
  const held = await copy.hold(keyOf(ledger), { asOf: ledger.size });
  expect(held.asOf).toBe(ledger.size);
  expect(held.settled(before)).toEqual(["1"]);
});

test("usage that comes when its month is closed is posted to the open one, and is nobody's quota", async () => {
  const { ledger, agent } = newLedger();
  const october = { runner: HOSTED, finished: "2026-10-31T12:00:00.000Z", duration: 180_000n };
  ledger.report(agent, { ...october, job: 1 });
  await ledger.load(db.owner);
  const copy = open();
  const before = await copy.hold(keyOf(ledger));
  ledger.closeMonth("2026-10-01");
  ledger.report(agent, { ...october, job: 2 });
  await ledger.load(db.owner);
  const held = await copy.hold(keyOf(ledger), { asOf: ledger.size });
  expect(held.facts.used).toEqual(new Map([["2026-10-01", MINUTE]]));
  expect(held.facts.closings).toEqual([{ index: ledger.size - 2n, month: "2026-10-01" }]);
  expect(held.touched).toBe(ledger.size - 1n);
  expect(before.facts.closings).toEqual([]);
});

test("a cut-off concerns all namespaces, and the customer's own jobs concern none", async () => {
  const { ledger, agent } = newLedger();
  await ledger.load(db.owner);
  const copy = open();
  expect((await copy.hold(keyOf(ledger, "2"))).touched).toBe(-1n);
  ledger.closeMonth("2026-10-01");
  const closing = ledger.size - 1n;
  ledger.report(agent, { job: 1, runner: OWN, namespace: 2 });
  await ledger.load(db.owner);
  const held = await copy.hold(keyOf(ledger, "2"), { asOf: ledger.size });
  expect(held.touched).toBe(closing);
  expect(held.settled(held.since)).toEqual([]);
  await ledger.seal(db.owner);
  await refresh({ sql: db.writer, clock });
  const folded = (await copy.read(ledger.log, ["2"])).held.get("2");
  expect(folded?.touched).toBe(closing);
});

test("jobs that are settled are remembered up to a bound, and what falls out is said", async () => {
  const { ledger, agent } = newLedger();
  await ledger.load(db.owner);
  const copy = open();
  const from = (await copy.hold(keyOf(ledger))).since;
  for (let job = 1; job <= SETTLED_MAX + 1; job += 1) {
    ledger.report(agent, { job, runner: HOSTED });
    if (job !== 10 && job !== SETTLED_MAX && job !== SETTLED_MAX + 1) continue;
    await ledger.load(db.owner);
    const held = await copy.hold(keyOf(ledger), { asOf: ledger.size });
    const settled = countedOf(ledger, "1").jobs.filter(({ index }) => index >= held.since);
    expect(held.since).toBe(job <= SETTLED_MAX ? from : from + 1n);
    expect([...held.settled(held.since)].sort()).toEqual(settled.map((each) => each.job).sort());
    expect(held.settled(ledger.size - 1n)).toEqual([String(job)]);
    expect(() => held.settled(held.since - 1n)).toThrow("before what is known");
  }
});

test("what was handed out stays what it was", async () => {
  const { ledger, agent } = newLedger();
  await ledger.load(db.owner);
  const copy = open();
  const held = await copy.hold(keyOf(ledger));
  const before = structuredClone(held.facts);
  ledger.report(agent, { job: 1, runner: HOSTED });
  ledger.append("quota", LIMIT);
  ledger.closeMonth("2026-10-01");
  await ledger.load(db.owner);
  await copy.hold(keyOf(ledger), { asOf: ledger.size });
  expect(held.facts).toEqual(before);
  expect(held.settled(held.since)).toEqual([]);
});

test("facts are the same object until they change", async () => {
  const { ledger, agent } = newLedger();
  await ledger.load(db.owner);
  const copy = open();
  const { facts } = await copy.hold(keyOf(ledger));
  ledger.report(agent, { job: 1, runner: HOSTED, namespace: 2 });
  await ledger.load(db.owner);
  const held = await copy.hold(keyOf(ledger), { asOf: ledger.size });
  expect(held.facts).toBe(facts);
});

test("who asks at once shares one read", async () => {
  const { ledger } = newLedger();
  await ledger.load(db.owner);
  const { read, sql } = switchable(db.reader);
  const copy = open({ sql });
  const asked = Array.from({ length: 400 }, (_, i) => copy.hold(keyOf(ledger, String(i))));
  const held = await Promise.all(asked);
  expect(new Set(held.map(({ asOf }) => asOf))).toEqual(new Set([ledger.size]));
  expect(read).toHaveLength(1);
});

test("memory is bounded however many namespaces are asked for, and each is answered", async () => {
  const { ledger, agent } = newLedger();
  for (let job = 1; job <= 20; job += 1) {
    ledger.report(agent, { job, runner: HOSTED, namespace: job * 2_500 });
  }
  await ledger.load(db.owner);
  const copy = open({ namespacesMax: 100 });
  const ids = Array.from({ length: 50_000 }, (_, i) => String(i + 1));
  const held = await Promise.all(ids.map((namespace) => copy.hold(keyOf(ledger, namespace))));
  expect(copy.loaded()).toEqual({ logs: 1, namespaces: 100 });
  expect(held.filter(({ touched }) => touched >= 0n)).toHaveLength(20);
  // Those asked for last are the ones that are there.
  const { read, sql } = switchable(db.reader);
  const other = open({ sql, namespacesMax: 2 });
  for (const namespace of ["1", "2", "1", "3", "1"]) await other.hold(keyOf(ledger, namespace));
  expect(read).toHaveLength(3);
});

test("a log that does not exist is not found, each time", async () => {
  const copy = open();
  const key = { log: "f".repeat(32), namespace: "1" };
  for (const _ of [1, 2]) {
    await expect(copy.hold(key)).rejects.toMatchObject({ code: "not-found" });
    await expect(copy.read(key.log, ["1"])).rejects.toMatchObject({ code: "not-found" });
  }
});

test("jobs are found on the log by the index of their hosted usage", async () => {
  const { ledger, agent } = newLedger();
  const { index } = ledger.report(agent, { job: 1, runner: HOSTED });
  ledger.report(agent, { job: 2, runner: OWN });
  await ledger.load(db.owner);
  expect(await open().onLog(ledger.log, ["1", "2", "3"])).toEqual(new Map([["1", index]]));
});
