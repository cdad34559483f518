/** One process of the service as far as live usage goes, over a real Redis or alone. */
import type { Ask, NamespaceKey } from "../../../src/core/quota/live.ts";
import { type Asked, askNamespace } from "../../../src/flow/quota/ask.ts";
import type { Drift } from "../../../src/flow/quota/drift.ts";
import type { Reconciling } from "../../../src/flow/quota/kept.ts";
import { openLedger } from "../../../src/flow/quota/ledger.ts";
import { offerAgain } from "../../../src/flow/quota/offer-again.ts";
import { compareAll } from "../../../src/flow/quota/reconcile.ts";
import { Seen } from "../../../src/flow/quota/seen.ts";
import { openLive } from "../../../src/flow/quota/standing.ts";
import type { Sql } from "../../../src/store/connect.ts";
import { openLiveProcess } from "../../../src/store/live-process.ts";
import { openLiveRedis, type RedisPlace } from "../../../src/store/live-redis.ts";
import { failOn } from "../chain.ts";

export const COMPUTE_MS = 1_000_000n;
const WEEK_MS = 7 * 86_400_000;
/** Polls only if it lives for a day: what is to be newer is asked for. */
const POLL_MS = 86_400_000;

export interface QuotaProcess extends Reconciling {
  close(): Promise<void>;
}

export async function openProcess(options: {
  sql: Sql;
  clock: { now(): number };
  place?: RedisPlace;
  /** A Redis that fails is part of the test. */
  frail?: true;
}): Promise<QuotaProcess> {
  const { clock, frail, place, sql } = options;
  const redis = place && (await openLiveRedis(place));
  const failed = frail ? () => undefined : failOn;
  const live = openLive({ redis, process: openLiveProcess(), clock, failed });
  const ledger = openLedger({ sql, clock, failed: failOn, pollMs: POLL_MS });
  const close = async (): Promise<void> => {
    await ledger.close();
    await live.close();
  };
  return { clock, ledger, live, seen: new Seen(), close };
}

/**
 * A heartbeat of a job that has run so long at factor 1.
 * @param by index of the `key` entry of who says it; by default one that no log has
 */
export function run(process: QuotaProcess, job: number | string, ms: number, by = 2n): Ask {
  const elapsedMs = BigInt(ms);
  const until = process.clock.now() + WEEK_MS;
  return {
    kind: "run",
    job: String(job),
    amount: elapsedMs * COMPUTE_MS,
    elapsedMs,
    until,
    by,
  };
}

export function ask(process: QuotaProcess, key: NamespaceKey, ...asks: Ask[]): Promise<Asked> {
  return askNamespace(process, key, asks, { maxAgeMs: 0, inspect: true });
}

/** What a whole round finds, as `kind namespace job`. */
export async function found(process: QuotaProcess): Promise<string[]> {
  const drifts: Drift[] = [];
  await offerAgain(process, (drift) => drifts.push(drift));
  await compareAll(process, (drift) => drifts.push(drift));
  return drifts.map(({ job = "", kind, namespace }) => `${kind} ${namespace} ${job}`.trim()).sort();
}
