/** The transactions behind `append` for entries that are no report's: one, or several together. */
import { admit } from "../../core/admit.ts";
import { rowsBeside } from "../../core/beside.ts";
import { readClaim } from "../../core/claim.ts";
import { type Body, CONTROL_KINDS, type Entry, type EntryOf, type Kind } from "../../core/entry.ts";
import type { Hash, Sha256 } from "../../core/hash.ts";
import type { Prefix } from "../../core/prefix.ts";
import { fact } from "../../core/report.ts";
import { type UsageColumns, usageColumns } from "../../core/typed.ts";
import { instantText } from "../../core/unit.ts";
import { insertBeside } from "../../store/beside.ts";
import type { Transaction } from "../../store/connect.ts";
import { insertEntries, readEntry } from "../../store/entries.ts";
import { type LockedHead, moveHead } from "../../store/heads.ts";
import { insertJobs, type Job } from "../../store/jobs.ts";
import { insertKey } from "../../store/keys.ts";
import { transact } from "../../store/transact.ts";
import { assertDecided } from "../control/decided.ts";
import { assertHealed } from "../reconcile/end.ts";
import { reportOf } from "../usage/show.ts";
import { Chain } from "./chain.ts";
import { type Committing, committed, decided, hold, laterOf, type Memory } from "./held.ts";

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

/**
 * Writes the next entry of the transaction: any but a report's, save the usage of one that is let in.
 *
 * @throws Problem of `admit`, `approval-required`, `approver-needed`, `already-decided`; Error for anything
 *   behind an entry of a control kind, which would be judged without it
 */
export type Put = <K extends Kind>(kind: K, body: Body<K>) => Promise<Receipt>;

/** The prefix is up to the head, where the first of the entries goes; `at` is that of all of them. */
export interface Held {
  prefix: Prefix;
  at: string;
  tx: Transaction;
  /** Index of the first entry that is put. */
  size: bigint;
}

/** What is written and answered. Asked again whenever the prefix has moved. */
export type Together<T> = (put: Put, held: Held) => Promise<T>;

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
  return await commitTogether(options, memory, async (put, { prefix, at, tx }) => {
    const body = await make(prefix, at, tx);
    if (typeof body !== "bigint") return await put(kind, body);
    const stands = await readEntry(tx, memory.log, body);
    return { index: stands.index, leaf: stands.leaf, at: stands.at, written: false };
  });
}

/**
 * Writes entries that stand together or not at all.
 *
 * @throws Problem as `commitEntry` does
 */
export async function commitTogether<T>(
  options: Committing,
  memory: Memory,
  make: Together<T>,
): Promise<T> {
  return await decided(options, memory, async (prefix) => {
    const { answer, writing } = await transact(options.sql, async (tx) => {
      const head = await hold(options, memory, prefix, tx);
      const at = laterOf(instantText(options.clock.now()), head.at);
      const writing = new Writing(options, { tx, log: memory.log, prefix, head, at });
      const put: Put = (kind, body) => writing.put(kind, body);
      const answer = await make(put, { prefix, at, tx, size: head.size });
      await writing.end();
      return { answer, writing };
    });
    for (const entry of writing.entries) prefix.apply(entry);
    const { size, leaf } = writing.tip;
    if (writing.entries.length > 0) committed(options, memory, size, leaf);
    return answer;
  });
}

interface Place {
  tx: Transaction;
  log: string;
  prefix: Prefix;
  head: LockedHead;
  at: string;
}

/** What one transaction has written so far. */
class Writing {
  readonly entries: Entry[] = [];
  readonly #place: Place;
  readonly #chain: Chain;
  readonly #hash: Sha256;
  #controlIndex: bigint;

  constructor({ hash }: Committing, place: Place) {
    this.#place = place;
    this.#hash = hash;
    this.#chain = new Chain(place.log, place.head, place.at, hash);
    this.#controlIndex = place.head.controlIndex;
  }

  get tip(): Chain["tip"] {
    return this.#chain.tip;
  }

  async put<K extends Kind>(kind: K, body: Body<K>): Promise<Receipt> {
    const { tx, log, prefix, head, at } = this.#place;
    // The prefix takes entries in when they are committed, and not before: others look at it meanwhile.
    if (this.#controlIndex !== head.controlIndex) throw new Error("commit: behind a control entry");
    admit(prefix, kind, body, at);
    assertBehind(this.entries.at(-1), kind, body);
    const { entry, stored } = this.#chain.append(kind, body);
    await assertDecided(tx, prefix, entry as Entry);
    await assertHealed(tx, entry as Entry);
    if (kind === "usage") {
      const { columns, job } = besideUsage(entry as EntryOf<"usage">, prefix, this.#hash);
      stored.usage = columns;
      await insertJobs(tx, log, [job]);
    }
    await insertEntries(tx, log, at, [stored]);
    if (kind === "key") await enterKey(tx, entry as EntryOf<"key">);
    // What follows from an acknowledgement stands in its transaction.
    const ack = this.entries.find((each) => each.kind === "feed_ack");
    await insertBeside(tx, log, rowsBeside(entry as Entry, ack));
    this.entries.push(entry as Entry);
    if ((CONTROL_KINDS as readonly Kind[]).includes(kind)) this.#controlIndex = stored.index;
    return { index: stored.index, leaf: stored.leaf, at, written: true };
  }

  async end(): Promise<void> {
    const { tx, log, head } = this.#place;
    if (this.entries.length === 0) return;
    if (releasedBy(this.entries.at(-1)) !== undefined) throw new Error("commit: no usage behind");
    await moveHead(tx, log, head, { ...this.tip, controlIndex: this.#controlIndex });
  }
}

/** Usage comes in by reports, but right behind the release of what was held; and there nothing else does. */
function assertBehind(before: Entry | undefined, kind: Kind, body: Body<Kind>): void {
  const hold = releasedBy(before);
  const isReleased = kind === "usage" && hold !== undefined && "hold" in body && body.hold === hold;
  const isOther = kind !== "usage" && hold === undefined;
  if (!isReleased && !isOther) throw new Error("commit: usage and release do not go together");
}

function releasedBy(entry: Entry | undefined): string | undefined {
  const released = entry?.kind === "hold_resolved" && entry.body.outcome === "released";
  return released ? entry.body.hold : undefined;
}

/** What settle.ts writes beside the usage of a report that comes in. */
function besideUsage(
  entry: EntryOf<"usage">,
  prefix: Prefix,
  hash: Sha256,
): { columns: UsageColumns; job: Job } {
  const { body, index } = entry;
  const { report } = reportOf(body.jws);
  const { finished_at } = report.usage;
  const runner = prefix.runner(report.runner.uuid, BigInt(body.enrolment), finished_at);
  if (runner === undefined) throw new Error("commit: usage of no runner");
  const { tracking } = body;
  return {
    columns: usageColumns(entry, report, BigInt(runner.runner_id)),
    job: { tracking, jobId: report.job.id, index, fact: fact(report, hash) },
  };
}

async function enterKey(tx: Transaction, { body, index, log }: EntryOf<"key">): Promise<void> {
  const claim = readClaim(body.jws);
  if (claim === undefined) throw new Error("commit: a claim that admit let in cannot be read");
  await insertKey(tx, { kid: body.kid, log, index, publicKey: claim.publicKey });
}
