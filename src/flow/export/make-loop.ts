/** Makes what was asked for, one after the other; processes share the work. */
import { setTimeout as delay } from "node:timers/promises";
import { listPending } from "../../store/exports.ts";
import { type Making, make, mayPass } from "./make.ts";

const INTERVAL_MS = 1_000;
/** What could not be made is long perhaps, and begins anew. */
const RETRY_MS = 30_000;

export interface MakeLoop extends Making {
  onFailure: (error: unknown, log?: string) => void;
  onRound: () => void;
  intervalMs?: number;
}

/** Runs until aborted. One that fails is told of and keeps no other waiting. */
export async function makeLoop(loop: MakeLoop): Promise<void> {
  const { intervalMs = INTERVAL_MS, onFailure, onRound, signal } = loop;
  while (!signal.aborted) {
    let left = false;
    const failed: MakeLoop["onFailure"] = (error, log) => {
      left ||= mayPass(error);
      onFailure(error, log);
    };
    await makePending(loop, failed).catch(failed);
    onRound();
    await delay(left ? RETRY_MS : intervalMs, undefined, { signal }).catch(() => undefined);
  }
}

/** All that waits now, the oldest first. */
async function makePending(loop: MakeLoop, failed: MakeLoop["onFailure"]): Promise<void> {
  const { signal, sql } = loop;
  for (let after = 0n; !signal.aborted; ) {
    const [row] = await listPending(sql, after, 1);
    if (row === undefined) return;
    after = row.number;
    await make(loop, row).catch((error: unknown) => {
      if (!signal.aborted) failed(error, row.log);
    });
  }
}
