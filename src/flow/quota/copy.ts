/**
 * What a process knows of one log's namespaces, kept up with committed entries by index. Each look is one
 * snapshot of the database, so that all that is known is as of one size: a late commit cannot be missed,
 * since the head row orders commits. Nothing that was handed out is changed afterwards.
 */
import { parseSignedComputeMs } from "../../core/charge.ts";
import { Problem } from "../../core/problem.ts";
import type { QuotaFacts } from "../../core/quota/quota.ts";
import type { Transaction } from "../../store/connect.ts";
import { type LockedHead, readHeads } from "../../store/heads.ts";
import { type PostedEntry, readTail } from "../../store/quotas.ts";
import { follows } from "../log/guard.ts";
import {
  type CommonFacts,
  type OwnFacts,
  readCommon,
  readOwn,
  type TouchedFacts,
  together,
} from "./facts.ts";

/** What the ledger says of a namespace, as of entries 0 … asOf−1. */
export interface Held {
  readonly facts: QuotaFacts;
  readonly asOf: bigint;
  /** Index of the last entry that concerns the namespace; −1: there is none. */
  readonly touched: bigint;
  /** Epoch milliseconds: `asOf` was the log's size then. 0: nobody can tell when it was. */
  readonly readAt: number;
  /** By which it was learnt; another one where that was begun anew, and the same size may be of other entries. */
  readonly copy: symbol;
  /** From here on `settled` knows all. */
  readonly since: bigint;
  /** Hosted jobs that got a usage in [from, asOf). @throws Error below `since` */
  settled(from: bigint): readonly string[];
}

interface Known {
  readonly own: OwnFacts;
  readonly facts: TouchedFacts;
  readonly since: bigint;
  /** Index and job, index and job …: a tenth of what objects would take. */
  readonly settled: BigInt64Array;
}

/** What one snapshot brings. */
interface Look {
  readonly head: LockedHead;
  /** False: another copy of the database, or too far from it; what was known is forgotten. */
  readonly goesOn: boolean;
  readonly common: CommonFacts | undefined;
  readonly usages: ReadonlyMap<string, PostedEntry[]>;
  readonly own: ReadonlyMap<string, OwnFacts>;
}

/** Jobs of a namespace that are remembered as settled: whoever comes with an older size looks them up. */
export const SETTLED_MAX = 256;
/** A process that was away for longer reads anew what it is asked for. */
const ENTRIES_MAX = 20_000n;

export class LogCopy {
  readonly log: string;
  #head: LockedHead | undefined;
  /** Not the largest: a clock that stepped back must not make what is held look new for as long. */
  #readAt = 0;
  #copy = Symbol();
  #common: CommonFacts | undefined;
  #known = new Map<string, Known>();

  constructor(log: string) {
    this.log = log;
  }

  get size(): number {
    return this.#known.size;
  }

  held(namespace: string): Held | undefined {
    const known = this.#known.get(namespace);
    if (known === undefined || this.#head === undefined) return undefined;
    return new HeldByCopy(known, this.#head.size, this.#readAt, this.#copy);
  }

  /** It was not read later than now: how long ago it was by a clock that stepped back, nobody can tell. */
  judge(now: number): void {
    if (this.#readAt > now) this.#readAt = 0;
  }

  names(): Iterable<string> {
    return this.#known.keys();
  }

  forget(namespace: string): void {
    this.#known.delete(namespace);
  }

  /** The head as it was seen at `readAt`. False: there is something to read. */
  confirm(head: LockedHead | undefined, readAt: number): boolean {
    const seen = this.#head;
    if (head === undefined || seen?.size !== head.size || !follows(seen, head)) return false;
    this.#readAt = readAt;
    return true;
  }

  /**
   * Brings all that is known up to the head, and what is wanted besides.
   *
   * @param snapshot runs a look in a transaction of one snapshot
   * @param readAt not after the snapshot was taken
   * @throws Problem `not-found`, with which all is forgotten
   */
  async read(
    snapshot: <T>(look: (tx: Transaction) => Promise<T>) => Promise<T>,
    wanted: readonly string[],
    readAt: number,
  ): Promise<void> {
    try {
      this.#take(await snapshot((tx) => this.#look(tx, wanted)), readAt, wanted);
    } catch (error) {
      if (error instanceof Problem && error.code === "not-found") this.#known.clear();
      throw error;
    }
  }

  async #look(tx: Transaction, wanted: readonly string[]): Promise<Look> {
    const { log } = this;
    const head = (await readHeads(tx, [log])).get(log);
    if (head === undefined) throw new Problem("not-found");
    const seen = this.#head;
    const goesOn =
      seen !== undefined && follows(seen, head) && head.size - seen.size <= ENTRIES_MAX;
    const known = goesOn ? this.#known : new Map<string, Known>();
    const tail =
      goesOn && head.size > seen.size
        ? await readTail(tx, log, { from: seen.size, to: head.size }, [...known.keys()])
        : [];
    const missing = new Set(wanted.filter((namespace) => !known.has(namespace)));
    const usages = new Map<string, PostedEntry[]>();
    let cutOff = !goesOn;
    for (const entry of tail) {
      if (entry.kind === "usage" || entry.kind === "adjustment") push(usages, entry);
      else if (entry.kind === "quota" || entry.kind === "pack") {
        if (known.has(entry.namespace)) missing.add(entry.namespace);
      } else cutOff = true;
    }
    const [common, own] = await Promise.all([
      cutOff ? readCommon(tx, log) : undefined,
      missing.size === 0 ? new Map() : readOwn(tx, log, head, [...missing]),
    ]);
    return { head, goesOn, common, usages, own };
  }

  #take(
    { head, goesOn, common, usages, own }: Look,
    readAt: number,
    wanted: Iterable<string>,
  ): void {
    if (!goesOn) {
      this.#known.clear();
      this.#copy = Symbol();
    }
    this.#common = common ?? this.#common;
    for (const [namespace, entries] of usages) {
      const before = this.#known.get(namespace);
      if (before !== undefined) this.#set(namespace, moved(before.own, entries), before, entries);
    }
    const asked = new Set(wanted);
    for (const [namespace, each] of own) {
      const before = this.#known.get(namespace);
      // One that was renewed, and is forgotten meanwhile, must not come back unasked.
      if (before === undefined && !asked.has(namespace)) continue;
      this.#set(namespace, each, before ?? { since: head.size, settled: NONE });
    }
    if (common !== undefined) {
      for (const [namespace, before] of this.#known) this.#set(namespace, before.own, before);
    }
    this.#head = head;
    this.#readAt = readAt;
  }

  #set(
    namespace: string,
    own: OwnFacts,
    before: Pick<Known, "since" | "settled">,
    entries: readonly PostedEntry[] = [],
  ): void {
    if (this.#common === undefined) throw new Error("ledger: a namespace of no log");
    const facts = together(this.#common, own);
    this.#known.set(namespace, { own, facts, ...settledBy(before, entries) });
  }
}

/** One is made for each job that is decided about: a closure and a copy of members would cost as much as the rest. */
class HeldByCopy implements Held {
  readonly facts: QuotaFacts;
  readonly asOf: bigint;
  readonly touched: bigint;
  readonly readAt: number;
  readonly copy: symbol;
  readonly since: bigint;
  readonly #settled: BigInt64Array;

  constructor({ facts, since, settled }: Known, asOf: bigint, readAt: number, copy: symbol) {
    this.facts = facts;
    this.asOf = asOf;
    this.touched = facts.touched;
    this.readAt = readAt;
    this.copy = copy;
    this.since = since;
    this.#settled = settled;
  }

  settled(from: bigint): readonly string[] {
    if (from < this.since) throw new Error("ledger: settled before what is known");
    return jobsFrom(this.#settled, from);
  }
}

/** What one snapshot says by itself. */
export function heldAlone(facts: TouchedFacts, asOf: bigint, readAt: number): Held {
  const { touched } = facts;
  return { facts, asOf, touched, readAt, copy: Symbol(), since: asOf, settled: () => [] };
}

const NONE = new BigInt64Array();

function push(usages: Map<string, PostedEntry[]>, entry: PostedEntry): void {
  const list = usages.get(entry.namespace);
  if (list === undefined) usages.set(entry.namespace, [entry]);
  else list.push(entry);
}

function moved(own: OwnFacts, entries: readonly PostedEntry[]): OwnFacts {
  const used = new Map(own.used);
  for (const { month, amount } of entries) {
    if (month === null || month < own.firstMonth) continue;
    const sum = (used.get(month) ?? 0n) + parseSignedComputeMs(amount);
    if (sum === 0n) used.delete(month);
    else used.set(month, sum);
  }
  return { ...own, used, touched: entries.at(-1)?.index ?? own.touched };
}

/** The newest jobs; what falls out moves `since` behind it. */
function settledBy(
  { since, settled }: Pick<Known, "since" | "settled">,
  entries: readonly PostedEntry[],
): Pick<Known, "since" | "settled"> {
  if (entries.length === 0) return { since, settled };
  const jobs = entries.flatMap(({ index, job }) => (job === null ? [] : [index, job]));
  const all = [...settled, ...jobs];
  const kept = BigInt64Array.from(all.slice(-2 * SETTLED_MAX));
  const dropped = all.at(-2 * SETTLED_MAX - 2);
  return { since: dropped === undefined ? since : dropped + 1n, settled: kept };
}

function jobsFrom(settled: BigInt64Array, from: bigint): string[] {
  const jobs: string[] = [];
  for (let i = settled.length - 2; i >= 0; i -= 2) {
    if ((settled[i] ?? 0n) < from) break;
    jobs.push(String(settled[i + 1]));
  }
  return jobs;
}
