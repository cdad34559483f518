/** Closes what is cut off, again and again: nobody has to wait for a checkpoint. */
import { setTimeout as delay } from "node:timers/promises";
import { readUnfinished } from "../../store/month-ends.ts";
import { type Finishing, finish } from "./finish.ts";

const INTERVAL_MS = 5_000;

export interface FinishLoop extends Finishing {
  signal: AbortSignal;
  onFailure: (error: unknown, log?: string) => void;
  onRound: () => void;
  intervalMs?: number;
}

/** Runs until aborted. A log that fails is told of and keeps no other waiting. */
export async function finishLoop(loop: FinishLoop): Promise<void> {
  const { signal, intervalMs = INTERVAL_MS } = loop;
  while (!signal.aborted) {
    await finishAll(loop);
    loop.onRound();
    await delay(intervalMs, undefined, { signal }).catch(() => undefined);
  }
}

async function finishAll(loop: FinishLoop): Promise<void> {
  const logs = await readUnfinished(loop.sql).catch((error: unknown) => {
    loop.onFailure(error);
    return [];
  });
  for (const log of logs) {
    if (loop.signal.aborted) return;
    await finish(loop, log).catch((error: unknown) => loop.onFailure(error, log));
  }
}
