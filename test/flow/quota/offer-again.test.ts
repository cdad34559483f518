/** What a process heard and others have given up: it goes on to count for nobody. */
import { afterAll, afterEach, beforeAll, beforeEach, expect, test } from "vitest";
import { type FreshDatabase, freshDatabase } from "../../postgres.ts";
import { type RedisServer, startRedis } from "../../redis.ts";
import { ask, COMPUTE_MS, found, openProcess, type QuotaProcess, run } from "./reconciling.ts";
import { QuotaLog, START } from "./told.ts";

const MINUTE_MS = 60_000;
const LATER_MS = 10_000;

let db: FreshDatabase;
let redis: RedisServer;
let time = START + 86_400_000;
let here: QuotaProcess;
let there: QuotaProcess;
const log = new QuotaLog(1);
const KEY = { log: log.log, namespace: "1" };

beforeAll(async () => {
  db = await freshDatabase();
  log.limit(1, 100);
  await log.load(db.owner);
});
afterAll(() => db.drop());

beforeEach(async () => {
  redis = await startRedis();
  const place = { kind: "single", url: redis.url } as const;
  const at = { sql: db.writer, clock: { now: () => time }, place, frail: true } as const;
  [here, there] = [await openProcess(at), await openProcess(at)];
});
afterEach(async () => {
  await Promise.all([here.close(), there.close()]);
  await redis.stop();
});

test("what another process gave up is forgotten here by the next round, and stops nobody when Redis goes away", async () => {
  await ask(here, KEY, run(here, 300, 2_000 * MINUTE_MS), run(here, 301, MINUTE_MS));
  await ask(there, KEY, { kind: "never_ran", job: "300" });
  time += LATER_MS;
  expect(await found(here)).toEqual([]);
  await redis.kill("SIGKILL");
  const { live, results, source } = await ask(here, KEY, { kind: "go_on", job: "301" });
  expect([source, live, results[0]?.allowed]).toEqual(["process", 60_000n * COMPUTE_MS, true]);
});
