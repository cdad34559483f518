/** Drift of every kind, planted in a real Redis: found, named, repaired, and counted once. */
import { afterAll, afterEach, beforeAll, beforeEach, expect, test } from "vitest";
import type { NamespaceKey } from "../../../src/core/quota/live.ts";
import { type FreshDatabase, freshDatabase } from "../../postgres.ts";
import { type RedisServer, startRedis } from "../../redis.ts";
import { ask, COMPUTE_MS, found, openProcess, type QuotaProcess, run } from "./reconciling.ts";
import { QuotaLog, START } from "./told.ts";

const MINUTE_MS = 60_000;
const LATER_MS = 10_000;

let db: FreshDatabase;
let redis: RedisServer;
let time = START;
const clock = { now: () => time };
let logs = 0;
let log: QuotaLog;
let one: QuotaProcess;
let other: QuotaProcess;

beforeAll(async () => {
  [db, redis] = await Promise.all([freshDatabase(), startRedis()]);
});
afterAll(async () => {
  await db.drop();
  await redis.stop();
});

beforeEach(async () => {
  await redis.say("FLUSHALL");
  time = START + 86_400_000;
  logs += 1;
  log = new QuotaLog(logs);
  log.limit(1, 100);
  await log.load(db.owner);
  const place = { kind: "single", url: redis.url } as const;
  const at = { sql: db.writer, clock, place };
  [one, other] = [await openProcess(at), await openProcess(at)];
});
afterEach(async () => {
  await Promise.all([one.close(), other.close()]);
});

const keyOf = (namespace = 1): NamespaceKey => ({ log: log.log, namespace: String(namespace) });
const nameOf = (namespace = 1): string => `minutebook:quota:{${log.log}:${namespace}}`;

/** A build on the log; its job's number is the next of this log. */
async function report(minutes: number, namespace = 1): Promise<void> {
  log.use(namespace, BigInt(minutes * MINUTE_MS));
  await log.load(db.owner);
}

async function field(name: string): Promise<string> {
  return String(await redis.say("HGET", nameOf(), name));
}

/** What anybody is told, and what it must be. */
async function told(process = one, namespace = 1) {
  const { figures, live, reserved, shown } = await ask(process, keyOf(namespace));
  return { asOf: figures.asOf, used: shown.used, live, reserved };
}

const PLANTED: [kind: string, plant: () => Promise<void>, found: string][] = [
  [
    "figures that the log does not give",
    async () => {
      const text = await field("f");
      await redis.say("HSET", nameOf(), "f", text.replace(/(?<="used":")\d+/, "1"));
    },
    "figures 1",
  ],
  [
    "a bound that the log does not give",
    async () => {
      const [touched, from, until, , ...rest] = (await field("f")).split(",");
      const text = [touched, from, until, "999999999999999999999", ...rest].join(",");
      await redis.say("HSET", nameOf(), "f", text);
    },
    "figures 1",
  ],
  [
    "figures of entries that the log does not have",
    async () => {
      await redis.say("HSET", nameOf(), "a", String(log.size + 100n));
    },
    "ahead 1",
  ],
  [
    "a job that is live although its usage is on the log",
    async () => {
      const { figures } = await ask(one, keyOf());
      const asks = [run(one, 1, 999_000)];
      const { asOf: since } = figures;
      await one.live.run(keyOf(), { now: time, figures, since, settled: [], asks });
    },
    "settled 1 1",
  ],
  [
    "sums that are not those of the jobs",
    async () => {
      const [, ...rest] = (await field("s")).split(",");
      await redis.say("HSET", nameOf(), "s", ["7", ...rest].join(","));
    },
    "sums 1",
  ],
  ["a key that is gone", async () => void (await redis.say("DEL", nameOf())), "lost 1 50"],
  ["a flush", async () => void (await redis.say("FLUSHALL")), "lost 1 50"],
  [
    "less of a job than this process heard",
    async () => {
      await redis.say("FLUSHALL");
      await ask(other, keyOf(), run(other, 50, 1_000));
    },
    "lost 1 50",
  ],
];

test.each(PLANTED)("%s: found, named, repaired, and counted once", async (_, plant, finding) => {
  await report(3);
  await ask(one, keyOf(), run(one, 50, 5 * MINUTE_MS));
  time += LATER_MS;
  const right = await told();
  expect(await found(one)).toEqual([]);
  await plant();
  expect(await found(one)).toEqual([finding]);
  expect(await told()).toEqual(right);
  expect(await told(other)).toEqual(right);
  expect(await found(one)).toEqual([]);
  expect(await found(other)).toEqual([]);
});

test("nothing is planted, and nothing found, while reports and heartbeats come in whatever order", async () => {
  const began = time;
  for (let step = 1; step <= 40; step += 1) {
    const namespace = 1 + (step % 3);
    const [here, there] = step % 2 === 0 ? [one, other] : [other, one];
    time += 7_000;
    await ask(here, keyOf(namespace), run(here, 1_000 + namespace, time - began));
    // Of a build that nobody heard, and of one whose late heartbeat comes after its report.
    const late = run(there, step, 1_000);
    if (step % 4 !== 0) await ask(there, keyOf(namespace), late);
    await report(1, namespace);
    if (step % 5 === 0) await ask(there, keyOf(namespace), late);
    if (step % 6 === 0) log.limit(namespace, 100 + step);
    if (step % 3 === 0) expect(await found(here)).toEqual([]);
  }
  expect([await found(one), await found(other)]).toEqual([[], []]);
});

test("T11: a process dies between commit and Redis: within a round Redis has what the ledger has", async () => {
  await ask(one, keyOf(), run(one, 1, MINUTE_MS));
  await report(2);
  expect(await field("a")).not.toBe(String(log.size));
  expect(await found(other)).toEqual([]);
  expect(await field("a")).toBe(String(log.size));
  expect(await redis.say("HGET", nameOf(), "1")).toBeNull();
  expect(await told()).toMatchObject({ used: 2n * 60_000n * COMPUTE_MS, live: 0n });
});

test("T38: a flush loses no live usage that some process heard, and the sum is ledger and live", async () => {
  await report(3);
  await ask(one, keyOf(), run(one, 50, 4 * MINUTE_MS));
  await ask(other, keyOf(), run(other, 51, 5 * MINUTE_MS));
  time += LATER_MS;
  const before = await told();
  await redis.say("FLUSHALL");
  expect([await found(one), await found(other)]).toEqual([["lost 1 50"], ["lost 1 51"]]);
  expect(await told()).toEqual(before);
});

test("T41: after an eviction both processes answer from one key again, and no reservation comes twice", async () => {
  await ask(one, keyOf(), run(one, 50, 4 * MINUTE_MS));
  await ask(other, keyOf(), run(other, 50, 5 * MINUTE_MS));
  time += LATER_MS;
  await redis.say("DEL", nameOf());
  // Each offers what it heard: the one that has run longest counts.
  expect(await found(one)).toEqual(["lost 1 50"]);
  expect(await found(other)).toEqual(["lost 1 50"]);
  expect(await told(one)).toEqual(await told(other));
  expect(await told()).toMatchObject({ live: 300_000n * COMPUTE_MS });
});

test("what was heard of a job whose report is on the log by now is not offered again", async () => {
  await ask(one, keyOf(), run(one, 1, MINUTE_MS));
  time += LATER_MS;
  await report(1);
  await redis.say("FLUSHALL");
  expect(await found(one)).toEqual([]);
  expect(await told()).toMatchObject({ live: 0n });
});

test("what never ran by another process' word is not brought back by a copy", async () => {
  await ask(one, keyOf(), run(one, 50, MINUTE_MS));
  time += LATER_MS;
  await ask(other, keyOf(), { kind: "never_ran", job: "50" });
  expect(await found(one)).toEqual([]);
  expect(await told()).toMatchObject({ live: 0n });
});

test("what this process heard a moment ago may be on its way: it is not missed yet", async () => {
  await ask(one, keyOf(), run(one, 50, MINUTE_MS));
  await redis.say("FLUSHALL");
  expect(await found(one)).toEqual([]);
  time += LATER_MS;
  expect(await found(one)).toEqual(["lost 1 50"]);
});

test("a new month is no drift: the figures of the old one are replaced", async () => {
  await report(3);
  time = Date.UTC(2026, 10, 30);
  await ask(one, keyOf(), run(one, 50, MINUTE_MS));
  time = Date.UTC(2026, 11, 1);
  expect(await found(one)).toEqual([]);
  expect(await told()).toMatchObject({ used: 0n, live: 60_000n * COMPUTE_MS });
});

test("a namespace of which Redis keeps nothing is no drift, whatever this process remembers of it", async () => {
  await ask(one, keyOf(9), run(one, 50, MINUTE_MS));
  await ask(one, keyOf(9), { kind: "never_ran", job: "50" });
  await redis.say("FLUSHALL");
  expect(await found(one)).toEqual([]);
  expect(await redis.say("DBSIZE")).toBe(0);
});

test("a month that ends between the look and the comparison is no drift", async () => {
  await report(3);
  time = Date.UTC(2026, 11, 1) - 1;
  await ask(one, keyOf(), run(one, 50, MINUTE_MS));
  const { ledger } = one;
  const midnight: QuotaProcess = {
    ...one,
    ledger: {
      known: (key, wants) => ledger.known(key, wants),
      hold: (key, wants) => ledger.hold(key, wants),
      onLog: (name, jobs) => ledger.onLog(name, jobs),
      revoked: (name) => ledger.revoked(name),
      loaded: () => ledger.loaded(),
      close: () => ledger.close(),
      read: async (name, namespaces) => {
        time += 1;
        return await ledger.read(name, namespaces);
      },
    },
  };
  expect(await found(midnight)).toEqual([]);
});

test("a Redis that keeps namespaces of a log that is not there harms no round", async () => {
  const from = nameOf();
  await ask(one, keyOf(), run(one, 50, MINUTE_MS));
  await redis.say("COPY", from, from.replace(log.log, "f".repeat(32)));
  expect(await found(other)).toEqual([]);
});

test("T50: for every namespace, what is shown as used is the sum over the entries below as_of", async () => {
  for (let build = 0; build < 30; build += 1) log.use(1 + (build % 7), BigInt(1 + build * 977));
  await log.load(db.owner);
  await Promise.all(
    [1, 2, 3, 4, 5, 6, 7].map((namespace) => ask(one, keyOf(namespace), run(one, 500, 1_000))),
  );
  for (let build = 0; build < 30; build += 1) log.use(1 + (build % 5), BigInt(1 + build * 3_331));
  await log.load(db.owner);
  expect(await found(other)).toEqual([]);
  for (let namespace = 1; namespace <= 7; namespace += 1) {
    const { asOf, used } = await told(one, namespace);
    const [row] = await db.reader<{ sum: string }[]>`
      select coalesce(sum(compute_ms), 0)::text as sum
      from entries
      where log = ${log.log} and index < ${asOf} and tracking = 'hosted'
        and namespace_id = ${namespace} and not_billable = ''`;
    expect(used).toBe(BigInt(Math.round(Number(row?.sum) * 1_000_000)));
  }
});

test("a job whose report names another namespace is found and taken out, though nothing touched its own", async () => {
  await ask(one, keyOf(2), run(one, 1, MINUTE_MS));
  await report(2, 1); // job 1
  time += LATER_MS;
  expect(await found(one)).toEqual(["settled 2 1"]);
  expect(await told(one, 2)).toMatchObject({ live: 0n });
  time += LATER_MS;
  expect([await found(one), await found(other)]).toEqual([[], []]);
});

test("without a Redis the process' own copy is held against the log", async () => {
  const alone = await openProcess({ sql: db.writer, clock });
  await ask(alone, keyOf(), run(alone, 1, MINUTE_MS));
  await report(2);
  time += LATER_MS;
  expect(await found(alone)).toEqual([]);
  expect(await told(alone)).toMatchObject({ used: 120_000n * COMPUTE_MS, live: 0n });
  await alone.close();
});
