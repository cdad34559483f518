/**
 * Append's transaction for entries that stand in the archive and are missing here: the same bytes
 * again, with all that append wrote beside them. The guard is not asked, since it is the one that
 * waits for this; what may be taken is for the caller to prove (recover.ts).
 */
import { CONTROL_KINDS, decodeEntry, type Entry, GENESIS_PREV } from "../../core/entry.ts";
import { leafHash, type Sha256 } from "../../core/hash.ts";
import { Prefix } from "../../core/prefix.ts";
import { equal } from "../../core/text.ts";
import type { UsageColumns } from "../../core/typed.ts";
import { insertBeside } from "../../store/beside.ts";
import type { Sql, Transaction } from "../../store/connect.ts";
import { insertEntries, type NewEntry, readGenesis } from "../../store/entries.ts";
import { createHead, type Head, lockCreation, lockHead, moveHead } from "../../store/heads.ts";
import { insertJobs } from "../../store/jobs.ts";
import { insertKey } from "../../store/keys.ts";
import { silenceMark } from "../../store/quota-marks.ts";
import { insertReports } from "../../store/reports.ts";
import { keepWaiting } from "../../store/seals.ts";
import type { TypedColumns } from "../../store/snapshots.ts";
import { transact } from "../../store/transact.ts";
import { limitTransaction } from "../../store/transaction.ts";
import { citedBy, type Derived, derive } from "../check/derive.ts";
import type { Committing, Memory } from "./held.ts";
import { isProven } from "./proven-entry.ts";
import { catchUp, recall } from "./recall.ts";
import { RecoveryError } from "./recovery.ts";

export interface Replay {
  tx: Transaction;
  /** As it is to be committed; of size 0 while the log has no entry. */
  readonly head: Head;
  /**
   * Entries `from` … in the order of the log; what stands already is passed over.
   *
   * @throws RecoveryError `log-forked` unless they go on from the head
   */
  take(from: bigint, entries: readonly Uint8Array[]): Promise<void>;
  /**
   * The same of entries that no checkpoint covers, up to the first that proves nothing by itself.
   *
   * @returns whether it took them all
   */
  takeProven(from: bigint, entries: readonly Uint8Array[]): Promise<boolean>;
}

const NO_HEAD: Head = { size: 0n, leaf: GENESIS_PREV, at: "", controlIndex: -1n };
const CONTROL: readonly string[] = CONTROL_KINDS;

/** One transaction under the head's lock: all that `work` takes, or nothing. */
export async function commitArchived(
  { sql, hash, clock }: Pick<Committing, "sql" | "hash" | "clock">,
  memory: Memory,
  work: (replay: Replay) => Promise<void>,
): Promise<void> {
  const { log } = memory;
  try {
    await transact(sql, async (tx) => {
      await Promise.all([limitTransaction(tx), keepWaiting(tx)]);
      const locked = await lockedHead(tx, log);
      const head = locked ?? NO_HEAD;
      const known = await prefixAt(sql, memory, head);
      const replaying = new Replaying(tx, { log, hash, head, prefix: known });
      await work(replaying);
      if (replaying.prefix !== undefined) memory.prefix = replaying.prefix;
      if (replaying.head.size === head.size) return;
      if (locked === undefined) await createHead(tx, log, replaying.head);
      else await moveHead(tx, log, locked, replaying.head);
      // Whoever was told of it when it was new is not told again.
      await silenceMark(tx, log, clock.now());
    });
  } catch (error) {
    // It may have taken in what is not committed.
    delete memory.prefix;
    throw error;
  }
}

/** A log that is not there yet has no row to lock: two that recover it queue where logs are created. */
async function lockedHead(tx: Transaction, log: string): Promise<Head | undefined> {
  const head = await lockHead(tx, log);
  if (head !== undefined) return head;
  await lockCreation(tx);
  return await lockHead(tx, log);
}

async function prefixAt(sql: Sql, memory: Memory, head: Head): Promise<Prefix | undefined> {
  if (head.size === 0n) return undefined;
  const known = memory.prefix;
  if (known?.controlIndex === head.controlIndex) return known;
  const prefix = await recall(sql, memory.log);
  await catchUp(sql, prefix, head.controlIndex);
  return prefix;
}

/** What one page brings. */
interface Taken {
  stored: NewEntry;
  at: string;
  derived: Derived;
}

class Replaying implements Replay {
  readonly tx: Transaction;
  head: Head;
  prefix: Prefix | undefined;
  readonly #log: string;
  readonly #hash: Sha256;

  constructor(
    tx: Transaction,
    start: { log: string; hash: Sha256; head: Head; prefix: Prefix | undefined },
  ) {
    this.tx = tx;
    this.head = start.head;
    this.prefix = start.prefix;
    this.#log = start.log;
    this.#hash = start.hash;
  }

  async take(from: bigint, entries: readonly Uint8Array[]): Promise<void> {
    const missing = this.#missing(from, entries);
    const page: Taken[] = [];
    const recent = new Map<bigint, Entry>();
    for (const bytes of missing) page.push(await this.#next(bytes, recent));
    if (page.length > 0) await insertPage(this.tx, this.#log, page);
  }

  /** One by one: what an entry is held against is what the ones before it left in the tables. */
  async takeProven(from: bigint, entries: readonly Uint8Array[]): Promise<boolean> {
    const { tx } = this;
    for (const bytes of this.#missing(from, entries)) {
      const entry = readEntryAt(this.head.size, bytes);
      const before = this.prefix && { tx, prefix: this.prefix, hash: this.#hash };
      if (before === undefined || !(await isProven(entry, before))) return false;
      await insertPage(tx, this.#log, [await this.#next(bytes, new Map())]);
    }
    return true;
  }

  #missing(from: bigint, entries: readonly Uint8Array[]): readonly Uint8Array[] {
    const { size } = this.head;
    return entries.slice(Number(size > from ? size - from : 0n));
  }

  async #next(bytes: Uint8Array, recent: Map<bigint, Entry>): Promise<Taken> {
    const { size, leaf: prev, controlIndex } = this.head;
    const entry = readEntryAt(size, bytes);
    if (!follows(this.head, this.#log, entry)) {
      throw new RecoveryError("log-forked", `entry ${size} does not go on from the head`, size);
    }
    const prefix = await this.#apply(entry);
    const cited = await citedBy(entry, this.tx);
    const derived = derive(entry, prefix, new Map([...cited, ...recent]), this.#hash);
    if (derived === undefined) throw new Error(`replay: entry ${size} says nothing`);
    recent.set(size, entry);
    const leaf = leafHash(bytes, this.#hash);
    const { at, kind } = entry;
    const control = CONTROL.includes(kind) ? size : controlIndex;
    this.head = { size: size + 1n, leaf, at, controlIndex: control };
    const usage = usageOf(derived.typed);
    return {
      stored: { index: size, kind, prev, leaf, bytes, ...(usage && { usage }) },
      at,
      derived,
    };
  }

  async #apply(entry: Entry): Promise<Prefix> {
    if (entry.kind === "log") {
      await this.#assertAlone(entry.body.unique_id);
      this.prefix = new Prefix(entry);
    } else {
      this.prefix?.apply(entry);
    }
    if (this.prefix === undefined) throw new Error("replay: entry 0 is no log");
    return this.prefix;
  }

  /** As where a log is created: an instance has one. */
  async #assertAlone(uniqueId: string): Promise<void> {
    for (const { bytes, log } of await readGenesis(this.tx)) {
      const entry = decodeEntry(bytes);
      if (typeof entry === "string" || entry.kind !== "log") continue;
      if (entry.body.unique_id !== uniqueId) continue;
      throw new RecoveryError("log-exists", `instance ${uniqueId} has log ${log} in this database`);
    }
  }
}

/** @throws RecoveryError `archive-altered`, `later-version` */
function readEntryAt(index: bigint, bytes: Uint8Array): Entry {
  const entry = decodeEntry(bytes);
  if (entry === "unknown-kind") {
    throw new RecoveryError(
      "later-version",
      `entry ${index} is of a kind that a later version wrote`,
    );
  }
  if (entry === "malformed")
    throw new RecoveryError("archive-altered", `entry ${index} is no entry`);
  return entry;
}

/** Is this the log's entry after the head? */
export function follows(
  head: Pick<Head, "size" | "leaf" | "at">,
  log: string,
  entry: Entry,
): boolean {
  return (
    entry.log === log &&
    entry.index === head.size &&
    equal(entry.prev, head.leaf) &&
    entry.at >= head.at &&
    (entry.kind === "log") === (head.size === 0n)
  );
}

async function insertPage(tx: Transaction, log: string, page: readonly Taken[]): Promise<void> {
  const jobs = page.flatMap(({ derived }) => derived.jobs);
  const reports = page.flatMap(({ derived }) => derived.reports);
  const keys = page.flatMap(({ derived }) => derived.keys);
  const beside = page.flatMap(({ derived }) => derived.beside);
  const stored = page.map((taken) => taken.stored);
  await Promise.all([
    insertEntries(
      tx,
      log,
      page.map(({ at }) => at),
      stored,
    ),
    jobs.length > 0 &&
      insertJobs(
        tx,
        log,
        jobs.map(({ job_id, tracking, ...job }) => ({
          ...job,
          jobId: String(job_id),
          tracking: tracking === "hosted" ? "hosted" : "self_managed",
        })),
      ),
    reports.length > 0 &&
      insertReports(
        tx,
        log,
        reports.map(({ counter, index, ...answer }) => ({
          ...answer,
          counter: String(counter),
          index: index ?? undefined,
        })),
      ),
    ...keys.map(({ kid, index, public_key: publicKey }) =>
      insertKey(tx, { kid, log, index, publicKey }),
    ),
    insertBeside(tx, log, beside),
  ]);
}

/** Either all of the columns have a value, or none has. */
function usageOf(typed: TypedColumns): UsageColumns | undefined {
  return typed.tracking === null ? undefined : (typed as UsageColumns);
}
