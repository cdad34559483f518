import { afterAll, beforeAll, expect, test } from "vitest";
import { openLiveUsage } from "../../src/command/live-quota.ts";
import { openLog } from "../../src/telemetry.ts";
import { ask, everybody, type House, openHouse } from "../http/house.ts";
import { type RedisServer, startRedis } from "../redis.ts";

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

test.each([
  ["production", 1],
  ["development", 0],
] as const)(
  "in %s it is said that one process alone can do without a Redis",
  async (mode, times) => {
    const lines: string[] = [];
    const log = openLog("info", { write: (line) => void lines.push(line) });
    const live = await openLiveUsage({ redis: undefined, mode, clock: house.clock, log });
    expect(live.state()).toBe("none");
    expect(lines.filter((line) => line.includes("no Redis is configured"))).toHaveLength(times);
    await live.close();
  },
);
