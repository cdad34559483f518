/** Beats at a steady pace, by a clock that nobody sets. */
import { readFileSync } from "node:fs";
import type { Surroundings } from "../client.ts";

/** DESIGN §17. */
export const HEARTBEAT_MS = 30_000;

/** Whole milliseconds since this host started: the same clock for all its processes, which no correction moves. */
export function sinceBoot(): number {
  return Number(process.hrtime.bigint() / 1_000_000n);
}

/** Another one after every start of the host; empty where the system names none. */
export function bootId(): string {
  try {
    return readFileSync("/proc/sys/kernel/random/boot_id", "utf8").trim();
  } catch {
    return "";
  }
}

/**
 * Acts at once, and then every `intervalMs` until the signal; turns that were missed are left out.
 */
export async function pulse(
  {
    intervalMs,
    signal,
    sleep,
  }: Pick<Surroundings, "sleep"> & { intervalMs: number; signal: AbortSignal },
  act: () => Promise<void>,
): Promise<void> {
  const begun = sinceBoot();
  const left = (): number => intervalMs - ((sinceBoot() - begun) % intervalMs);
  while (!signal.aborted) {
    try {
      await act();
      await sleep(left(), signal);
    } catch (error) {
      if (!signal.aborted) throw error;
    }
  }
}
