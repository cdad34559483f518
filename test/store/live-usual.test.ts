/** One job at a time by figures that are kept already: what the script answers by its shortest way. */
import { afterAll, beforeAll, expect, test } from "vitest";
import type { Command, Done, NamespaceKey } from "../../src/core/quota/live.ts";
import { openLiveRedis, type RedisStore } from "../../src/store/live-redis.ts";
import { command, figures, goOn, NOW, run, start } from "../core/quota/live.ts";
import { type RedisServer, startRedis } from "../redis.ts";

const LOG = "0123456789abcdef0123456789abcdef";
const DAY = 86_400_000;
const roomy = figures({ startBound: undefined, runBound: undefined, until: NOW + 10 * DAY });

let server: RedisServer;
let redis: RedisStore;

beforeAll(async () => {
  server = await startRedis();
  redis = await openLiveRedis({ kind: "single", url: server.url }, { answerMsMax: 20_000 });
});

afterAll(async () => {
  await redis.close();
  await server.stop();
});

const key = (namespace: string): NamespaceKey => ({ log: LOG, namespace });

async function done(where: NamespaceKey, given: Command): Promise<Done> {
  const answer = await redis.run(where, given);
  if (answer.kind !== "done") throw new Error(`answered: ${answer.kind}`);
  return answer;
}

async function calls(name: string): Promise<number> {
  const stats = String(await server.say("INFO", "commandstats"));
  return Number(new RegExp(`cmdstat_${name}:calls=(\\d+)`).exec(stats)?.[1] ?? 0);
}

test("sums that pass 2^53 one raise at a time are exact to the last digit", async () => {
  const where = key("1");
  const amounts = [2n ** 53n - 3n, 2n ** 53n + 1n, 10n ** 15n - 1n, 1n];
  let sum = 0n;
  for (const [i, amount] of amounts.entries()) {
    await done(where, command([run(String(i), 1n, 0n)], { figures: roomy }));
    await done(where, command([run(String(i), 2n, amount)], { figures: roomy }));
    sum += amount;
  }
  for (let more = 1n; more <= 5n; more += 1n) {
    const answer = await done(where, command([run("3", 2n + more, 1n + more)], { figures: roomy }));
    expect(answer).toMatchObject({ live: sum + more, reserved: 0n });
  }
});

test("one job asked about is one read of what is kept, and one write where something changes", async () => {
  const where = key("2");
  const asks = [start("1"), run("2", 1n)];
  for (const ask of asks) await done(where, command([ask], { figures: roomy }));
  const names = ["hmget", "hset", "hget", "pexpire"];
  const before = await Promise.all(names.map(calls));
  for (const ask of [start("3"), run("2", 2n), run("2", 2n), goOn("2")]) {
    await done(where, command([ask], { figures: roomy }));
  }
  const after = await Promise.all(names.map(calls));
  expect(after.map((count, i) => count - (before[i] ?? 0))).toEqual([4, 2, 0, 0]);
});

test("sums that single asks leave are those of the jobs, also how many there are and when they end", async () => {
  const where = key("4");
  const said = [start("1", 60n), run("1", 1n, 70n), run("2", 1n, 5n, NOW + DAY), run("2", 2n, 7n)];
  const sums = (): Promise<unknown> =>
    server.say("HGET", `minutebook:quota:{${LOG}:4}`, "s") as Promise<unknown>;
  for (const ask of [goOn("9"), ...said, run("3", 1n, 0n, NOW + 2 * DAY)]) {
    await done(where, command([ask], { figures: roomy }));
  }
  const kept = await sums();
  await done(where, command([], { figures: roomy, recount: true }));
  expect(await sums()).toBe(kept);
  expect(kept).toMatch(/^77,77,3,/);
});

test("what is no such call is found out in one pass, however long its quantities are", async () => {
  const where = key("5");
  const micros = async (quantity: bigint): Promise<number> => {
    await server.say("CONFIG", "RESETSTAT");
    await done(where, command([run("1", quantity), run("2", quantity)], { figures: roomy }));
    const stats = String(await server.say("INFO", "commandstats"));
    return Number(/cmdstat_evalsha:.*?usec_per_call=([\d.]+)/.exec(stats)?.[1]);
  };
  const [short, long]: [number[], number[]] = [[], []];
  for (let i = 0; i < 20; i += 1) {
    short.push(await micros(1n));
    long.push(await micros(10n ** 48n - 1n));
  }
  // Half as much again, with limbs to add; where each way to part the digits is tried, five times.
  expect(Math.min(...long)).toBeLessThan(3 * Math.min(...short));
});

test("a key that is asked about one job at a time lives a day longer than that, and than its last job", async () => {
  const where = key("3");
  const name = `minutebook:quota:{${LOG}:3}`;
  const ttl = async (): Promise<number> => Number(await server.say("PTTL", name));
  const at = (ms: number, asOf = 10n) => ({
    now: NOW + ms,
    figures: { ...roomy, asOf },
    since: 10n,
  });
  await done(where, command([run("1", 1n, 1n, NOW + 2 * DAY)], at(0)));
  await done(where, command([run("1", 2n, 2n, NOW + 3 * DAY)], at(1)));
  expect(await ttl()).toBeGreaterThan(4 * DAY - 60_000);
  await done(where, command([goOn("1")], at(3 * DAY)));
  await server.say("PEXPIRE", name, "60000");
  await done(where, command([goOn("1")], at(3 * DAY + 1, 11n)));
  expect(await ttl()).toBeGreaterThan(DAY - 60_000);
});
