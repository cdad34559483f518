/** Reconciliation as it runs beside requests. Of several processes whoever claims a log or a walk is at it. */
import { setTimeout as delay } from "node:timers/promises";
import type { AnomalyBounds } from "../../core/anomaly.ts";
import { type BreakStanding, readBreakStanding } from "../../store/break-standing.ts";
import { claimMark, endMark, startWatching } from "../../store/reconcile-marks.ts";
import { isLastPage, type Matching, matchDue } from "./match.ts";
import { isNoticed, notice } from "./notice.ts";
import { enlistRunners, type Pulling, pullStep } from "./pull.ts";
import { isCaughtUp, watch } from "./watch.ts";
import { watchKeys } from "./watch-keys.ts";
import { watchSources } from "./watch-sources.ts";

export interface ReconcilingPlatforms extends Matching {
  pulling: Omit<Pulling, keyof Matching | "signal">;
  anomalies(log: string): AnomalyBounds;
  signal: AbortSignal;
  observer: ReconciliationObserver;
}

interface ReconciliationObserver {
  reconciled(found: { opened: number; healed: number }): void;
  pulled(outcome: "page" | "failed"): void;
  standing(open: readonly BreakStanding[]): void;
  /** Of a log, or of a runner's walk there; without one, of all of it. */
  failed(error: unknown, log?: string): void;
  pullFailed(error: unknown, log?: string): void;
  roundEnded(): void;
  pullRoundEnded(): void;
}

const TICK_MS = 1_000;
/** Longer than any page takes: whoever is killed holds a log up for so long. */
const CLAIM_MS = 120_000;
/** Between two looks at a log. */
const [MATCH_REST_MS, WATCH_REST_MS] = [2_000, 60_000];
const LOOK_MS = 60_000;
/** Pages of one log before the next has its turn. */
const PAGES_MAX = 20;

/** Runs until aborted. */
export async function reconciliationLoop(loop: ReconcilingPlatforms): Promise<void> {
  const { clock, observer, signal, sql } = loop;
  let lookAt = 0;
  await Promise.all([
    everyTick(signal, async () => {
      try {
        await startWatching(sql);
        await matchAll(loop);
        await watchAll(loop);
        if (clock.now() >= lookAt) {
          lookAt = clock.now() + LOOK_MS;
          observer.standing(await readBreakStanding(sql));
        }
      } catch (error) {
        observer.failed(error);
      }
      observer.roundEnded();
    }),
    everyTick(signal, async () => {
      await pullAll(loop).catch((error: unknown) => {
        if (!signal.aborted) observer.pullFailed(error);
      });
      observer.pullRoundEnded();
    }),
  ]);
}

async function everyTick(signal: AbortSignal, round: () => Promise<void>): Promise<void> {
  while (!signal.aborted) {
    await round();
    await delay(TICK_MS, undefined, { signal }).catch(() => undefined);
  }
}

async function matchAll(loop: ReconcilingPlatforms): Promise<void> {
  await eachClaimed(loop, "population", MATCH_REST_MS, async (log) => {
    const found = { opened: 0, healed: 0 };
    for (let page = 0; page < PAGES_MAX; page += 1) {
      const noticed = await notice(loop, log);
      const matched = await matchDue(loop, log);
      found.opened += noticed.opened + matched.opened;
      found.healed += matched.healed;
      if (isNoticed(noticed) && isLastPage(matched)) break;
    }
    loop.observer.reconciled(found);
  });
}

async function watchAll(loop: ReconcilingPlatforms): Promise<void> {
  await eachClaimed(loop, "watch", WATCH_REST_MS, async (log) => {
    const found = { opened: 0, healed: 0 };
    for (let page = 0; page < PAGES_MAX; page += 1) {
      const watched = await watch({ ...loop, anomalies: loop.anomalies(log) }, log);
      found.opened += watched.opened;
      if (isCaughtUp(watched)) break;
    }
    const keys = await watchKeys({ ...loop, graceMs: loop.bounds.grace_ms }, log);
    found.opened += keys.opened;
    found.healed += keys.healed;
    found.opened += await watchSources({ ...loop, graceMs: loop.bounds.grace_ms }, log);
    loop.observer.reconciled(found);
  });
}

/** One log's trouble is nobody else's. */
async function eachClaimed(
  { observer, signal, sql }: ReconcilingPlatforms,
  part: "population" | "watch",
  restMs: number,
  look: (log: string) => Promise<void>,
): Promise<void> {
  while (!signal.aborted) {
    const log = await claimMark(sql, part, CLAIM_MS);
    if (log === undefined) return;
    await look(log).catch((error: unknown) => observer.failed(error, log));
    await endMark(sql, log, part, restMs);
  }
}

async function pullAll({
  observer,
  pulling: more,
  signal,
  ...shared
}: ReconcilingPlatforms): Promise<void> {
  const pulling = { ...shared, ...more, signal };
  if (pulling.gitlabs.length === 0) return;
  await enlistRunners(pulling);
  while (!signal.aborted) {
    const step = await pullStep(pulling);
    if (step === undefined) return;
    observer.pulled(step.failure === undefined ? "page" : "failed");
    if (step.failure !== undefined) observer.pullFailed(step.failure, step.log);
  }
}
