/** Seals whatever is new, again and again: one query finds the logs, whatever their number. */
import { setTimeout } from "node:timers/promises";
import { Problem } from "../../core/problem.ts";
import { dirtyLogs } from "../../store/seals.ts";
import { type Sealer, seal, sealTogether } from "./seal.ts";

export interface SealLoopOptions extends Sealer {
  /** Of one log, from the start of one seal to the start of the next, at least. */
  intervalMs?: number;
  /** Ends the loop after the seals that are under way. */
  signal: AbortSignal;
  /** Told of every failure; without a log, not even the list of dirty logs was to be had. */
  onFailure: (error: unknown, log?: string) => void;
  /** Every log that needed it was tried; failures since the last time are those of this round. */
  onRound?: () => void;
}

export interface SealLoop {
  /** Resolves after the abort, when nothing is being sealed any more. */
  done: Promise<void>;
  lag(): SealLag;
}

/** What was unsealed when the last round began. */
export interface SealLag {
  logs: number;
  entries: bigint;
  /** Age of the oldest unsealed entry; 0 when there is none. */
  ms: number;
}

/** What came just after a seal is in a checkpoint within the second too, the next seal included. */
const INTERVAL_MS = 750;
const LOOK_MS = 100;
/** Transactions at once: each holds a connection, and mostly waits for the archive. */
const LANES = 4;
/** Logs in one transaction: what a transaction costs is shared, and no lane holds up the others. */
const TOGETHER_MAX = 25;
/** What has more to catch up with than this is sealed alone, and piece by piece. */
const LONG = 1_024n;
const PIECE = 8_192n;

export function sealLoop({
  intervalMs = INTERVAL_MS,
  signal,
  onFailure,
  onRound = () => undefined,
  ...sealer
}: SealLoopOptions): SealLoop {
  let lag: SealLag = { logs: 0, entries: 0n, ms: 0 };
  const isDue = pacer(intervalMs);

  async function run(): Promise<void> {
    while (!signal.aborted) {
      const look = Math.min(LOOK_MS, intervalMs);
      const pause = setTimeout(look, undefined, { signal }).catch(() => undefined);
      const onLag = (found: SealLag): void => {
        lag = found;
      };
      await sealDirty(sealer, onFailure, { onLag, isDue, entriesMax: PIECE }).then(
        onRound,
        (error: unknown) => onFailure(error),
      );
      await pause;
    }
  }

  return { done: run(), lag: () => lag };
}

/** Whether a log may be sealed now, which then counts as the start of its seal. */
function pacer(intervalMs: number): (log: string) => boolean {
  const started = new Map<string, number>();
  return (log) => {
    const now = performance.now();
    if (now - (started.get(log) ?? Number.NEGATIVE_INFINITY) < intervalMs) return false;
    // In the order of their starts, so that what is over stands at the front.
    started.delete(log);
    started.set(log, now);
    for (const [other, at] of started) {
      if (now - at < intervalMs) break;
      started.delete(other);
    }
    return true;
  };
}

interface Round {
  onLag?: (lag: SealLag) => void;
  isDue?: (log: string) => boolean;
  /** Of one log. */
  entriesMax?: bigint;
}

/** One round: every log with something new, and every refused one, if it is due. */
export async function sealDirty(
  sealer: Sealer,
  onFailure: SealLoopOptions["onFailure"],
  { onLag = () => undefined, isDue = () => true, entriesMax }: Round = {},
): Promise<void> {
  const dirty = await dirtyLogs(sealer.sql);
  const oldest = dirty[0]?.since.getTime();
  onLag({
    logs: dirty.length,
    entries: dirty.reduce((sum, { entries }) => sum + entries, 0n),
    ms: oldest === undefined ? 0 : Math.max(0, sealer.clock.now() - oldest),
  });
  // What refused a log may be over, and nobody else asks while the service says it is not ready.
  const refused = new Set(sealer.guard.state().keys());
  const long = dirty.filter(({ entries }) => entries > LONG).map(({ log }) => log);
  const alone = new Set([...refused, ...long].filter(isDue));
  const others = dirty
    .map(({ log }) => log)
    .filter((log) => !refused.has(log) && !long.includes(log) && isDue(log));
  const waiting = [...together(others), ...Array.from(alone, (log) => [log])].values();
  const lane = async (): Promise<void> => {
    for (const logs of waiting) await sealEach(sealer, logs, entriesMax, onFailure);
  };
  await Promise.all(Array.from({ length: LANES }, lane));
}

function together(logs: readonly string[]): string[][] {
  const count = Math.ceil(logs.length / TOGETHER_MAX);
  return Array.from({ length: count }, (_, i) =>
    logs.slice(i * TOGETHER_MAX, (i + 1) * TOGETHER_MAX),
  );
}

async function sealEach(
  sealer: Sealer,
  logs: readonly string[],
  entriesMax: bigint | undefined,
  onFailure: SealLoopOptions["onFailure"],
): Promise<void> {
  if (logs.length > 1) {
    const outcomes = await sealTogether(sealer, logs, entriesMax).catch(() => undefined);
    for (const [log, outcome] of outcomes ?? []) {
      if (outcome instanceof Problem) onFailure(outcome, log);
    }
    if (outcomes !== undefined) return;
    // What failed is one of them, or all: each alone says what it is, and the others go through.
  }
  for (const log of logs) {
    await seal({ ...sealer, log, entriesMax }).catch((error: unknown) => onFailure(error, log));
  }
}
