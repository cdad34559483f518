import { randomUUID } from "node:crypto";
import { readFileSync } from "node:fs";
import { afterAll, beforeAll, expect, test, vi } from "vitest";
import { openPace, type Pace } from "../../../src/flow/access/pace.ts";
import { openRateLimits, type RateLimits } from "../../../src/store/rate-limits.ts";
import { type RedisServer, startRedis } from "../../redis.ts";

let redis: RedisServer;
const opened: RateLimits[] = [];
beforeAll(async () => {
  redis = await startRedis();
});
afterAll(async () => {
  for (const limits of opened) limits.close();
  await redis.stop();
});

function open(place?: Parameters<typeof openRateLimits>[0]): RateLimits {
  // On a machine that does a lot beside, a late answer is no answer of another process.
  const limits = openRateLimits(place, undefined, 20_000);
  opened.push(limits);
  return limits;
}

/** How many of so many requests went through. */
async function through(pace: Pace, name: string, count: number): Promise<number> {
  const asked = Array.from({ length: count }, async () => await pace(name));
  const settled = await Promise.allSettled(asked);
  const refused = settled.flatMap((one) => (one.status === "rejected" ? [one.reason] : []));
  for (const reason of refused) {
    expect(reason).toMatchObject({ code: "rate-limited" });
    // What is left of the window: to the second it is asked of a clock of its own, below.
    const seconds = Number(reason.extension.retry_after_s);
    expect(seconds > 0 && seconds <= window.seconds).toBe(true);
  }
  return count - refused.length;
}

const window = { kind: "test", points: 1_000, seconds: 600 };

test("of more requests than a window has, just so many go through, of each who asks", async () => {
  const pace = openPace(open(), window);
  expect(await through(pace, "one", 1_500)).toBe(1_000);
  expect(await through(pace, "one", 10)).toBe(0);
  expect(await through(pace, "other", 200)).toBe(200);
});

test("who has been let wait for the first lot goes on without waiting", async () => {
  const pace = openPace(open(), window);
  await pace("one");
  expect(pace("one")).toBeUndefined();
});

test("a new window begins when the old one is over", async () => {
  const clock = { ms: 0 };
  const taken: number[] = [];
  const limits = {
    open: () => async () => {
      taken.push(clock.ms);
      return { granted: clock.ms === 0 ? taken.length < 2 : true, ms: 10_000 };
    },
    close: () => undefined,
  };
  const pace = openPace(limits, { ...window, points: 100 }, () => clock.ms);
  await pace("one");
  await expect(pace("one")).rejects.toMatchObject({ extension: { retry_after_s: "10" } });
  clock.ms = 9_001;
  expect(() => pace("one")).toThrow("rate-limited");
  clock.ms = 10_000;
  await pace("one");
  expect(taken).toEqual([0, 0, 10_000]);
});

test("what Redis has to allow for it is in the manual", async () => {
  const manual = readFileSync("docs/operations.md", "utf8");
  const [, rights = ""] = /ACL (SETUSER .+)$/m.exec(manual) ?? [];
  await redis.say("ACL", ...rights.replace("PASSWORD", "hush").split(" "));
  const url = redis.url.replace("redis://", "redis://minutebook:hush@");
  const pace = openPace(open({ kind: "single", url }), { ...window, kind: "allowed" });
  await vi.waitUntil(
    async () => {
      await pace(randomUUID());
      return ((await redis.say("KEYS", "minutebook:rate:allowed*")) as string[]).length > 0;
    },
    { timeout: 20_000 },
  );
  expect(await redis.say("ACL", "LOG")).toEqual([]);
});

test("two processes over one Redis let through together what one would, and apart when it is away", async () => {
  const place = { kind: "single", url: redis.url } as const;
  const kind = { ...window, kind: "shared" };
  const [here, there] = [openPace(open(place), kind), openPace(open(place), kind)];
  const keys = async () => (await redis.say("KEYS", "minutebook:rate:shared*")) as string[];
  // Each by a name of its own: both have to have found Redis, not one of them.
  await vi.waitUntil(
    async () => {
      await here("here");
      await there("there");
      return (await keys()).length === 2;
    },
    { timeout: 20_000 },
  );
  const both = await Promise.all([through(here, "one", 800), through(there, "one", 800)]);
  expect(both[0] + both[1]).toBe(1_000);
  await redis.kill("SIGKILL");
  expect(await through(here, "another", 1_200)).toBe(1_000);
  expect(await through(there, "another", 1_200)).toBe(1_000);
});
