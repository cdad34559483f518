/**
 * One process at a time, for a moment. Node has no flock, so the lock is a symbolic link, made with what
 * it says in one step: who holds it. What a process that was killed has left is cleared by whoever comes
 * next and can know that it is gone: in another container, or on another host, nobody can.
 */
import { randomUUID } from "node:crypto";
import { readlinkSync, symlinkSync, unlinkSync } from "node:fs";
import { hostname } from "node:os";
import { setTimeout as delay } from "node:timers/promises";
import { CannotLook } from "./finding.ts";

/** Far longer than a file takes to be written. */
const WAIT_MS_MAX = 10_000;
const POLL_MS = 20;
const HOLDER = /^(\d+) (\S+) (.*)$/;

/**
 * Does the work while no other process does any for this path: it must not wait for anything.
 *
 * @throws CannotLook where the lock is not to be had in ten seconds, or not to be made
 */
export async function exclusively<T>(path: string, work: () => T): Promise<T> {
  const lock = `${path}.lock`;
  const mine = `${process.pid} ${randomUUID()} ${here()}`;
  for (let waited = 0; !make(lock, mine); waited += POLL_MS) {
    const holder = readHolder(lock);
    if (holder !== undefined && isGone(holder)) clear(lock, holder);
    if (waited >= WAIT_MS_MAX) {
      const whose = `by process, id and host: ${holder ?? "changing"}`;
      throw new CannotLook(`${lock} is held, ${whose}; remove it only if that process is gone`);
    }
    await delay(POLL_MS);
  }
  try {
    return work();
  } finally {
    unlinkSync(lock);
  }
}

/** False where it is there already. */
function make(link: string, target: string): boolean {
  try {
    symlinkSync(target, link);
    return true;
  } catch (error) {
    if (codeOf(error) === "EEXIST") return false;
    throw new CannotLook(`${link} cannot be made: ${codeOf(error)}`, { cause: error });
  }
}

/** Undefined where it was let go meanwhile. */
function readHolder(lock: string): string | undefined {
  try {
    return readlinkSync(lock);
  } catch (error) {
    if (codeOf(error) === "ENOENT") return undefined;
    throw new CannotLook(`${lock} cannot be read: ${codeOf(error)}`, { cause: error });
  }
}

/** Where a process number means one process: namespaces(7), pid_namespaces(7). */
export function here(): string {
  try {
    return `${hostname()} ${readlinkSync("/proc/self/ns/pid")}`;
  } catch {
    return hostname(); // a system without /proc
  }
}

/** One with our own number is an earlier one: we wait here. */
function isGone(holder: string): boolean {
  const [, pid = "", , host] = HOLDER.exec(holder) ?? [];
  if (host !== here()) return false;
  if (Number(pid) === process.pid) return true;
  try {
    process.kill(Number(pid), 0);
    return false;
  } catch (error) {
    return codeOf(error) === "ESRCH";
  }
}

/** Of all who saw it one may: a second one would take away the lock of whoever came after. */
function clear(lock: string, holder: string): void {
  const [, , id] = HOLDER.exec(holder) ?? [];
  const claim = `${lock}.${id}`;
  if (!make(claim, String(process.pid))) return;
  try {
    if (readHolder(lock) === holder) unlinkSync(lock);
  } finally {
    unlinkSync(claim);
  }
}

function codeOf(error: unknown): unknown {
  return error instanceof Error && "code" in error ? error.code : undefined;
}
