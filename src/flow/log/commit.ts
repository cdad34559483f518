/**
 * The transactions behind `append`: one head lock, few round trips, and nothing answered before
 * COMMIT has returned.
 */
import { admit } from "../../core/admit.ts";
import { readClaim } from "../../core/claim.ts";
import { type Body, CONTROL_KINDS, type EntryOf, type Kind } from "../../core/entry.ts";
import type { Hash, Sha256 } from "../../core/hash.ts";
import { judge, trackingOf } from "../../core/judge.ts";
import type { Prefix } from "../../core/prefix.ts";
import { Problem } from "../../core/problem.ts";
import { instantText } from "../../core/unit.ts";
import type { Sql, Transaction } from "../../store/connect.ts";
import { insertEntries, readEntry } from "../../store/entries.ts";
import { type LockedHead, lockHead, moveHead, readHeads } from "../../store/heads.ts";
import { insertJobs, type JobKey, readJobs } from "../../store/jobs.ts";
import { insertKey } from "../../store/keys.ts";
import { insertReports, readReports } from "../../store/reports.ts";
import { transact } from "../../store/transact.ts";
import { limitTransaction } from "../../store/transaction.ts";
import type { Clock, Random } from "../clock.ts";
import { Chain } from "./chain.ts";
import type { Guard } from "./guard.ts";
import { catchUp, recall } from "./recall.ts";
import { type Candidate, type Fit, type Outcome, settle } from "./settle.ts";

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

/** Where an entry stands. */
export interface Receipt {
  index: bigint;
  leaf: Hash;
  at: string;
  /** False if it stood already, and nothing was written. */
  written: boolean;
}

/**
 * The body of an entry, from the prefix up to the head and the entry's own `at`; or the index of the
 * entry that says so already. Asked again whenever the prefix has moved.
 */
export type Make<K extends Kind> = (
  prefix: Prefix,
  at: string,
  tx: Transaction,
) => Body<K> | bigint | Promise<Body<K> | bigint>;

/** The lock was had with a prefix that is not the head's: roll back, read on, decide again. */
class Moved extends Error {}

/** Control entries are rare; a log that moves so often under us is in trouble. */
const ATTEMPTS_MAX = 20;

/**
 * Settles reports as one batch.
 *
 * @throws Problem `not-found`, `busy`, and whatever the guard says
 */
export async function commitReports(
  options: Committing,
  memory: Memory,
  verdicts: readonly Fit[],
): Promise<Outcome[]> {
  return await decided(options, memory, async (prefix) => {
    const early = instantText(options.clock.now());
    const candidates = verdicts.map((verdict) => candidateOf(prefix, verdict, early));
    const { outcomes, head } = await transact(options.sql, async (tx) => {
      const [locked, reports, jobs] = await Promise.all([
        hold(options, memory, prefix, tx),
        readReports(tx, memory.log, verdicts.map(counterKey)),
        readJobs(tx, memory.log, candidates.flatMap(jobKey)),
      ]);
      const at = laterOf(early, locked.at);
      const settlement = settle(
        judgedAgain(prefix, candidates, at),
        { reports, jobs },
        {
          ...options,
          log: memory.log,
          head: locked,
          at,
        },
      );
      if (settlement.entries.length === 0) return { ...settlement, head: undefined };
      await Promise.all([
        insertEntries(tx, memory.log, at, settlement.entries),
        settlement.jobs.length > 0 && insertJobs(tx, memory.log, settlement.jobs),
        insertReports(tx, memory.log, settlement.reports),
        moveHead(tx, memory.log, locked, settlement.head),
      ]);
      return settlement;
    });
    if (head !== undefined) committed(options, memory, head.size, head.leaf);
    return outcomes;
  });
}

/**
 * Writes one entry that is no report's.
 *
 * @throws Problem of `admit` or of `make`; `not-found`, `busy`, and whatever the guard says
 */
export async function commitEntry<K extends Kind>(
  options: Committing,
  memory: Memory,
  kind: K,
  make: Make<K>,
): Promise<Receipt> {
  return await decided(options, memory, async (prefix) => {
    const { entry, receipt } = await transact(options.sql, async (tx) => {
      const head = await hold(options, memory, prefix, tx);
      const at = laterOf(instantText(options.clock.now()), head.at);
      const body = await make(prefix, at, tx);
      if (typeof body === "bigint") {
        const { index, leaf, at } = await readEntry(tx, memory.log, body);
        return { receipt: { index, leaf, at, written: false } };
      }
      admit(prefix, kind, body, at);
      const chain = new Chain(memory.log, head, at, options.hash);
      const { entry, stored } = chain.append(kind, body);
      const { index, leaf } = stored;
      const controlIndex = isControl(kind) ? index : head.controlIndex;
      await insertEntries(tx, memory.log, at, chain.entries);
      if (kind === "key") await enterKey(tx, entry as EntryOf<"key">);
      await moveHead(tx, memory.log, head, { ...chain.tip, controlIndex });
      return { entry, receipt: { index, leaf, at, written: true } };
    });
    if (entry !== undefined) {
      prefix.apply(entry);
      committed(options, memory, receipt.index + 1n, receipt.leaf);
    }
    return receipt;
  });
}

/** Runs `decide` with the newest prefix, and again while the head turns out to be elsewhere. */
async function decided<T>(
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

function committed({ guard }: Committing, memory: Memory, size: bigint, leaf: Hash): void {
  guard.committed(memory.log, size, leaf);
  memory.size = size;
}

/**
 * Locks the head. The lock comes before every look: two tries of one report must not both find
 * nothing. All statements of the caller go out behind it without waiting for its answer.
 */
async function hold(
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

function candidateOf(prefix: Prefix, verdict: Fit, at: string): Candidate {
  if (prefix.key(verdict.kid) === undefined) return { kind: "stranger", verdict };
  if (verdict.kind === "refused") return { kind: "unfit", verdict };
  const { kid, report } = verdict;
  const tracking = trackingOf(prefix, kid, report);
  return { kind: "report", verdict, tracking, judgement: judge(prefix, kid, report, at) };
}

/**
 * Judgement costs too much to be made under the lock, where the entry's own `at` becomes known. A
 * later `at` changes one answer only: what was `future` may be so no longer.
 */
function judgedAgain(
  prefix: Prefix,
  candidates: readonly Candidate[],
  at: string,
): readonly Candidate[] {
  return candidates.map((candidate) => {
    if (candidate.kind !== "report") return candidate;
    const { judgement, verdict } = candidate;
    return judgement.kind === "hold" && judgement.code === "future"
      ? { ...candidate, judgement: judge(prefix, verdict.kid, verdict.report, at) }
      : candidate;
  });
}

function counterKey(verdict: Fit): { kid: string; counter: string } {
  const { kid } = verdict;
  return { kid, counter: verdict.kind === "signed" ? verdict.report.counter : verdict.counter };
}

function jobKey(candidate: Candidate): JobKey[] {
  if (candidate.kind !== "report" || candidate.tracking === undefined) return [];
  return [{ tracking: candidate.tracking, jobId: candidate.verdict.report.job.id }];
}

async function enterKey(tx: Transaction, { body, index, log }: EntryOf<"key">): Promise<void> {
  const claim = readClaim(body.jws);
  if (claim === undefined) throw new Error("commit: a claim that admit let in cannot be read");
  await insertKey(tx, { kid: body.kid, log, index, publicKey: claim.publicKey });
}

function isControl(kind: Kind): boolean {
  return (CONTROL_KINDS as readonly Kind[]).includes(kind);
}

/** Of two instant texts: the clock may have stepped back, the log never does. */
function laterOf(a: string, b: string): string {
  return a > b ? a : b;
}
