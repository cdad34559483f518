/** What another process takes, where the system tells it (Linux); NaN elsewhere. */
import { readFileSync } from "node:fs";

const POLL_MS = 20;
const KIB_PER_MIB = 1_024;
/** Linux tells times of processes in hundredths of a second. */
const TICKS = 100;

/** CPU seconds of all its threads so far, the kernel's for it among them. */
export function processorSeconds(pid: number): number {
  try {
    // Behind the name, which may hold anything, the times are the twelfth and the thirteenth.
    const stat = readFileSync(`/proc/${pid}/stat`, "utf8");
    const [user, system] = stat
      .slice(stat.lastIndexOf(")") + 2)
      .split(" ")
      .slice(11, 13);
    return (Number(user) + Number(system)) / TICKS;
  } catch {
    return Number.NaN;
  }
}

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
