/**
 * What runs beside requests: sealing, witnessing, folding, retention, reconciling, notifying, and saying on
 * each log who writes there.
 */

import { setMaxListeners } from "node:events";
import type { ExportConfig } from "../config-exports.ts";
import type { ReconciliationConfig } from "../config-reconciliation.ts";
import type { Policy } from "../core/policy.ts";
import type { Random } from "../flow/clock.ts";
import { expireLoop } from "../flow/control/expire.ts";
import { applyLoop } from "../flow/credit/apply-loop.ts";
import type { Keyring } from "../flow/key/keyring.ts";
import type { Anchors } from "../flow/log/anchor.ts";
import { announce, type ServiceVersion } from "../flow/log/announce.ts";
import type { Appender } from "../flow/log/append.ts";
import { retainLoop } from "../flow/log/retain.ts";
import type { Sealer } from "../flow/log/seal.ts";
import { type SealLag, sealDirty, sealLoop } from "../flow/log/seal-loop.ts";
import type { Reconciling } from "../flow/quota/kept.ts";
import type { Webhook } from "../flow/quota/webhook.ts";
import type { Rollups } from "../flow/ready.ts";
import { refresh, refreshLoop } from "../flow/usage/fold.ts";
import { showLogs } from "../flow/usage/show.ts";
import type { Sql } from "../store/connect.ts";
import type { ExportFiles } from "../store/export-files.ts";
import type { LateExports } from "../store/late-exports.ts";
import type { Logger, Metrics } from "../telemetry.ts";
import { startClosing } from "./closing.ts";
import { type Surroundings, startEvidencing } from "./evidencing.ts";
import { startExporting } from "./exporting.ts";
import { startNotifying } from "./notifying.ts";
import { startOverseeing } from "./overseeing.ts";
import { startReconciliation } from "./reconciliation.ts";
import { startReconciling } from "./reconciling.ts";
import { openTrouble } from "./trouble.ts";
import { startWaiting } from "./waiting.ts";
import { startWitnessing } from "./witnesses.ts";

export interface Background {
  sealLag(): SealLag;
  rollups(): Rollups;
  anchors(): Anchors;
  /** Logs whose access nobody has reviewed for more than a quarter. */
  reviewsOverdue(): number;
  /** What guards the log otherwise than at the start, and which logs did not pass their verification. */
  surroundings(): Surroundings;
  /** Files that the service makes by itself, and that are not made, or not where they are to be. */
  lateExports(): LateExports;
  /** Closes the appender; what was appended last is sealed and folded before this resolves. */
  stop(): Promise<void>;
}

interface Options {
  sealer: Sealer;
  appender: Appender;
  quota: Reconciling;
  random: Random;
  reader: Sql;
  log: Logger;
  metrics: Metrics;
  service: ServiceVersion;
  policy: Policy | undefined;
  closeDelayDays: bigint;
  /** Between two submissions of a log to a witness. */
  witnessIntervalMs: number;
  webhook: Webhook | undefined;
  reconciliation: ReconciliationConfig;
  exports: ExportConfig;
  files: ExportFiles;
  writerUrl: string;
  keyring: Keyring;
}

export function startBackground(options: Options): Background {
  const { appender, sealer, log } = options;
  const { sql, clock } = sealer;
  const abort = new AbortController();
  const { signal } = abort;
  // Each loop that sleeps listens for the end; none of them leaks.
  setMaxListeners(0, signal);
  const sealing = startSealing(options, signal);
  const intervalMs = options.witnessIntervalMs;
  const witnessing = startWitnessing({ ...sealer, ...options, intervalMs, signal });
  const folding = startFolding(options, signal);
  const retaining = startRetaining(options, signal);
  const reconciling = startReconciling({ ...options, sql, signal });
  const holdingAgainst = startReconciliation({ ...sealer, ...options, signal });
  const notifying = startNotifying({ ...options, sql, clock, signal });
  const overseeing = startOverseeing({ ...options, sql, clock, signal });
  const evidencing = startEvidencing({ ...options, sql, clock, signal });
  const closing = startClosing({ ...sealer, ...options, signal });
  const exporting = startExporting({ ...sealer, ...options, signal });
  const expiring = startExpiring(options, signal);
  const crediting = startCrediting(options, signal);
  const waiting = startWaiting({ ...options, sql, clock, signal });
  const announcing = startAnnouncing(options, signal);

  return {
    sealLag: sealing.lag,
    rollups: folding.rollups,
    anchors: witnessing.anchors,
    reviewsOverdue: overseeing.overdue,
    surroundings: evidencing.surroundings,
    lateExports: exporting.late,
    stop: async () => {
      abort.abort();
      await Promise.all([
        sealing.done,
        witnessing.done,
        folding.done,
        retaining,
        reconciling,
        holdingAgainst,
        notifying,
        overseeing.done,
        evidencing.done,
        closing,
        exporting.done,
        expiring,
        crediting,
        waiting,
        announcing,
      ]);
      await appender.close();
      await sealing.last();
      await foldRest(sealer, log);
    },
  };
}

function startSealing(
  { sealer, log }: Options,
  signal: AbortSignal,
): { lag(): SealLag; done: Promise<void>; last(): Promise<void> } {
  const seals = openTrouble(log, "seal");
  const listing = openTrouble(log, "seal, list of logs");
  const onRound = (): void => {
    seals.roundEnded();
    listing.roundEnded();
  };
  const onFailure = (error: unknown, name?: string): void => {
    if (name !== undefined) {
      seals.failed(error, name);
    } else {
      listing.failed(error);
      listing.roundEnded();
    }
  };
  const { done, lag } = sealLoop({ ...sealer, signal, onFailure, onRound });
  // A database that is gone by then keeps nobody from ending: what was accepted is sealed at the next start.
  const last = (): Promise<void> => sealDirty(sealer, onFailure).then(onRound, onFailure);
  return { lag, done, last };
}

/** What was sealed last, in its figures as far as they go. */
async function foldRest({ sql, clock }: Pick<Sealer, "sql" | "clock">, log: Logger): Promise<void> {
  const failed = (error: unknown): void => log.error({ err: error }, "refresh");
  await refresh({ sql, clock, onLeft: failed }).catch(failed);
}

function startFolding(
  { sealer, log, metrics }: Options,
  signal: AbortSignal,
): { rollups(): Rollups; done: Promise<void> } {
  const { sql, clock } = sealer;
  const folds = openTrouble(log, "refresh");
  let rollups: Rollups = "current";
  let left = 0;
  const done = refreshLoop({
    sql,
    clock,
    signal,
    onLeft: (error, of) => {
      left += 1;
      folds.failed(error, of);
    },
    onRefresh: (outcome, took) => {
      rollups = left > 0 ? "failing" : "current";
      left = 0;
      folds.roundEnded();
      if (outcome !== "skipped") metrics.folded(outcome.entries, took, clock.now());
    },
    onError: (error) => {
      rollups = "failing";
      folds.failed(error);
      folds.roundEnded();
    },
  });
  return { rollups: () => rollups, done };
}

function startExpiring(
  { appender, random, sealer, log }: Options,
  signal: AbortSignal,
): Promise<void> {
  const trouble = openTrouble(log, "proposals that are over");
  const { sql, clock } = sealer;
  return expireLoop({
    ...{ appender, random, sql, clock, signal },
    onFailure: trouble.failed,
    onRound: trouble.roundEnded,
  });
}

function startCrediting(
  { appender, random, sealer, log }: Options,
  signal: AbortSignal,
): Promise<void> {
  const trouble = openTrouble(log, "credit runs");
  const { sql, clock } = sealer;
  return applyLoop({
    ...{ appender, random, sql, clock, signal },
    onFailure: trouble.failed,
    onRound: trouble.roundEnded,
  });
}

function startRetaining({ sealer, log }: Options, signal: AbortSignal): Promise<void> {
  const trouble = openTrouble(log, "retain");
  return retainLoop({
    ...sealer,
    signal,
    onFailure: trouble.failed,
    onRound: trouble.roundEnded,
  });
}

function startAnnouncing(options: Options, signal: AbortSignal): Promise<void> {
  return announceAll(options, signal).catch((error: unknown) => {
    options.log.warn({ err: error }, "announce");
  });
}

/** A log that cannot be written now is announced on at the next start: nothing waits for it. */
async function announceAll(
  { appender, random, reader, log, service }: Options,
  signal: AbortSignal,
): Promise<void> {
  const trouble = openTrouble(log, "announce");
  for (const { log: name } of await showLogs({ sql: reader })) {
    if (signal.aborted) break;
    await announce({ appender, random }, name, service).catch((error: unknown) => {
      trouble.failed(error, name);
    });
  }
  trouble.roundEnded();
}
