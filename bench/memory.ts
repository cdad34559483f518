/** Peak memory of another process, where the system tells it (Linux); NaN elsewhere. */
import { readFileSync } from "node:fs";

const POLL_MS = 20;
const KIB_PER_MIB = 1_024;

/** The largest resident set so far, in MiB; NaN for a process that is gone. */
export function peakMemory(pid: number): number {
  try {
    const status = readFileSync(`/proc/${pid}/status`, "utf8");
    return Number(/^VmHWM:\s+([0-9]+) kB$/m.exec(status)?.[1]) / KIB_PER_MIB;
  } catch {
    return Number.NaN;
  }
}

/** Asks until the returned function is called, which tells the last answer. */
export function watchMemory(pid: number): () => number {
  let peak = Number.NaN;
  const timer = setInterval(() => {
    const now = peakMemory(pid);
    if (!Number.isNaN(now)) peak = now;
  }, POLL_MS);
  return () => {
    clearInterval(timer);
    return peak;
  };
}
