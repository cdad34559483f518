/** Runs that were decided are applied beside requests, and go on when the process that applied them is gone. */
import { setTimeout as delay } from "node:timers/promises";
import { readNewestRuns } from "../../store/credit-runs.ts";
import { type Applying, applyRun } from "./apply.ts";

const TICK_MS = 2_000;

export interface ApplyLoop extends Applying {
  signal: AbortSignal;
  onFailure: (error: unknown, log?: string) => void;
  onRound: () => void;
}

/** Until aborted. All processes do it: they take turns at the head, and no line is written twice. */
export async function applyLoop(loop: ApplyLoop): Promise<void> {
  const { signal, onFailure, onRound } = loop;
  const done = new Map<string, bigint>();
  while (!signal.aborted) {
    await round(loop, done).catch((error: unknown) => onFailure(error));
    onRound();
    await delay(TICK_MS, undefined, { signal }).catch(() => undefined);
  }
}

/** Of each log only the newest run can have lines left. */
async function round(loop: ApplyLoop, done: Map<string, bigint>): Promise<void> {
  const { signal, onFailure } = loop;
  for (const { log, index } of await readNewestRuns(loop.sql)) {
    if (signal.aborted) return;
    if (done.get(log) === index) continue;
    try {
      const { lines, written } = await applyRun(loop, { log, index }, () => !signal.aborted);
      if (written === lines) done.set(log, index);
    } catch (error) {
      onFailure(error, log);
    }
  }
}
