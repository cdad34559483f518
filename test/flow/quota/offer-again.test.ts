/** What a process heard and others have given up, or a key said that was revoked: it goes on to count for nobody. */
import { afterAll, afterEach, beforeAll, beforeEach, expect, test } from "vitest";
import { type FreshDatabase, freshDatabase } from "../../postgres.ts";
import { type RedisServer, startRedis } from "../../redis.ts";
import { ask, COMPUTE_MS, found, openProcess, type QuotaProcess, run } from "./reconciling.ts";
import { HOSTED, QuotaLog, START } from "./told.ts";

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

/** What it said is not to be believed. */
async function revoke(kid: string): Promise<void> {
  log.append("key_revoked", {
    ...{ by: "p_test", instant: new Date(log.now).toISOString(), kid },
    ...{ last_trusted_counter: "0", reason: "stolen", salt: `${"A".repeat(22)}==` },
  });
  await log.load(db.owner);
}

test("what a revoked key said is taken out by the round, at whichever process it was heard, and stays out after a flush", async () => {
  const stolen = log.enrol(2, [{ ...HOSTED, uuid: "r-9" }]);
  const bad = log.size - 1n;
  log.enrol(3, [{ ...HOSTED, uuid: "r-10" }]);
  const good = log.size - 1n;
  await log.load(db.owner);
  // Made up, and made longer than its own host says.
  await ask(here, KEY, run(here, 400, 900 * MINUTE_MS, bad), run(here, 401, MINUTE_MS, good));
  await ask(there, KEY, run(there, 402, MINUTE_MS, good), run(there, 402, 90 * MINUTE_MS, bad));
  time += LATER_MS;
  expect([await found(here), await found(there)]).toEqual([[], []]);
  await revoke(stolen.kid);
  expect(await found(here)).toEqual(["revoked 1 400", "revoked 1 402"]);
  expect((await ask(there, KEY)).live).toBe(60_000n * COMPUTE_MS);
  expect([await found(there), await found(here)]).toEqual([[], []]);
  await redis.say("FLUSHALL");
  expect([await found(there), await found(here)]).toEqual([[], ["lost 1 401"]]);
  // Its own host says it again, with what is true of it.
  await ask(there, KEY, run(there, 402, 2 * MINUTE_MS, good));
  expect((await ask(here, KEY)).live).toBe(180_000n * COMPUTE_MS);
  expect(await found(here)).toEqual([]);
});
