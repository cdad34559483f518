/**
 * Sealed entries into buckets, buckets into views, and how far it went: one transaction. Cost follows
 * what is new; readers and writers never wait for it, and a second refresher leaves (DESIGN §8). A log that
 * cannot be folded stays behind alone.
 */
import { setTimeout as delay } from "node:timers/promises";
import { fold } from "../../store/buckets.ts";
import type { Sql, Transaction } from "../../store/connect.ts";
import { lockRefresh, refreshViews } from "../../store/rollups.ts";
import { transact } from "../../store/transact.ts";
import { type Lag, moveWatermark, readLags } from "../../store/watermarks.ts";
import type { Clock } from "../clock.ts";

/** Entries of one log in one refresh: a long backlog is folded in steps that each commit. */
const FOLD_ENTRIES_MAX = 250_000n;

/** `logs` moved on by `entries`; `buckets` of them changed. `skipped`: another process refreshes. */
export type Refresh = "skipped" | { logs: number; entries: bigint; buckets: number };

export interface Folding {
  sql: Sql;
  clock: Clock;
  /**
   * Told of each log that could not be folded: it stays behind, and the others go on. Without it such a failure is
   * thrown, and nothing is folded.
   */
  onLeft?: (error: unknown, log: string) => void;
}

/** Takes all of the transaction with it, which is begun again without this log. */
class LogFailure extends Error {
  readonly log: string;

  constructor(log: string, cause: unknown) {
    super(`fold: log ${log}`, { cause });
    this.log = log;
  }
}

export async function refresh({ sql, clock, onLeft }: Folding): Promise<Refresh> {
  const left = new Set<string>();
  for (;;) {
    try {
      return await transact(sql, async (tx) => await refreshIn(tx, clock, left));
    } catch (error) {
      if (!(error instanceof LogFailure)) throw error;
      if (onLeft === undefined) throw error.cause;
      left.add(error.log);
      onLeft(error.cause, error.log);
    }
  }
}

async function refreshIn(
  tx: Transaction,
  clock: Clock,
  left: ReadonlySet<string>,
): Promise<Refresh> {
  // Whoever waits here for an operator's lock on a view holds the refresh up for everybody.
  await tx`set local lock_timeout = '5s'`;
  if (!(await lockRefresh(tx))) return "skipped";
  const lags = (await readLags(tx, FOLD_ENTRIES_MAX)).filter(({ log }) => !left.has(log));
  let entries = 0n;
  let buckets = 0;
  for (const lag of lags) {
    entries += lag.to - lag.from;
    buckets += await ofLog(lag, fold(tx, lag));
  }
  if (buckets > 0) await refreshViews(tx);
  // The watermark is taken last and commits with the views: it never runs ahead of a figure.
  const at = new Date(clock.now());
  for (const lag of lags) await ofLog(lag, moveWatermark(tx, lag, at));
  return { logs: lags.length, entries, buckets };
}

async function ofLog<T>({ log }: Lag, work: Promise<T>): Promise<T> {
  return await work.catch((error: unknown) => {
    throw new LogFailure(log, error);
  });
}

const INTERVAL_MS = 1_000;
const INTERVAL_MS_MAX = 60_000;
/** A refresh takes at most a fifth of the time, however large the views become. */
const REST_FACTOR = 4;

export interface RefreshLoop extends Required<Folding> {
  signal: AbortSignal;
  onRefresh?: (refresh: Refresh, took: number) => void;
  onError: (error: unknown) => void;
  intervalMs?: number;
}

/** Runs until aborted. A refresh that fails is reported and tried again after the interval. */
export async function refreshLoop(loop: RefreshLoop): Promise<void> {
  const { signal, intervalMs = INTERVAL_MS } = loop;
  while (!signal.aborted) {
    // Not the clock: one that is set anew would make the rest as long as it may be.
    const start = performance.now();
    let isIdle = false;
    try {
      const outcome = await refresh(loop);
      loop.onRefresh?.(outcome, performance.now() - start);
      // A look that found nothing has kept nobody waiting, however long it took.
      isIdle = outcome !== "skipped" && outcome.buckets === 0;
    } catch (error) {
      loop.onError(error);
    }
    await pause(isIdle ? intervalMs : restMs(performance.now() - start, intervalMs), signal);
  }
}

/** How long to rest after a refresh that took so many milliseconds. */
export function restMs(took: number, intervalMs: number): number {
  return Math.max(intervalMs, Math.min(INTERVAL_MS_MAX, REST_FACTOR * took));
}

/** Resolves early when aborted. */
async function pause(ms: number, signal: AbortSignal): Promise<void> {
  try {
    await delay(ms, undefined, { signal });
  } catch (error) {
    if (!signal.aborted) throw error;
  }
}
