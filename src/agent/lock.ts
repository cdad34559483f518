/**
 * One agent per state folder: two would give one counter to two reports. Node has no flock, so the
 * lock is a row of numbered files `agent.lock.N`, of which the highest says who holds the folder.
 * Taking over from a dead holder creates N + 1, which only one contender can; a number is never used
 * again while a higher one is there, so a slow contender finds out that it came too late.
 */
import { readdirSync, readFileSync, rmSync, truncateSync } from "node:fs";
import { join } from "node:path";
import { z } from "zod";
import { createFile } from "./durable.ts";
import { AgentError, errnoOf } from "./failure.ts";

const NAME = /^agent\.lock\.([1-9][0-9]{0,14})$/;

/** A process id comes again, after a reboot or in a container often: the start time tells them apart. */
const Holder = z.strictObject({ pid: z.int(), started: z.string() });
type Holder = z.infer<typeof Holder>;

/**
 * Takes the folder for this process until the returned function is called, or the process ends in
 * any way.
 * @throws AgentError `in-use`
 */
export function lockFolder(folder: string): () => void {
  for (;;) {
    const highest = Math.max(0, ...numbers(folder));
    if (highest > 0) refuseIfHeld(folder, highest);
    const mine = highest + 1;
    const path = join(folder, `agent.lock.${mine}`);
    if (!createFile(path, JSON.stringify(holderNow()))) continue;
    if (Math.max(...numbers(folder)) > mine) {
      // The look above was old: others came and went since, and a newer holder may be at work.
      rmSync(path);
      continue;
    }
    for (const number of numbers(folder)) {
      if (number < mine) rmSync(join(folder, `agent.lock.${number}`), { force: true });
    }
    // Emptied, not removed: the number must stay taken for contenders that looked before. And not
    // replaced: letting go must need no room on a full disk.
    return () => truncateSync(path);
  }
}

function refuseIfHeld(folder: string, number: number): void {
  const holder = readHolder(join(folder, `agent.lock.${number}`));
  if (holder === undefined || !isRunning(holder)) return;
  throw new AgentError(
    "in-use",
    `Another agent (process ${holder.pid}) is using ${folder}. Wait for it, or use another --state.`,
  );
}

function numbers(folder: string): number[] {
  return readdirSync(folder).flatMap((name) => {
    const digits = NAME.exec(name)?.[1];
    return digits === undefined ? [] : [Number(digits)];
  });
}

/** Undefined when it was let go, or the file went away meanwhile: then a higher one is there. */
function readHolder(path: string): Holder | undefined {
  try {
    const text = readFileSync(path, "utf8");
    return text === "" ? undefined : Holder.parse(JSON.parse(text));
  } catch (error) {
    if (errnoOf(error) === "ENOENT") return undefined;
    throw new AgentError("damaged", `${path} is not a lock of this agent.`, { cause: error });
  }
}

function holderNow(): Holder {
  return { pid: process.pid, started: startedAt(process.pid) ?? "" };
}

function isRunning({ pid, started }: Holder): boolean {
  const now = startedAt(pid);
  if (now !== undefined) return now === started;
  if (started !== "") return false; // /proc is there, and that process is not in it
  try {
    process.kill(pid, 0);
    return true;
  } catch (error) {
    return errnoOf(error) === "EPERM";
  }
}

/** proc(5): field 22 of `stat`, in clock ticks since boot. Undefined without /proc or such a process. */
function startedAt(pid: number): string | undefined {
  try {
    const stat = readFileSync(`/proc/${pid}/stat`, "latin1");
    // The second field is the command in parentheses and may itself hold spaces and parentheses.
    return stat.slice(stat.lastIndexOf(")") + 2).split(" ")[19];
  } catch {
    return undefined;
  }
}
