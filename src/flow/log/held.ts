/** The head's lock, and the prefix that whoever holds it decides by. */
import type { Hash, Sha256 } from "../../core/hash.ts";
import type { Prefix } from "../../core/prefix.ts";
import { Problem } from "../../core/problem.ts";
import type { Sql, Transaction } from "../../store/connect.ts";
import { type LockedHead, lockHead, readHeads } from "../../store/heads.ts";
import { limitTransaction } from "../../store/transaction.ts";
import type { Clock, Random } from "../clock.ts";
import type { Guard } from "./guard.ts";
import { catchUp, recall } from "./recall.ts";

export interface Committing {
  sql: Sql;
  clock: Clock;
  random: Random;
  hash: Sha256;
  guard: Guard;
}

/** What a process remembers of a log between commits. */
export interface Memory {
  readonly log: string;
  prefix?: Prefix;
  /** The prefix is of entries 0 … size−1, or of some more. */
  size?: bigint;
  /** Of the database that the prefix was read from. */
  copy?: string;
}

/** The lock was had with a prefix that is not the head's: roll back, read on, decide again. */
class Moved extends Error {}

/** Control entries are rare; a log that moves so often under us is in trouble. */
const ATTEMPTS_MAX = 20;

/** Runs `decide` with the newest prefix, and again while the head turns out to be elsewhere. */
export async function decided<T>(
  { sql }: Committing,
  memory: Memory,
  decide: (prefix: Prefix) => Promise<T>,
): Promise<T> {
  let prefix = memory.prefix ?? (await renewed(sql, memory));
  for (let attempt = 0; attempt < ATTEMPTS_MAX; attempt += 1) {
    try {
      return await decide(prefix);
    } catch (error) {
      if (!(error instanceof Moved)) throw error;
      prefix = await renewed(sql, memory);
    }
  }
  throw new Problem("busy");
}

/**
 * The prefix of entries 0 … `atLeast`−1 at least, or of all that the log has.
 *
 * @throws Problem `not-found`
 */
export async function readPrefix(
  { sql }: Committing,
  memory: Memory,
  atLeast: bigint,
): Promise<Prefix> {
  return remembered(memory, atLeast) ?? (await renewed(sql, memory));
}

/** What is remembered, if it is of so many entries. */
export function remembered({ prefix, size = 0n }: Memory, atLeast: bigint): Prefix | undefined {
  return size >= atLeast ? prefix : undefined;
}

async function renewed(sql: Sql, memory: Memory): Promise<Prefix> {
  const head = (await readHeads(sql, [memory.log])).get(memory.log);
  if (head === undefined) throw new Problem("not-found");
  // Another copy, or a head behind what was read from it: another database stands here now.
  const known = memory.copy === head.copy ? memory.prefix : undefined;
  const goesOn = known !== undefined && known.controlIndex <= head.controlIndex;
  if (!goesOn) forget(memory);
  const prefix = goesOn ? known : await recall(sql, memory.log);
  await catchUp(sql, prefix, head.controlIndex);
  memory.prefix = prefix;
  memory.size = head.size;
  memory.copy = head.copy;
  return prefix;
}

function forget(memory: Memory): void {
  delete memory.prefix;
  delete memory.size;
}

export function committed({ guard }: Committing, memory: Memory, size: bigint, leaf: Hash): void {
  guard.committed(memory.log, size, leaf);
  memory.size = size;
}

/**
 * Locks the head. The lock comes before every look: two tries of one report must not both find
 * nothing. All statements of the caller go out behind it without waiting for its answer.
 */
export async function hold(
  { guard }: Committing,
  memory: Memory,
  prefix: Prefix,
  tx: Transaction,
): Promise<LockedHead> {
  const [, head] = await Promise.all([limitTransaction(tx), lockHead(tx, memory.log)]);
  if (head === undefined) throw new Problem("not-found");
  await guard.assertWritable(tx, memory.log, head);
  if (memory.copy !== head.copy) {
    // After a failover or a restore the same index may hold another control entry: what was read is forgotten.
    forget(memory);
    throw new Moved("commit: another copy");
  }
  if (prefix.controlIndex !== head.controlIndex) throw new Moved("commit: judged too early");
  memory.size = head.size;
  return head;
}

/** Of two instant texts: the clock may have stepped back, the log never does. */
export function laterOf(a: string, b: string): string {
  return a > b ? a : b;
}
