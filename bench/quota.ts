/** Quota over HTTP: decisions against a Redis that decides nothing, heartbeats against their signatures. */
import { setTimeout as delay } from "node:timers/promises";
import { call } from "../src/command/api.ts";
import { lastMonth } from "../src/core/pack.ts";
import { instantText, monthOf } from "../src/core/unit.ts";
import { type BareRedis, openBareRedis } from "./bare-redis.ts";
import { publicKeyOf, signaturesOf, verifyOnOneCore } from "./baseline.ts";
import { placeOf, RUNNER } from "./fleet.ts";
import type { Context } from "./history.ts";
import { load, percentile, post } from "./load.ts";
import { alternate, median, type Row, rate } from "./measure.ts";
import { processorSeconds } from "./process.ts";
import type { BenchService } from "./service.ts";

const NAMESPACES = 1_000;
/** One in so many has bought a pack. */
const PACKED = 10;
const SETTING_UP = 8;
const BATCH = 50;
const CONNECTIONS = 8;
/** Jobs of a heartbeat, and heartbeats of a request: of some hosts, or of one that runs many. */
const JOBS = 20;
const HEARTBEATS = 10;
const BEAT_MS = 30_000;
/** Jobs that one key may speak for (flow/quota/live-budget.ts): of more than that each is said again. */
const RUNNING = 5_000;
/** Beside decisions: the log moves, and with it what is known of all namespaces. */
const REPORTS = 10;
const REPORTS_EVERY_MS = 500;

/** Fifty jobs that want to start, in as many namespaces. */
export async function decisions(context: Context): Promise<Row> {
  const service = await openAsked(context);
  const { decided, rounds } = context.sizes;
  const took = { service: 0, redis: 0, bare: 0 };
  const figures = await alternate({
    a: async () => {
      const requests = service.questions(decided / BATCH, BATCH);
      const stop = reportsBeside(service);
      const [own, redis] = [processorSeconds(service.pid), await service.bare.processorSeconds()];
      const bodies: string[] = [];
      const figure = await rate(decided, async () => {
        bodies.push(...(await load(service.decisions, requests, CONNECTIONS)).bodies);
      });
      took.service += processorSeconds(service.pid) - own;
      took.redis += (await service.bare.processorSeconds()) - redis;
      for (const body of bodies) assertAllowed(body, BATCH);
      await stop();
      return figure;
    },
    b: async () => {
      const redis = await service.bare.processorSeconds();
      const figure = await rate(decided, () => service.bare.calls(decided, CONNECTIONS * BATCH));
      took.bare += (await service.bare.processorSeconds()) - redis;
      return figure;
    },
    rounds,
    say: context.say,
  });
  const each = (seconds: number): string => {
    return `${((seconds / (rounds + 1) / decided) * 1e6).toFixed(1)} µs`;
  };
  return {
    row: `quota decisions over HTTP, ${BATCH} jobs in ${BATCH} namespaces a request, ${CONNECTIONS} connections`,
    against: `bare EVALSHA of a no-op by ioredis, ${CONNECTIONS * BATCH} in flight`,
    bound: { kind: "at-least", ratio: 0.5 },
    unit: "decisions/s",
    ...figures,
    notes: {
      namespaces: String(NAMESPACES),
      "CPU of a decision": `service ${each(took.service)}, Redis ${each(took.redis)}`,
      "of a bare call": `Redis ${each(took.bare)}`,
    },
  };
}

/** How long one job waits for its answer; the median of each round is what is compared. */
export async function decision(context: Context): Promise<Row> {
  const service = await openAsked(context);
  const { asked, rounds } = context.sizes;
  const all = { a: [] as number[], b: [] as number[] };
  const take = (side: number[], latencies: readonly number[], round: number): number => {
    if (round > 0) side.push(...latencies);
    return median(latencies);
  };
  const figures = await alternate({
    a: async (round) => {
      const requests = service.questions(asked, 1);
      const stop = reportsBeside(service);
      const { bodies, latencies } = await load(service.decisions, requests, 1);
      for (const body of bodies) assertAllowed(body, 1);
      await stop();
      return take(all.a, latencies, round);
    },
    b: async (round) => take(all.b, await service.bare.latencies(asked), round),
    rounds,
    say: context.say,
  });
  const [a, b] = [percentile(all.a, 0.99), percentile(all.b, 0.99)];
  return {
    row: "one decision a request, one after the other, p50",
    against: "bare EVALSHA of a no-op by ioredis, p50",
    unit: "ms",
    ...figures,
    notes: { p99: `${a.toFixed(2)} : ${b.toFixed(2)} ms` },
  };
}

/** What all hosts say each half minute: of the same jobs, that they still run. */
export async function heartbeats(context: Context): Promise<Row> {
  const service = await openAsked(context);
  const { heard, rounds } = context.sizes;
  const beats = Math.ceil(heard / RUNNING);
  const beat = (round: number, i: number): string[] => {
    const jobs = { from: 0, to: Math.min(RUNNING, heard - i * RUNNING), each: JOBS };
    const elapsedMs = (round * beats + i + 1) * BEAT_MS;
    return service.fleet.heartbeats(jobs, { namespaces: NAMESPACES, elapsedMs });
  };
  const texts = (round: number): string[] => {
    return Array.from({ length: beats }, (_, i) => beat(round, i)).flat();
  };
  const key = publicKeyOf(service.claim);
  const signatures = signaturesOf(texts(0));
  const figures = await alternate({
    a: async (round) => {
      const requests = inBatches(texts(round), HEARTBEATS).map((batch) => {
        return post(service.heartbeats, "application/json", JSON.stringify({ heartbeats: batch }));
      });
      const stop = reportsBeside(service);
      const figure = await rate(heard, async () => {
        const { bodies } = await load(service.heartbeats, requests, CONNECTIONS);
        for (const body of bodies) assertAllowed(body, HEARTBEATS * JOBS);
      });
      await stop();
      return figure;
    },
    b: () => rate(heard, async () => verifyOnOneCore(key, signatures)),
    rounds,
    say: context.say,
  });
  return {
    row: `jobs in heartbeats over HTTP, ${JOBS} a JWS, ${HEARTBEATS} JWS a request, ${CONNECTIONS} connections`,
    against: "node:crypto Ed25519 of the same JWS on one core, key cached",
    unit: "jobs/s",
    ...figures,
    notes: { namespaces: String(NAMESPACES) },
  };
}

interface Asked extends BenchService {
  bare: BareRedis;
  decisions: URL;
  heartbeats: URL;
  /** Requests about so many jobs each, all of them new, and no two of a request in one namespace. */
  questions(requests: number, jobs: number): Buffer[];
}

const opened = new WeakMap<BenchService, Promise<Asked>>();

/** Namespaces with limits, some with packs, and all of them with usage: once for all rows. */
async function openAsked({ service: open, say, defer }: Context): Promise<Asked> {
  const service = await open();
  const known = opened.get(service) ?? prepare(service, say, defer);
  opened.set(service, known);
  return await known;
}

async function prepare(
  service: BenchService,
  say: Context["say"],
  defer: Context["defer"],
): Promise<Asked> {
  const { api, log, redis } = service;
  if (redis === undefined) throw new Error("bench: rows of quota want a redis-server on the PATH");
  const bare = await openBareRedis(redis);
  defer(bare.close);
  const lane = async (first: number): Promise<void> => {
    for (let i = first; i < NAMESPACES; i += SETTING_UP) await provide(service, i);
  };
  await Promise.all(Array.from({ length: SETTING_UP }, (_, i) => lane(i)));
  await reported(service, NAMESPACES);
  await service.settled();
  say(`${NAMESPACES} namespaces have limits, packs and usage`);
  const decisions = new URL("/v1/decisions", api.server);
  let next = 0;
  const request = (count: number): Buffer => {
    const jobs = Array.from({ length: count }, () => {
      next += 1;
      const { project_id, root_namespace_id: namespace_id } = placeOf(next, NAMESPACES);
      const job_id = String(next);
      return { job_id, namespace_id, ask: "start", project_id, machine_type: RUNNER.machine_type };
    });
    return post(decisions, "application/json", JSON.stringify({ log, jobs }), api.token);
  };
  return {
    ...{ ...service, bare, decisions },
    heartbeats: new URL("/v1/heartbeats", api.server),
    questions: (requests, jobs) => Array.from({ length: requests }, () => request(jobs)),
  };
}

async function provide({ api, log }: BenchService, position: number): Promise<void> {
  const { root_namespace_id: namespace_id } = placeOf(position, NAMESPACES);
  const source = { source: "bench", source_version: "1" };
  const limit = { monthly_minutes: "1000000", beyond: "stop", ...source };
  await call(api, "PUT", `/v1/quotas/${log}/${namespace_id}`, limit);
  if (position % PACKED !== 0) return;
  const purchased_in = monthOf(instantText(Date.now()));
  const months = { purchased_in, expires_in: lastMonth(purchased_in) };
  const bought = { namespace_id, pack_id: `pack-${position}`, minutes: "1000", ...months };
  await call(api, "POST", "/v1/packs", { log, ...bought, ...source });
}

async function reported({ fleet, reports }: BenchService, count: number): Promise<void> {
  const texts = fleet.texts(count, NAMESPACES);
  const requests = inBatches(texts, 100).map((batch) => {
    return post(reports, "application/json", JSON.stringify({ reports: batch }));
  });
  await load(reports, requests, 1);
}

/** Until the returned function is called. */
function reportsBeside(service: BenchService): () => Promise<void> {
  const stop = new AbortController();
  const flow = async (): Promise<void> => {
    while (!stop.signal.aborted) {
      await reported(service, REPORTS);
      await delay(REPORTS_EVERY_MS, undefined, { signal: stop.signal }).catch(() => undefined);
    }
  };
  const done = flow();
  return async () => {
    stop.abort();
    await done;
    await service.settled();
  };
}

function inBatches(texts: readonly string[], size: number): string[][] {
  const count = Math.ceil(texts.length / size);
  return Array.from({ length: count }, (_, i) => texts.slice(i * size, (i + 1) * size));
}

/** By Redis, or what was measured is something else. */
function assertAllowed(body: string, count: number): void {
  const said = body.split('"allowed":true').length - 1;
  const asked = body.split('"source":"redis"').length - 1;
  if (said !== count || asked !== count) {
    throw new Error(`bench: ${said} of ${count} allowed, ${asked} by Redis`);
  }
}
