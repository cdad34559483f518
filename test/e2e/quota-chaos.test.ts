/**
 * What live quota is worth when things break: five thousand jobs in five hundred namespaces say that they
 * run, others end and start, and under all of it Redis or a service fails. Everything that is answered is
 * kept, and recounted from the log.
 */
import { afterAll, beforeAll, expect, test } from "vitest";
import { type RedisServer, startCluster, startRedis } from "../redis.ts";
import { Chaos } from "./quota/chaos.ts";

let redis: RedisServer;
let chaos: Chaos;

beforeAll(async () => {
  redis = await startRedis();
  chaos = await Chaos.open({ REDIS_URL: redis.url });
});
afterAll(async () => {
  await chaos.close();
  await redis.stop();
});

/** Each told of what ran beyond its quota, and how much was answered without Redis. */
async function sound(): Promise<number> {
  const { alone, beats, stopped } = await chaos.expectSound();
  expect(beats).toBeGreaterThan(10_000);
  expect(stopped).toBeGreaterThan(1_000);
  return alone;
}

test("a service killed: the other says what it would have said", async () => {
  await chaos.during(() => chaos.killService());
  await chaos.expectWhole();
  await sound();
});

test("Redis killed and started empty: what its processes heard is there again", async () => {
  await chaos.during(async () => {
    await redis.kill("SIGKILL");
    await chaos.traffic.rounds(1);
    await redis.restart();
  });
  await chaos.expectWhole();
  expect(await sound()).toBeGreaterThan(0);
});

test("Redis flushed", async () => {
  await chaos.during(async () => {
    await redis.say("FLUSHALL");
  });
  await chaos.expectWhole();
  await sound();
});

test("Redis stopped for some seconds: what was sent to it meanwhile comes too late to count", async () => {
  await chaos.during(async () => {
    await redis.kill("SIGSTOP");
    await chaos.traffic.rounds(1);
    await redis.kill("SIGCONT");
  });
  await chaos.expectWhole();
  expect(await sound()).toBeGreaterThan(0);
});

test("Redis full, with nothing to be evicted", async () => {
  await chaos.during(async () => {
    await fill(redis);
    await chaos.traffic.rounds(1);
    await redis.say("CONFIG", "SET", "maxmemory", "0");
  });
  await chaos.expectWhole();
  expect(await sound()).toBeGreaterThan(0);
});

test("Redis restored from an old dump: who has ended since does not run again", async () => {
  await chaos.during(async () => {
    await redis.say("SAVE");
    await chaos.traffic.rounds(2);
    await redis.restart();
  });
  await chaos.expectWhole();
  await sound();
});

test("a master of a Cluster killed: its replica goes on with what it has", async () => {
  const cluster = await startCluster();
  try {
    await chaos.moveTo({ REDIS_CLUSTER_URLS: cluster.urls.join(",") });
    await chaos.during(() => cluster.failover(0));
    await chaos.expectWhole();
    await sound();
  } finally {
    await cluster.stop();
  }
});

/** Until it takes nothing more: what a refused value took on its way in is free again, so smaller ones follow. */
async function fill(server: RedisServer): Promise<void> {
  await server.say("CONFIG", "SET", "maxmemory-policy", "noeviction");
  await server.say("CONFIG", "SET", "maxmemory", "32mb");
  for (const size of [1 << 20, 1 << 14, 1 << 8]) {
    const put = (): Promise<unknown> => server.say("APPEND", `filler ${size}`, "x".repeat(size));
    await expect
      .poll(() => put().catch((error: Error) => error.message), { interval: 1, timeout: 20_000 })
      .toMatch(/^OOM/);
  }
}
