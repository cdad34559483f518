/** Rounds of the reconciler: whose they are, and what they make of what they find. */
import { afterAll, beforeAll, beforeEach, expect, test } from "vitest";
import { reconcileRound } from "../../../src/flow/quota/reconcile-loop.ts";
import { claimReconciliation } from "../../../src/store/reconciliations.ts";
import { type FreshDatabase, freshDatabase } from "../../postgres.ts";
import { type RedisServer, startRedis } from "../../redis.ts";
import { ask, COMPUTE_MS, openProcess, type QuotaProcess, run } from "./reconciling.ts";
import { HOSTED, QuotaLog, START } from "./told.ts";

const MINUTE_MS = 60_000;
const log = new QuotaLog(1);
const KEY = { log: log.log, namespace: "1" };
const NAME = `minutebook:quota:{${log.log}:1}`;

let db: FreshDatabase;
let redis: RedisServer;
let time = START;
const clock = { now: () => time };
let one: QuotaProcess;
let other: QuotaProcess;

beforeAll(async () => {
  [db, redis] = await Promise.all([freshDatabase(), startRedis()]);
  log.limit(1, 100);
  await log.load(db.owner);
  const place = { kind: "single", url: redis.url } as const;
  const at = { sql: db.writer, clock, place };
  [one, other] = [await openProcess(at), await openProcess(at)];
});
beforeEach(async () => {
  await db.owner`truncate reconciliations`;
});
afterAll(async () => {
  await Promise.all([one.close(), other.close()]);
  await Promise.all([db.drop(), redis.stop()]);
});

/** For those who wait for the next round. */
async function pass(ms: number): Promise<void> {
  await db.owner`update reconciliations set due_at = due_at - ${ms} * interval '1 ms'`;
}

test("one process compares at a time; who was killed at it is replaced when its claim runs out", async () => {
  await ask(one, KEY, run(one, 50, MINUTE_MS));
  const round = async (reconciling: QuotaProcess) => {
    const rounds = { reconciling, sql: db.writer, onDrift: () => undefined };
    return (await reconcileRound(rounds)).namespaces;
  };
  expect([await round(one), await round(other)]).toEqual([1, undefined]);
  await pass(30_000);
  const claims = await Promise.all([round(one), round(other)]);
  expect(claims.filter((count) => count !== undefined)).toEqual([1]);
  // Killed in the middle: nobody has ended the round.
  expect(await claimReconciliation(db.writer, 45_000)).toBeUndefined();
  await pass(30_000);
  expect(await claimReconciliation(db.writer, 45_000)).toBeDefined();
  await pass(15_000);
  expect(await round(other)).toBeUndefined();
  await pass(30_000);
  expect(await round(other)).toBe(1);
});

test("a clock that is a year off keeps nobody from comparing, whether it is the process' or was the database's", async () => {
  await ask(one, KEY, run(one, 50, MINUTE_MS));
  const round = async () => {
    const rounds = { reconciling: one, sql: db.writer, onDrift: () => undefined };
    return (await reconcileRound(rounds)).namespaces;
  };
  const right = time;
  time += 365 * 86_400_000;
  expect(await round()).toBe(1);
  time = right;
  expect(await round()).toBeUndefined();
  await pass(30_000);
  expect(await round()).toBe(1);
  await pass(-365 * 86_400_000);
  expect(await round()).toBe(1);
});

test("what is taken out of a revoked key is counted, and no alarm", async () => {
  const { kid } = log.enrol(2, [{ ...HOSTED, uuid: "r-9" }]);
  const by = log.size - 1n;
  log.append("key_revoked", {
    ...{ by: "p_test", instant: new Date(log.now).toISOString(), kid },
    ...{ last_trusted_counter: "0", reason: "stolen", salt: `${"A".repeat(22)}==` },
  });
  await log.load(db.owner);
  await ask(one, KEY, run(one, 60, 90 * MINUTE_MS, by));
  const rounds = { reconciling: one, sql: db.writer, onDrift: () => undefined };
  const { alarming, drift } = await reconcileRound(rounds);
  expect([alarming, Object.fromEntries(drift)]).toEqual([false, { revoked: 1 }]);
});

test("more than a compute minute off is an alarm, and less is none", async () => {
  const offBy = async (ms: number) => {
    await pass(30_000);
    const [, ...rest] = String(await redis.say("HGET", NAME, "s")).split(",");
    await redis.say("HSET", NAME, "s", [BigInt(ms) * COMPUTE_MS, ...rest].join());
    const rounds = { reconciling: one, sql: db.writer, onDrift: () => undefined };
    const { alarming, drift } = await reconcileRound(rounds);
    return [alarming, Object.fromEntries(drift)];
  };
  await ask(one, KEY, run(one, 50, 5 * MINUTE_MS));
  expect(await offBy(4 * MINUTE_MS)).toEqual([false, { sums: 1 }]);
  expect(await offBy(4 * MINUTE_MS - 1)).toEqual([true, { sums: 1 }]);
  expect(await offBy(5 * MINUTE_MS)).toEqual([false, {}]);
});
