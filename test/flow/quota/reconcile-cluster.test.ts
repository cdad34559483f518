/** The reconciler over a real Redis Cluster: namespaces lie on several masters, and one of those loses all. */
import { afterAll, beforeAll, expect, test } from "vitest";
import { type FreshDatabase, freshDatabase } from "../../postgres.ts";
import { type RedisCluster, startCluster } from "../../redis.ts";
import { ask, COMPUTE_MS, found, openProcess, type QuotaProcess, run } from "./reconciling.ts";
import { QuotaLog, START } from "./told.ts";

const NAMESPACES = Array.from({ length: 12 }, (_, i) => String(i + 1));

let db: FreshDatabase;
let cluster: RedisCluster;
let process: QuotaProcess;
let time = START + 86_400_000;
const log = new QuotaLog(1);

beforeAll(async () => {
  [db, cluster] = await Promise.all([freshDatabase(), startCluster()]);
  for (const namespace of NAMESPACES) log.limit(Number(namespace), 100);
  await log.load(db.owner);
  const place = { kind: "cluster", urls: cluster.urls } as const;
  process = await openProcess({ sql: db.writer, clock: { now: () => time }, place });
});
afterAll(async () => {
  await process.close();
  await Promise.all([cluster.stop(), db.drop()]);
});

test("one master that is flushed loses its namespaces and no other's, and a round brings them back", async () => {
  for (const namespace of NAMESPACES) {
    await ask(process, { log: log.log, namespace }, run(process, `5${namespace}`, 60_000));
  }
  time += 10_000;
  expect(await found(process)).toEqual([]);
  const [master] = cluster.masters;
  const lost = Number(await master?.say("DBSIZE"));
  expect(lost).toBeGreaterThan(0);
  expect(lost).toBeLessThan(NAMESPACES.length);
  await master?.say("FLUSHALL");
  expect((await found(process)).map((line) => line.split(" ")[0])).toEqual(
    Array(lost).fill("lost"),
  );
  for (const namespace of NAMESPACES) {
    const { live, source } = await ask(process, { log: log.log, namespace });
    expect([live, source]).toEqual([60_000n * COMPUTE_MS, "redis"]);
  }
  expect(await found(process)).toEqual([]);
});
