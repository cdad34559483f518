/** What a Redis keeps of one namespace: as much as is bounded, read no oftener than must be, and only if it can be read. */
import { afterAll, beforeAll, expect, test } from "vitest";
import type { Ask, Command, Done, LiveStore, NamespaceKey } from "../../src/core/quota/live.ts";
import { openLiveProcess } from "../../src/store/live-process.ts";
import { openLiveRedis, type RedisStore } from "../../src/store/live-redis.ts";
import { command, figures, goOn, NOW, neverRan, run, start } from "../core/quota/live.ts";
import { type RedisServer, startRedis } from "../redis.ts";

const LOG = "0123456789abcdef0123456789abcdef";

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

let namespaces = 0;

function fresh(): NamespaceKey {
  namespaces += 1;
  return { log: LOG, namespace: String(namespaces) };
}

function nameOf({ log, namespace }: NamespaceKey): string {
  return `minutebook:quota:{${log}:${namespace}}`;
}

async function done(store: LiveStore, key: NamespaceKey, given: Command): Promise<Done> {
  const answer = await store.run(key, given);
  if (answer.kind !== "done") throw new Error(`answered: ${answer.kind}`);
  return answer;
}

/** How often the server has read all of a key. */
async function readsOfAll(): Promise<number> {
  const stats = String(await server.say("INFO", "commandstats"));
  return Number(/cmdstat_hgetall:calls=(\d+)/.exec(stats)?.[1] ?? 0);
}

test("reservations end one by one, and nothing that goes on is read for it", async () => {
  const key = fresh();
  const copy = openLiveProcess();
  const both = async (given: Command): Promise<Done> => {
    const answer = await done(redis, key, given);
    expect(answer).toEqual(await done(copy, key, given));
    return answer;
  };
  const roomy = figures({ startBound: undefined });
  const at = (seconds: number) => ({ now: NOW + seconds * 1_000, figures: roomy });
  const ids = Array.from({ length: 50 }, (_, i) => String(i));
  const before = await readsOfAll();
  for (const [i, id] of ids.entries()) {
    await both(command([start(id, 60n, NOW + i * 1_000 + 300_000)], at(i)));
    if (i % 2 === 0) await both(command([run(id, 1n)], at(i)));
  }
  const ends = [];
  for (let seconds = 290; seconds <= 360; seconds += 5) {
    ends.push((await both(command([goOn("0")], at(seconds)))).reserved);
  }
  // Of those that were heard of, what they hold beyond what they have used stays.
  expect(ends.at(0)).toBe(25n * 59n + 25n * 60n);
  expect(new Set(ends).size).toBeGreaterThan(4);
  expect(ends.at(-1)).toBe(25n * 59n);
  expect((await both(command([start("1", 60n, NOW + 400_000)], at(361)))).reserved).toBe(
    25n * 59n + 60n,
  );
  expect(await readsOfAll()).toBe(before);
  const fields = (await server.say("HKEYS", nameOf(key))) as string[];
  expect(fields.filter((field) => field.startsWith("q"))).toHaveLength(2);
});

test("of hundreds of reservations that end together each ends, asked for one by one or all at once, and nothing of them stays", async () => {
  const key = fresh();
  const copy = openLiveProcess();
  const both = async (given: Command): Promise<Done> => {
    const answer = await done(redis, key, given);
    expect(answer).toEqual(await done(copy, key, given));
    return answer;
  };
  const roomy = { figures: figures({ startBound: undefined }) };
  const asks = Array.from({ length: 300 }, (_, i) => start(String(i), 60n, NOW + 300_000));
  await both(command(asks.slice(0, 100), roomy));
  for (const ask of asks.slice(100)) await both(command([ask], roomy));
  expect(await both(command([goOn("1000")], roomy))).toMatchObject({ reserved: 18_000n });
  const lists = (await server.say("HKEYS", nameOf(key))) as string[];
  expect(lists.filter((field) => field.startsWith("q")).length).toBeGreaterThan(3);
  const ended = { now: NOW + 310_000, ...roomy };
  expect(await both(command([goOn("1000")], ended))).toMatchObject({ reserved: 0n });
  const fields = (await server.say("HKEYS", nameOf(key))) as string[];
  expect(fields.sort()).toEqual(["a", "f", "p", "q", "s"]);
});

test("of one namespace 20,000 jobs are kept; those beyond are answered by the figures and by those", async () => {
  const key = fresh();
  const copy = openLiveProcess();
  const asks = (from: number, to: number): Ask[] =>
    Array.from({ length: to - from }, (_, i) => run(String(from + i), 1n));
  const own = figures({ startBound: 20_000n, runBound: 20_000n });
  for (const store of [redis, copy]) {
    await done(store, key, command(asks(0, 19_999), { figures: own }));
    const beyond = [run("99999", 1n), start("99998", 1n), neverRan("99997"), goOn("9")];
    const answer = await done(store, key, command(beyond, { figures: own }));
    expect(answer).toMatchObject({
      ...{ live: 20_000n, reserved: 0n },
      results: [
        { allowed: true, known: true },
        { allowed: false, known: false },
        { allowed: true, known: false },
        { allowed: true, known: true },
      ],
    });
    const raised = figures({ asOf: 11n, startBound: undefined, runBound: undefined });
    const more = [run("99990", 5n), start("99991", 5n), run("1", 3n)];
    expect(await done(store, key, command(more, { figures: raised, inspect: true }))).toMatchObject(
      {
        ...{ live: 20_002n, reserved: 0n },
        results: [
          { allowed: true, known: false },
          { allowed: true, known: false },
          { allowed: true, known: true },
        ],
      },
    );
  }
});

test.each([
  ["is no hash", ["SET", "x"]],
  ["has no size", ["HDEL", "a"]],
  ["has a size that is none", ["HSET", "a", "1e9"]],
  ["has no figures", ["HDEL", "f"]],
  ["has figures that are none", ["HSET", "f", "x"]],
  ["has sums that are none", ["HSET", "s", "5,x"]],
  ["has a record that is none", ["HSET", "1", "n,5"]],
])(
  "a key that %s is dropped and begun anew, and no other with it",
  async (_, [verb = "", ...words]) => {
    const [key, other] = [fresh(), fresh()];
    await Promise.all([key, other].map((each) => done(redis, each, command([run("1", 5n)]))));
    if (verb === "SET") await server.say("DEL", nameOf(key));
    await server.say(verb, nameOf(key), ...words);
    const older = { figures: figures({ asOf: 9n }) };
    const answers = await Promise.all([
      done(redis, key, command([goOn("1")], older)),
      done(redis, other, command([goOn("1")], older)),
    ]);
    expect(answers).toMatchObject([
      { live: 0n, figures: { asOf: 9n } },
      { live: 5n, figures: { asOf: 10n } },
    ]);
    expect(await done(redis, key, command([run("1", 6n)]))).toMatchObject({ live: 6n });
  },
);
