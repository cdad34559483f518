/** Many at once: after an outage, in one namespace, and at the turn of a month; two processes over one Redis. */
import { afterAll, beforeAll, expect, test, vi } from "vitest";
import type { Service } from "../../src/command/service.ts";
import type { QuotaConfig } from "../../src/config-quota.ts";
import { DECISION_AGE_MS } from "../../src/flow/quota/decide.ts";
import type { Result } from "../../src/flow/report/ingest.ts";
import { reported } from "../flow/door.ts";
import { type RedisServer, startRedis } from "../redis.ts";
import { heartbeatOf } from "./heartbeat.ts";
import { ask, beside, type House, newLog, openHouse } from "./house.ts";
import { Desk, type Limit, minutes } from "./quota-desk.ts";

let redis: RedisServer;
let house: House;
let here: Desk;
let there: Desk;

beforeAll(async () => {
  redis = await startRedis();
  const quota: QuotaConfig = {
    redis: { kind: "single", url: redis.url },
    withoutRedis: "plan",
    startReserveMs: 60_000,
  };
  house = await openHouse({ quota });
  const other: Service = await beside(house, undefined, { quota });
  here = new Desk(house, await newLog(house, "burst", 1));
  there = here.moved(other);
});
afterAll(async () => {
  await house.close();
  await redis.stop();
});

/** As many jobs as fit one signature. */
const PER_BEAT = 25;
/** Counters of the key of seed 1 that no desk uses. */
let counter = 1_000_000;

/** Until Redis answers both: one that was away is tried again a second later. */
async function untilRedis(): Promise<void> {
  const isUp = async (desk: Desk): Promise<boolean> => {
    const [decision] = await desk.start("1", "1");
    return decision?.source === "redis";
  };
  await vi.waitUntil(
    async () => {
      house.clock.time += 1_001;
      return (await isUp(here)) && (await isUp(there));
    },
    { timeout: 20_000 },
  );
}

function namespaces(count: number, limit: Limit): Promise<string[]> {
  return Promise.all(Array.from({ length: count }, () => here.namespace(limit)));
}

interface Running {
  id: string;
  root_namespace_id: string;
}

function runningIn(root_namespace_id: string, count: number): Running[] {
  return Array.from({ length: count }, (_, i) => {
    return { id: `${Number(root_namespace_id) * 10_000 + i}`, root_namespace_id };
  });
}

/** Heartbeats of all, each of which has run so long. */
function beats(jobs: readonly Running[], at: number): string[] {
  return Array.from({ length: Math.ceil(jobs.length / PER_BEAT) }, (_, i) => {
    const some = jobs.slice(i * PER_BEAT, (i + 1) * PER_BEAT);
    return heartbeatOf(
      1,
      here.log,
      some.map((job) => ({ ...job, elapsed_ms: minutes(at) })),
    );
  });
}

function reports(jobs: readonly Running[], at: number): string[] {
  return jobs.map((job) => {
    counter += 1;
    const usage = { duration_ms: minutes(at) };
    return reported(1, here.log, { counter: String(counter), job, usage });
  });
}

async function send({ at }: Desk, texts: readonly string[]): Promise<Result[]> {
  const { json } = await ask(at, "POST /v1/reports", { json: { reports: texts } });
  return json["results"] as Result[];
}

/** Said again and again, until Redis has heard it of each: a busy machine may have it taken for away. */
async function heardByRedis(desk: Desk, texts: readonly string[]): Promise<void> {
  await vi.waitUntil(
    async () => {
      const decisions = await desk.heard(...texts);
      house.clock.time += 1_001;
      return decisions.every(({ source }) => source === "redis");
    },
    { timeout: 30_000 },
  );
}

/** What both say is left, by Redis. */
async function left(namespace_id: string): Promise<(string | undefined)[]> {
  return await vi.waitUntil(
    async () => {
      house.clock.time += 1_001;
      const asked = [{ job_id: "999999", namespace_id, ask: "go_on" }];
      const decisions = [...(await here.decide(asked)), ...(await there.decide(asked))];
      const minutes = decisions.map(({ remaining_minutes }) => remaining_minutes);
      return decisions.every(({ source }) => source === "redis") && minutes;
    },
    { timeout: 20_000 },
  );
}

test("G03, G05: completions that an outage held up arrive in one burst, twice and among late heartbeats, and each counts once", async () => {
  const names = await namespaces(5, { monthly_minutes: "1000" });
  const jobs = names.flatMap((id) => runningIn(id, 60));
  await heardByRedis(here, beats(jobs, 2));
  await redis.kill("SIGKILL");
  // What runs is said to whichever process is there; some of it ends, and nobody can say so yet.
  await Promise.all([here.heard(...beats(jobs, 3)), there.heard(...beats(jobs, 4))]);
  await redis.restart();
  const [ended, running] = [jobs.filter((_, i) => i % 3 > 0), jobs.filter((_, i) => i % 3 === 0)];
  const held = reports(ended, 5);
  const [once, again] = await Promise.all([
    send(here, held),
    send(there, held),
    here.heard(...beats(jobs, 4)),
    there.heard(...beats(ended, 3)),
    here.heard(...beats(ended, 2)),
  ]);
  expect(once).toEqual(again);
  expect(new Set(once.map(({ code }) => code))).toEqual(new Set(["accepted"]));
  expect(new Set(once.map(({ index }) => index)).size).toBe(ended.length);
  await untilRedis();
  await heardByRedis(there, beats(running, 6));
  house.clock.time += DECISION_AGE_MS + 1;
  // Of each sixty: forty have used five minutes, twenty run for six.
  for (const id of names) {
    expect(await left(id)).toEqual(["680.0000", "680.0000"]);
  }
});

test("G09: nine tenths of all jobs in one namespace are counted to the minute, and its neighbours beside it", async () => {
  await untilRedis();
  const hot = await here.namespace({ monthly_minutes: "100000" });
  const cold = await here.namespace({ monthly_minutes: "1000" });
  const [many, few] = [runningIn(hot, 4_500), runningIn(cold, 500)];
  const [first, second] = [many.slice(0, 2_250), many.slice(2_250)];
  await Promise.all([
    heardByRedis(here, [...beats(first, 2), ...beats(few, 1)]),
    heardByRedis(there, beats(second, 2)),
  ]);
  expect(await left(hot)).toEqual(["91000.0000", "91000.0000"]);
  // A third of them ends while the others go on.
  const ended = many.filter((_, i) => i % 9 === 0);
  const [one, other] = await Promise.all([
    send(here, reports(ended.slice(0, 250), 3)),
    send(there, reports(ended.slice(250), 3)),
    heardByRedis(here, beats(few, 2)),
  ]);
  expect([...one, ...other].filter(({ code }) => code === "accepted")).toHaveLength(500);
  house.clock.time += DECISION_AGE_MS + 1;
  expect(await left(hot)).toEqual(["90500.0000", "90500.0000"]);
  expect(await left(cold)).toEqual(["0.0000", "0.0000"]);
});

test("G11: with the first of a month every namespace has its minutes again, at each process and with all that runs", async () => {
  await untilRedis();
  const names = await namespaces(50, { monthly_minutes: "10", grace_minutes: "0" });
  const ended = names.flatMap((id) => runningIn(id, 1));
  const sent = await send(there, reports(ended, 10));
  expect(new Set(sent.map(({ code }) => code))).toEqual(new Set(["accepted"]));
  house.clock.time += DECISION_AGE_MS + 1;
  const running = names.map((id) => ({ id: `9${id}`, root_namespace_id: id }));
  await heardByRedis(here, beats(running, 4));
  const asked = names.map((namespace_id) => {
    return { job_id: `8${namespace_id}`, namespace_id, ask: "start" };
  });
  const decided = async (desk: Desk): Promise<unknown[]> => {
    const decisions = await desk.decide(asked);
    return decisions.map(({ allowed, month, remaining_minutes }) => {
      return `${month} ${remaining_minutes} ${allowed}`;
    });
  };
  expect(new Set(await decided(there))).toEqual(new Set(["2026-11-01 -4.0000 false"]));
  house.clock.time = Date.parse("2026-12-01T00:00:00.000Z");
  // The process that nobody told, first.
  expect(new Set(await decided(there))).toEqual(new Set(["2026-12-01 6.0000 true"]));
  expect(new Set(await decided(here))).toEqual(new Set(["2026-12-01 6.0000 true"]));
});
