import { readFileSync } from "node:fs";
import { afterAll, beforeAll, expect, test } from "vitest";
import { openLiveRedis, type RedisPlace } from "../../src/store/live-redis.ts";
import { ask, everybody, type House, openHouse } from "../http/house.ts";
import { type RedisServer, startCluster, startRedis } from "../redis.ts";

let redis: RedisServer;
let house: House;

beforeAll(async () => {
  redis = await startRedis();
  await redis.kill("SIGKILL");
  const place = { kind: "single", url: redis.url } as const;
  house = await openHouse({
    quota: { redis: place, withoutRedis: "plan", startReserveMs: 60_000 },
  });
});

afterAll(async () => {
  await house.close();
  await redis.stop();
});

const said = (text: string): string[] => house.logged.filter((line) => line.includes(text));
const state = async (): Promise<unknown> => (await ask(house, "GET /readyz")).json["redis"];

test("a service starts without its Redis, says so once, and takes it up when it comes", async () => {
  expect(await ask(house, "GET /readyz")).toMatchObject({ status: 200, json: { redis: "away" } });
  const token = await everybody();
  const { text } = await ask(house, "GET /metrics", { token });
  expect(text).toContain('minutebook_redis_state{state="away"} 1');
  expect(said("redis, quota is decided by what this process knows")).toHaveLength(1);
  await redis.restart();
  await expect.poll(state, { timeout: 20_000 }).toBe("up");
  await expect.poll(() => said("goes on"), { timeout: 20_000 }).toHaveLength(1);
  expect(house.logged.join()).not.toContain(redis.url);
});

const FIGURES = {
  ...{ asOf: 1n, touched: 0n, from: 0, until: 2, startBound: 1n, runBound: 1n },
  ...{ readAt: 1, text: "{}" },
};
const KEY = { log: "0a".repeat(16), namespace: "1" };

/** A heartbeat is taken, and its namespace found again. */
async function works(place: RedisPlace): Promise<void> {
  const store = await openLiveRedis(place);
  const run = { kind: "run", job: "1", amount: 1n, elapsedMs: 1n, until: 3, by: 2n } as const;
  const command = { now: 1, figures: FIGURES, since: 0n, settled: [], asks: [run] };
  expect(await store.run(KEY, command)).toMatchObject({ kind: "done", live: 1n });
  const found: unknown[] = [];
  for await (const keys of store.walk()) found.push(...keys);
  expect(found).toEqual([KEY]);
  await store.close();
}

test("the rights that the manual asks for are enough, on a server and in a Cluster", async () => {
  const manual = readFileSync(new URL("../../docs/operations.md", import.meta.url), "utf8");
  const [, rights = ""] = /ACL (SETUSER .+)$/m.exec(manual) ?? [];
  const words = rights.replace("PASSWORD", "hush").split(" ");
  const named = (url: string): string => url.replace("redis://", "redis://minutebook:hush@");
  const refused = async (server: RedisServer): Promise<unknown> => await server.say("ACL", "LOG");

  await redis.say("ACL", ...words);
  await works({ kind: "single", url: named(redis.url) });
  expect(await refused(redis)).toEqual([]);

  const cluster = await startCluster();
  try {
    const nodes = [...cluster.masters, ...cluster.replicas];
    await Promise.all(nodes.map((node) => node.say("ACL", ...words)));
    await works({ kind: "cluster", urls: cluster.urls.map(named) });
    for (const node of nodes) expect(await refused(node)).toEqual([]);
  } finally {
    await cluster.stop();
  }
});
