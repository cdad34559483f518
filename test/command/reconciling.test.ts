import { afterAll, beforeAll, expect, test } from "vitest";
import { startReconciling } from "../../src/command/reconciling.ts";
import { openLog } from "../../src/telemetry.ts";
import type { Reconciled } from "../../src/telemetry-quota.ts";
import { ask, COMPUTE_MS, openProcess, type QuotaProcess, run } from "../flow/quota/reconciling.ts";
import { QuotaLog, START } from "../flow/quota/told.ts";
import { type FreshDatabase, freshDatabase } from "../postgres.ts";
import { type RedisServer, startRedis } from "../redis.ts";

const NAMESPACES = Array.from({ length: 25 }, (_, i) => String(i + 1));

let db: FreshDatabase;
let redis: RedisServer;
let quota: QuotaProcess;
const log = new QuotaLog(1);

beforeAll(async () => {
  [db, redis] = await Promise.all([freshDatabase(), startRedis()]);
  await log.load(db.owner);
  const place = { kind: "single", url: redis.url } as const;
  quota = await openProcess({ sql: db.writer, clock: { now: () => START }, place });
});
afterAll(async () => {
  await quota.close();
  await Promise.all([redis.stop(), db.drop()]);
});

/** The first round of one that is started now, and what it logged. */
async function firstRound(): Promise<{ round: Reconciled; lines: Record<string, unknown>[] }> {
  await db.owner`truncate reconciliations`;
  const lines: Record<string, unknown>[] = [];
  const logger = openLog("info", { write: (line) => void lines.push(JSON.parse(line)) });
  const abort = new AbortController();
  const { signal } = abort;
  let ended = Promise.resolve();
  const round = await new Promise<Reconciled>((reconciled) => {
    const metrics = { reconciled };
    ended = startReconciling({ quota, sql: db.writer, log: logger, metrics, signal });
  });
  abort.abort();
  await ended;
  return { round, lines };
}

test("what a round finds is a line each, twenty at most, counted in full, and an error if it is much", async () => {
  for (const namespace of NAMESPACES) {
    await ask(quota, { log: log.log, namespace }, run(quota, `5${namespace}`, 60_000));
    const name = `minutebook:quota:{${log.log}:${namespace}}`;
    const [, ...rest] = String(await redis.say("HGET", name, "s")).split(",");
    await redis.say("HSET", name, "s", [3n * COMPUTE_MS, ...rest].join());
  }
  const { lines, round } = await firstRound();
  expect(round).toMatchObject({ namespaces: 25, alarming: true });
  expect([...round.drift]).toEqual([["sums", 25]]);
  const said = lines.filter(({ msg }) => msg === "live usage differed, repaired");
  expect(said).toHaveLength(20);
  expect(said[0]).toMatchObject({ kind: "sums", log: log.log, minutes: "1.0000" });
  expect(lines.at(-1)).toMatchObject({
    msg: "live usage was far off",
    drift: { sums: 25 },
    lines_left_out: 5,
  });
});

test("a round that finds nothing says nothing, and is no alarm", async () => {
  const { lines, round } = await firstRound();
  expect([lines, round.alarming, [...round.drift]]).toEqual([[], false, []]);
});
