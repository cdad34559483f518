/** Seals whatever is new, again and again: one query finds the logs, whatever their number. */
import { setTimeout } from "node:timers/promises";
import { dirtyLogs } from "../../store/seals.ts";
import { type Sealer, seal } from "./seal.ts";

export interface SealLoopOptions extends Sealer {
  /** From the start of one round to the start of the next, at least. */
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

const INTERVAL_MS = 1_000;
/** Seals at once: each holds a connection, and mostly waits for the archive. */
const LANES = 4;

export function sealLoop({
  intervalMs = INTERVAL_MS,
  signal,
  onFailure,
  onRound = () => undefined,
  ...sealer
}: SealLoopOptions): SealLoop {
  let lag: SealLag = { logs: 0, entries: 0n, ms: 0 };

  async function run(): Promise<void> {
    while (!signal.aborted) {
      const pause = setTimeout(intervalMs, undefined, { signal }).catch(() => undefined);
      await sealDirty(sealer, onFailure, (found) => {
        lag = found;
      }).then(onRound, (error: unknown) => onFailure(error));
      await pause;
    }
  }

  return { done: run(), lag: () => lag };
}

/** One round: every log with something new, and every refused one. */
export async function sealDirty(
  sealer: Sealer,
  onFailure: SealLoopOptions["onFailure"],
  onLag: (lag: SealLag) => void = () => undefined,
): Promise<void> {
  const dirty = await dirtyLogs(sealer.sql);
  const oldest = dirty[0]?.since.getTime();
  onLag({
    logs: dirty.length,
    entries: dirty.reduce((sum, { entries }) => sum + entries, 0n),
    ms: oldest === undefined ? 0 : Math.max(0, sealer.clock.now() - oldest),
  });
  // What refused a log may be over, and nobody else asks while the service says it is not ready.
  const logs = new Set([...dirty.map(({ log }) => log), ...sealer.guard.state().keys()]);
  const waiting = logs.values();
  const lane = async (): Promise<void> => {
    for (const log of waiting) {
      await seal({ ...sealer, log }).catch((error: unknown) => onFailure(error, log));
    }
  };
  await Promise.all(Array.from({ length: LANES }, lane));
}
