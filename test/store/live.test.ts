/** Live usage in a real Redis and a real Cluster: what only a server can show. */
import fc from "fast-check";
import { Redis } from "ioredis";
import { afterAll, beforeAll, expect, onTestFinished, test } from "vitest";
import type {
  Answer,
  Ask,
  Command,
  Done,
  LiveStore,
  NamespaceKey,
} from "../../src/core/quota/live.ts";
import { openLiveProcess } from "../../src/store/live-process.ts";
import { openLiveRedis, type RedisStore } from "../../src/store/live-redis.ts";
import { slotOf } from "../../src/store/redis-slot.ts";
import { command, figures, goOn, NOW, neverRan, run, start } from "../core/quota/live.ts";
import { type RedisCluster, type RedisServer, startRedis, startSteadyCluster } from "../redis.ts";

const LOG = "0123456789abcdef0123456789abcdef";
/** What is tested here is what is answered, on a machine that does a lot beside. */
const PATIENT = { answerMsMax: 20_000 };
const HOUR = 3_600_000;
const MINUTE = 60_000n * 1_000_000n;

let single: RedisServer;
let cluster: RedisCluster;
let redis: RedisStore;
let clustered: RedisStore;

beforeAll(async () => {
  [single, cluster] = await Promise.all([startRedis(), startSteadyCluster()]);
  redis = await openLiveRedis({ kind: "single", url: single.url }, PATIENT);
  clustered = await openLiveRedis({ kind: "cluster", urls: cluster.urls }, PATIENT);
});

afterAll(async () => {
  await Promise.all([redis.close(), clustered.close()]);
  await Promise.all([single.stop(), cluster.stop()]);
});

let namespaces = 0;

function fresh(): NamespaceKey {
  namespaces += 1;
  return { log: LOG, namespace: String(namespaces) };
}

function nameOf({ log, namespace }: NamespaceKey): string {
  return `minutebook:quota:{${log}:${namespace}}`;
}

async function done(store: LiveStore, key: NamespaceKey, given: Command): Promise<Done> {
  return asDone(await store.run(key, given));
}

function asDone(answer: Answer): Done {
  if (answer.kind !== "done") throw new Error(`answered: ${answer.kind}`);
  return answer;
}

function allowed({ results }: Done): boolean[] {
  return results.map((result) => result.allowed);
}

test("T38: live usage that a flush took is whole again with the next heartbeat, and not double", async () => {
  const key = fresh();
  await done(redis, key, command([run("1", 100n), run("2", 40n)]));
  await single.say("FLUSHALL");
  expect(await done(redis, key, command([goOn("1")]))).toMatchObject({ live: 0n });
  expect(await done(redis, key, command([run("1", 130n)]))).toMatchObject({ live: 130n });
  expect(await done(redis, key, command([run("2", 70n), run("1", 130n)]))).toMatchObject({
    live: 200n,
  });
});

test("T39: a stale writer never replaces newer figures, and is answered by them", async () => {
  const key = fresh();
  const newer = figures({ asOf: 20n, touched: 4n, startBound: 5n, text: '{"limit":"5"}' });
  const stale = figures({ asOf: 12n, startBound: 1_000n, text: '{"limit":"1000"}' });
  await done(redis, key, command([run("1", 5n)], { figures: newer }));
  const answer = await done(redis, key, command([start("2")], { figures: stale }));
  expect(answer.figures).toEqual(newer);
  expect(allowed(answer)).toEqual([false]);
  expect((await done(redis, key, command([goOn("1")], { figures: newer }))).figures).toEqual(newer);
});

test("T41: a key that was evicted is rebuilt from the callers' figures, and the older caller makes no fork", async () => {
  const key = fresh();
  const older = figures({ asOf: 10n, startBound: 600n });
  const newer = figures({ asOf: 11n, startBound: 100n, text: '{"limit":"100"}' });
  await done(redis, key, command([run("1", 90n)], { figures: newer }));
  expect(await single.say("UNLINK", nameOf(key))).toBe(1);
  expect((await done(redis, key, command([run("1", 95n)], { figures: older }))).figures).toEqual(
    older,
  );
  const answer = await done(redis, key, command([start("2", 10n)], { figures: newer }));
  expect(answer).toMatchObject({ figures: newer, live: 95n, reserved: 10n });
  const behind = await done(redis, key, command([start("3", 10n)], { figures: older }));
  expect(behind).toMatchObject({ figures: newer, live: 95n, reserved: 10n });
  expect(allowed(behind)).toEqual([false]);
});

test.each([1, 7])(
  "T42: of 200 starts at once with %i minutes left, each is granted its own minute and no minute twice",
  async (left) => {
    const own = figures({ startBound: BigInt(left) * MINUTE });
    const other = await openLiveRedis({ kind: "single", url: single.url }, PATIENT);
    const places = [[redis, other], [clustered], [openLiveProcess()]];
    for (const stores of places) {
      const key = fresh();
      const answers = await Promise.all(
        Array.from({ length: 200 }, (_, i) => {
          const store = stores[i % stores.length] ?? redis;
          return done(store, key, command([start(String(i), MINUTE)], { figures: own }));
        }),
      );
      expect(answers.flatMap(allowed).filter(Boolean)).toHaveLength(left);
    }
    await other.close();
  },
);

test("T43: denied attempts change nothing, and a raise is there at once", async () => {
  const key = fresh();
  const name = nameOf(key);
  const full = figures({ startBound: 50n });
  await done(redis, key, command([start("1", 50n)], { figures: full }));
  const client = new Redis(single.port);
  const before = await client.dumpBuffer(name);
  for (const id of ["2", "3", "2"]) {
    const answer = await done(redis, key, command([start(id), goOn("9")], { figures: full }));
    expect(allowed(answer)).toEqual([false, true]);
  }
  expect(before?.length).toBeGreaterThan(0);
  expect(await client.dumpBuffer(name)).toEqual(before);
  client.disconnect();
  const raised = figures({ asOf: 11n, touched: 10n, startBound: 51n });
  const answer = await done(
    redis,
    key,
    command([start("2", 1n), start("3", 1n)], { figures: raised }),
  );
  expect(allowed(answer)).toEqual([true, false]);
});

test("T45: all of a namespace is one key of one slot, and a command over two namespaces is rejected", async () => {
  const keys = Array.from({ length: 20 }, fresh);
  for (const key of keys) await done(clustered, key, command([start("1"), run("2", 5n)]));
  const sizes = await Promise.all(cluster.masters.map((node) => node.say("DBSIZE")));
  expect(sizes.reduce((sum: number, size) => sum + Number(size), 0)).toBeGreaterThanOrEqual(20);
  for (const key of keys) {
    const there = await Promise.allSettled(
      cluster.masters.map((node) => node.say("TYPE", nameOf(key))),
    );
    expect(
      there.filter((each) => each.status === "fulfilled" && each.value === "hash"),
    ).toHaveLength(1);
  }
  const [one, other] = keys.map(nameOf);
  const master = cluster.masters[0];
  const both = master?.say("EVAL", "return 1", "2", one ?? "", other ?? "");
  await expect(both).rejects.toThrow("CROSSSLOT");
});

test("the slot of a key is the one that the server says", async () => {
  await fc.assert(
    fc.asyncProperty(fc.bigInt(0n, 2n ** 128n - 1n), fc.bigInt(0n, 2n ** 63n), async (log, id) => {
      const key = { log: log.toString(16).padStart(32, "0"), namespace: String(id) };
      const slot = await cluster.masters[0]?.say("CLUSTER", "KEYSLOT", nameOf(key));
      expect(slotOf(nameOf(key))).toBe(slot);
    }),
    { numRuns: 20 },
  );
});

test("amounts beyond 2^53 and 2^63 are exact to the last digit", async () => {
  const key = fresh();
  const amounts = [2n ** 53n + 1n, 2n ** 63n + 1n, 10n ** 47n + 1n, 10n ** 14n - 1n, 1n];
  const sum = amounts.reduce((total, amount) => total + amount);
  const asks = amounts.map((amount, i) => run(String(i), 1n, amount));
  const exactly = figures({ runBound: sum });
  expect(allowed(await done(redis, key, command(asks, { figures: exactly })))).not.toContain(false);
  const less = figures({ runBound: sum - 1n, asOf: 11n });
  const answer = await done(redis, key, command([goOn("0")], { figures: less, since: 10n }));
  expect(answer).toMatchObject({ live: sum, reserved: 0n });
  expect(allowed(answer)).toEqual([false]);
});

test("a quantity that the sums have no room for is refused before it is sent", async () => {
  for (const store of [redis, openLiveProcess()]) {
    const refused = store.run(fresh(), command([run("1", 1n, 10n ** 48n)]));
    await expect(refused).rejects.toThrow("out of range");
    await expect(store.run(fresh(), command([], { now: NOW + 0.5 }))).rejects.toThrow("whole");
  }
});

test("a server that forgot the script is taught it again", async () => {
  const key = fresh();
  await done(redis, key, command([run("1", 5n)]));
  await single.say("SCRIPT", "FLUSH");
  expect(await done(redis, key, command([run("1", 6n)]))).toMatchObject({ live: 6n });
  const calls = String(await single.say("INFO", "commandstats"));
  await done(redis, key, command([goOn("1")]));
  const after = String(await single.say("INFO", "commandstats"));
  const evals = (text: string): string | undefined => /cmdstat_eval:calls=(\d+)/.exec(text)?.[1];
  expect(evals(after)).toBe(evals(calls));
});

test("a memory that is full and evicts nothing refuses what would be written, whole, and answers the rest", async () => {
  const full = await startRedis({ settings: { "maxmemory-policy": "noeviction" } });
  const store = await openLiveRedis({ kind: "single", url: full.url }, PATIENT);
  onTestFinished(async () => {
    await store.close();
    await full.stop();
  });
  const key = fresh();
  await done(store, key, command([run("1", 5n)]));
  const before = await full.say("HGETALL", nameOf(key));
  await full.say("CONFIG", "SET", "maxmemory", "1");
  await expect(store.run(key, command([run("1", 9n), start("2")]))).rejects.toThrow("OOM");
  expect(allowed(await done(store, key, command([goOn("1")])))).toEqual([true]);
  expect(await full.say("HGETALL", nameOf(key))).toEqual(before);
});

test("a key lives a day longer than the last of its jobs, and looking at it does not prolong that", async () => {
  const key = fresh();
  const ttl = async (): Promise<number> => Number(await single.say("PTTL", nameOf(key)));
  const day = 86_400_000;
  const look = (asOf: bigint): Command =>
    command([], { figures: figures({ asOf }), inspect: true });
  await done(redis, key, look(10n));
  expect(await ttl()).toBe(-2);
  const asks: Ask[] = [start("1", 1n, NOW + 5_000), run("2", 1n, 1n, NOW + 10 * day)];
  await done(redis, key, command(asks));
  expect(await ttl()).toBeGreaterThan(11 * day - 60_000);
  expect(await ttl()).toBeLessThanOrEqual(11 * day);
  await single.say("PEXPIRE", nameOf(key), "5000");
  await done(redis, key, { ...look(11n), since: 10n, settled: ["2"] });
  expect(await ttl()).toBeLessThanOrEqual(5_000);
  expect(await ttl()).toBeGreaterThan(0);
  await done(redis, key, command([neverRan("1")], { figures: figures({ asOf: 11n }) }));
  expect(await ttl()).toBeGreaterThan(day - 60_000);
});

test("a thousand jobs in one command are all kept, and all forgotten when they have run out", async () => {
  const key = fresh();
  const asks = Array.from({ length: 2_500 }, (_, i) => run(String(i), 2n, 2n, NOW + HOUR));
  const all = await done(redis, key, command(asks, { inspect: true }));
  expect(all.live).toBe(5_000n);
  expect(all.jobs).toHaveLength(2_500);
  const later = { now: NOW + HOUR, inspect: true } as const;
  expect(await done(redis, key, command([], later))).toMatchObject({ live: 0n, jobs: [] });
  // What is kept of the namespace itself.
  expect(await single.say("HLEN", nameOf(key))).toBe(4);
});

test("a running job takes less than 200 bytes of Redis, a namespace less than 2 kilobytes", async () => {
  const key = fresh();
  const usage = async (): Promise<number> =>
    Number(await single.say("MEMORY", "USAGE", nameOf(key), "SAMPLES", "0"));
  const text = JSON.stringify({ shown: "x".repeat(600) });
  const own = figures({ text, startBound: undefined, runBound: undefined });
  const jobs = (from: number, to: number): Ask[] =>
    Array.from({ length: to - from }, (_, i) => {
      return run(String(12_345_678_900 + from + i), 3_600_000n, 3_600_000_000_000n + BigInt(i));
    });
  await done(redis, key, command(jobs(0, 1), { figures: own }));
  const one = await usage();
  await done(redis, key, command(jobs(1, 1_001), { figures: own }));
  const each = ((await usage()) - one) / 1_000;
  expect(one).toBeLessThan(2_048);
  expect(each).toBeLessThan(200);
});

test.each(["single", "cluster"])("all namespaces are walked, in pages (%s)", async (kind) => {
  const store = kind === "single" ? redis : clustered;
  const keys = Array.from({ length: 1_200 }, fresh);
  await Promise.all(keys.map((key) => done(store, key, command([start("1")]))));
  const seen = new Set<string>();
  for await (const page of store.walk()) {
    for (const { log, namespace } of page) if (log === LOG) seen.add(namespace);
  }
  expect(keys.filter(({ namespace }) => !seen.has(namespace))).toEqual([]);
});

test("the copy of a process is bounded: what was asked for longest ago is forgotten first", async () => {
  const store = openLiveProcess({ namespacesMax: 3 });
  const [first, second, ...rest] = Array.from({ length: 4 }, fresh);
  if (first === undefined || second === undefined) throw new Error("no keys");
  for (const key of [first, second]) await done(store, key, command([run("1", 5n)]));
  await done(store, first, command([goOn("1")]));
  for (const key of rest) await done(store, key, command([run("1", 5n)]));
  expect(await done(store, first, command([goOn("1")]))).toMatchObject({ live: 5n });
  expect(await done(store, second, command([goOn("1")]))).toMatchObject({ live: 0n });
});
