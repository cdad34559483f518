/** Processes that know different things of a log: by clocks that differ, of an end that was lost, of another namespace. */
import { afterAll, beforeAll, expect, test } from "vitest";
import { Problem } from "../../../src/core/problem.ts";
import type { Ask } from "../../../src/core/quota/live.ts";
import { type Asked, type Asking, askNamespace } from "../../../src/flow/quota/ask.ts";
import { type Ledger, openLedger } from "../../../src/flow/quota/ledger.ts";
import { Seen } from "../../../src/flow/quota/seen.ts";
import { type Live, openLive } from "../../../src/flow/quota/standing.ts";
import type { Sql } from "../../../src/store/connect.ts";
import { openLiveProcess } from "../../../src/store/live-process.ts";
import { type FreshDatabase, freshDatabase } from "../../postgres.ts";
import { HOSTED, QuotaLog, START } from "./told.ts";

const MINUTE_MS = 60_000;
const NEVER_POLLS_MS = 86_400_000;
/** Of a decision. */
const AGE_MS = 5_000;

let db: FreshDatabase;
let time = START + 86_400_000;
let namespaces = 0;
const log = new QuotaLog(1);
const ledgers: Ledger[] = [];
const runner = { ...HOSTED, uuid: "r-9" };
const agent = log.enrol(2, [runner]);

beforeAll(async () => {
  db = await freshDatabase();
  await log.create(db.owner);
});
afterAll(async () => {
  await Promise.all(ledgers.map((ledger) => ledger.close()));
  await db.drop();
});

/** Live usage that processes share. */
function openPlace(): Live {
  const clock = { now: () => time };
  return openLive({ process: openLiveProcess(), clock, failed: () => undefined });
}

/** @param aheadMs of its clock */
function openProcess(live: Live, { aheadMs = 0, sql = db.writer as Sql } = {}): Asking {
  const clock = { now: () => time + aheadMs };
  const ledger = openLedger({ sql, clock, failed: () => undefined, pollMs: NEVER_POLLS_MS });
  ledgers.push(ledger);
  return { ledger, live, clock, seen: new Seen() };
}

/** A database that can be taken away. */
function frail(): { sql: Sql; away: boolean } {
  const state = { sql: db.writer, away: false };
  state.sql = new Proxy(db.writer, {
    get: (target, name) => {
      if (state.away) throw new Problem("busy");
      const value = Reflect.get(target, name);
      return typeof value === "function" ? value.bind(target) : value;
    },
    apply: (target, self, args) => {
      if (state.away) throw new Problem("busy");
      return Reflect.apply(target, self, args);
    },
  });
  return state;
}

async function newNamespace(): Promise<string> {
  namespaces += 1;
  log.limit(namespaces, 100);
  await log.load(db.owner);
  return String(namespaces);
}

async function report(namespace: string, job: number, minutes = 3): Promise<void> {
  const duration = BigInt(minutes * MINUTE_MS);
  log.report(agent, { job, runner, namespace: Number(namespace), duration });
  await log.load(db.owner);
}

function ask(process: Asking, namespace: string, asks: Ask[], maxAgeMs = AGE_MS): Promise<Asked> {
  return askNamespace(process, { log: log.log, namespace }, asks, { maxAgeMs });
}

function run(job: number, minutes: number): Ask {
  const elapsedMs = BigInt(minutes * MINUTE_MS);
  return {
    ...{ kind: "run", job: String(job), amount: elapsedMs * 1_000_000n, elapsedMs },
    ...{ until: time + 7 * 86_400_000, by: 2n },
  };
}

const GO_ON: Ask = { kind: "go_on", job: "1" };
/** So old that what is known is read anew. */
const NEWEST = -1;

test("newer figures that came from a process whose clock is behind are no older than this one's own", async () => {
  const live = openPlace();
  const [ahead, right] = [openProcess(live, { aheadMs: 6_000 }), openProcess(live)];
  const namespace = await newNamespace();
  await ask(ahead, namespace, [GO_ON]);
  await report(namespace, 101);
  await ask(right, namespace, [GO_ON]);
  const asked = await ask(ahead, namespace, [GO_ON]);
  expect(asked.figures.asOf).toBe(log.size);
  expect(asked).toMatchObject({ ageMs: 0, stale: false, complete: true });
});

test("and from one whose clock is ahead no newer: an age is an upper bound by the clock that says it", async () => {
  const live = openPlace();
  const database = frail();
  const [mine, ahead] = [
    openProcess(live, { sql: database.sql }),
    openProcess(live, { aheadMs: 600_000 }),
  ];
  const namespace = await newNamespace();
  await ask(mine, namespace, [GO_ON]);
  await report(namespace, 201);
  await ask(ahead, namespace, [GO_ON]);
  database.away = true;
  time += 540_000;
  const asked = await ask(mine, namespace, [GO_ON]);
  expect(asked.figures.asOf).toBe(log.size);
  expect(asked).toMatchObject({ ageMs: 540_000, stale: true, complete: false });
});

test("after its clock stepped back a process reads anew, and calls nothing new where it cannot", async () => {
  const database = frail();
  const process = openProcess(openPlace(), { sql: database.sql });
  const namespace = await newNamespace();
  await ask(process, namespace, [GO_ON]);
  await report(namespace, 301);
  time -= 3_600_000;
  const anew = await ask(process, namespace, [GO_ON]);
  expect([anew.figures.asOf, anew.ageMs, anew.stale]).toEqual([log.size, 0, false]);
  time -= 3_600_000;
  database.away = true;
  const asked = await ask(process, namespace, [GO_ON]);
  expect(asked.stale).toBe(true);
  // Nor when it goes forward again: how long that took is not known.
  time += 3_600_000;
  expect((await ask(process, namespace, [GO_ON])).stale).toBe(true);
  time += 3_600_000;
});

test("usage that comes again after its end of the log was lost is counted once", async () => {
  const live = openPlace();
  const process = openProcess(live);
  const namespace = await newNamespace();
  const { figures } = await ask(process, namespace, [run(400, 4)]);
  // As another process leaves it that has seen two entries of the end that is lost.
  const ahead = { ...figures, asOf: figures.asOf + 2n, touched: figures.asOf + 1n };
  const at = { now: time, since: figures.asOf, settled: [] };
  const key = { log: log.log, namespace };
  await live.run(key, { ...at, figures: ahead, asks: [] });
  time += 10;
  await ask(process, namespace, [GO_ON], 1_000);
  for (const job of [400, 401, 402]) await report(namespace, job, 1);
  const after = await ask(process, namespace, [GO_ON], NEWEST);
  expect([after.shown.used, after.live]).toEqual([3n * 60_000_000_000n, 0n]);
});

test("what was handed over, and who was looked up, is forgotten with the copy of the log it was learnt by", async () => {
  const seen = new Seen();
  const key = { log: log.log, namespace: "1" };
  const [before, anew] = [
    { asOf: 7n, copy: Symbol() },
    { asOf: 7n, copy: Symbol() },
  ];
  seen.handed(key, before);
  seen.absent(log.log, "5", { held: before, at: time });
  expect([seen.handedTo(key, before), seen.absentAt(log.log, "5", before)?.asOf]).toEqual([7n, 7n]);
  expect([seen.handedTo(key, anew), seen.absentAt(log.log, "5", anew)]).toEqual([
    undefined,
    undefined,
  ]);
});

test("a job whose report names another namespace than its heartbeats is found to have ended within a minute", async () => {
  const process = openProcess(openPlace());
  const [namespace, other] = [await newNamespace(), await newNamespace()];
  await ask(process, namespace, [run(500, 4)]);
  await report(other, 500, 5);
  time += MINUTE_MS;
  const { results } = await ask(process, namespace, [run(500, 5)], NEWEST);
  expect(results).toEqual([{ allowed: true, known: false, onLog: true }]);
});

test("while the database is away a job that was looked up goes on to be counted by what it says", async () => {
  const database = frail();
  const process = openProcess(openPlace(), { sql: database.sql });
  const namespace = await newNamespace();
  await ask(process, namespace, [run(600, 1)]);
  time += 50_000;
  await ask(process, namespace, [GO_ON]);
  database.away = true;
  for (const minutes of [2, 3, 4, 5]) {
    time += 20_000;
    const { live } = await ask(process, namespace, [run(600, minutes)]);
    expect(live).toBe(BigInt(minutes) * 60_000_000_000n);
  }
});
