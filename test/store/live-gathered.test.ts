/** Namespaces that are asked in one turn: one command to a single server, and nothing of one in another. */
import { afterAll, beforeAll, expect, test } from "vitest";
import type { NamespaceKey } from "../../src/core/quota/live.ts";
import { openLiveRedis, type RedisStore } from "../../src/store/live-redis.ts";
import { command, goOn, run, start } from "../core/quota/live.ts";
import { type RedisServer, startRedis } from "../redis.ts";

const COUNT = 300;

let server: RedisServer;
let redis: RedisStore;

beforeAll(async () => {
  server = await startRedis({ settings: { "maxmemory-policy": "noeviction" } });
  redis = await openLiveRedis({ kind: "single", url: server.url }, { answerMsMax: 20_000 });
});

afterAll(async () => {
  await redis.close();
  await server.stop();
});

function keyOf(namespace: number): NamespaceKey {
  return { log: "0123456789abcdef0123456789abcdef", namespace: String(namespace) };
}

async function commands(): Promise<number> {
  const stats = String(await server.say("INFO", "commandstats"));
  return Number(/cmdstat_evalsha:calls=(\d+)/.exec(stats)?.[1] ?? 0);
}

test("many namespaces are few commands, each has its own answer, and one that is asked twice is asked in order", async () => {
  await redis.run(keyOf(0), command([goOn("1")]));
  const before = await commands();
  const keys = Array.from({ length: COUNT }, (_, i) => keyOf(i));
  const answers = await Promise.all([
    ...keys.map((key, i) => redis.run(key, command([run("1", BigInt(i))]))),
    ...keys.map((key, i) => redis.run(key, command([run("2", 1_000n), goOn(String(i))]))),
  ]);
  expect(answers).toMatchObject([
    ...keys.map((_, i) => ({ live: BigInt(i), results: { length: 1 } })),
    ...keys.map((_, i) => ({ live: BigInt(i) + 1_000n, results: { length: 2 } })),
  ]);
  expect((await commands()) - before).toBeLessThan(COUNT / 10);
});

test("what is refused of one namespace is answered of the others", async () => {
  await redis.run(keyOf(1), command([run("1", 5n)]));
  await server.say("CONFIG", "SET", "maxmemory", "1");
  const [refused, answered] = await Promise.allSettled([
    redis.run(keyOf(COUNT), command([start("3")])),
    redis.run(keyOf(1), command([goOn("1")])),
  ]);
  expect(refused).toMatchObject({ status: "rejected", reason: { message: /OOM/ } });
  expect(answered).toMatchObject({ status: "fulfilled", value: { kind: "done" } });
});
