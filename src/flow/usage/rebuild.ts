/**
 * Every derived table from the entries' bytes, compared with what stands, and put in its place when
 * asked: the log is the only source (DESIGN §1, invariant 1). Memory is a page; the rest is in
 * temporary tables.
 */
import { CONTROL_KINDS, decodeEntry, GENESIS_PREV } from "../../core/entry.ts";
import { leafHash, type Sha256 } from "../../core/hash.ts";
import { Prefix } from "../../core/prefix.ts";
import type { Sql, Transaction } from "../../store/connect.ts";
import { logsWritten } from "../../store/log-names.ts";
import { ENDED_TABLES } from "../../store/month-ends.ts";
import {
  createEntryScratch,
  ENTRY_TABLES,
  insertHead,
  insertPage,
  insertWatermark,
  LEFT_TABLES,
  lockDerived,
  readAsOf,
  sumScratch,
} from "../../store/rebuilds.ts";
import { refreshViews, viewsAreFilled } from "../../store/rollups.ts";
import { type EntryRow, entryRows, type HeadRow } from "../../store/snapshots.ts";
import { transact } from "../../store/transact.ts";
import { differences } from "../check/compare.ts";
import { citedBy, type Derived, derive } from "../check/derive.ts";
import type { Finding } from "../check/event.ts";
import type { Clock } from "../clock.ts";
import { type RebuiltMonths, rebuildMonths } from "../month/rebuild.ts";
import { isRight, type RebuiltTable, settle } from "./settle.ts";

/**
 * `typed`: columns of entries that are not what their bytes give; no rebuild changes an entry. `months`: closed ones
 * that are not what was signed. `exit`: 0 equal, or made so; 1 something differs; 2 there was nothing to rebuild from.
 */
export interface Rebuilt {
  logs: number;
  entries: string;
  tables: RebuiltTable[];
  /** Tables that are left to the service, and why. */
  left: typeof LEFT_TABLES;
  typed: { count: number; first?: Finding };
  months: RebuiltMonths["other"];
  exit: 0 | 1 | 2;
}

interface Rebuild {
  /** Of the owner: the service's own roles may not replace what they serve. */
  sql: Sql;
  clock: Clock;
  hash: Sha256;
}

export interface RebuildOptions {
  /** False: compare only, and change nothing. */
  write: boolean;
  /** `entries` of the log are read. */
  onProgress?: (log: string, entries: bigint) => void;
}

/**
 * Appends and refreshes wait while entries are read; readers do not, but for the moment when views are filled that
 * held nothing. For closed months, which come after, none of them waits.
 *
 * @throws Error when an entry cannot be read: `check` says more about such a log
 */
export async function rebuild(
  { sql, clock, hash }: Rebuild,
  options: RebuildOptions,
): Promise<Rebuilt> {
  const mode = "isolation level repeatable read";
  const read = await transact(sql, (tx) => rebuildIn(tx, { clock, hash }, options), mode);
  const { isCountable, entries, tables, ...shown } = read;
  const months = isCountable ? await rebuildMonths(sql, options.write) : UNCOUNTED;
  const all = [...tables, ...months.tables];
  const isOpen = shown.typed.count > 0 || months.other.count > 0 || !all.every(isRight);
  const counted = { ...shown, entries: String(entries), tables: all, months: months.other };
  return { ...counted, left: LEFT_TABLES, exit: entries === 0n ? 2 : isOpen ? 1 : 0 };
}

/** Figures of closed months are counted from typed columns, and from tables that may differ themselves. */
const UNCOUNTED: RebuiltMonths = {
  tables: ENDED_TABLES.map((table) => ({ table, missing: "", surplus: "", state: "uncounted" })),
  other: { count: 0 },
};

type Read = Pick<Rebuilt, "logs" | "tables" | "typed"> & { entries: bigint; isCountable: boolean };

async function rebuildIn(
  tx: Transaction,
  { clock, hash }: Omit<Rebuild, "sql">,
  options: RebuildOptions,
): Promise<Read> {
  await lockDerived(tx);
  await createEntryScratch(tx);
  const logs = await logsWritten(tx);
  const typed: Rebuilt["typed"] = { count: 0 };
  let entries = 0n;
  for (const log of logs) {
    const scan = new Scan(tx, log, hash, await readAsOf(tx, log));
    for await (const finding of scan.run((size) => options.onProgress?.(log, size))) {
      typed.first ??= finding;
      typed.count += 1;
    }
    entries += await scan.finish(new Date(clock.now()));
  }
  await sumScratch(tx);
  const tables = await settle(tx, ENTRY_TABLES, options.write);
  if (options.write) await refreshViews(tx);
  const isFilled = await viewsAreFilled(tx);
  const isCountable = isFilled && typed.count === 0 && tables.every(isRight);
  return { logs: logs.length, entries, tables, typed, isCountable };
}

/** One log's bytes, a page at a time, into the scratch tables. */
class Scan {
  readonly #tx: Transaction;
  readonly #log: string;
  readonly #hash: Sha256;
  readonly #asOf: bigint;
  #prefix: Prefix | undefined;
  #folded = GENESIS_PREV;
  #head: HeadRow = { size: 0n, leaf: GENESIS_PREV, at: "", control_index: -1n };

  constructor(tx: Transaction, log: string, hash: Sha256, asOf: bigint) {
    this.#tx = tx;
    this.#log = log;
    this.#hash = hash;
    this.#asOf = asOf;
  }

  async *run(onProgress: (size: bigint) => void): AsyncGenerator<Finding> {
    for (;;) {
      const rows = await entryRows(this.#tx, this.#log, this.#head.size);
      if (rows.length === 0) return;
      const page: (Derived & { index: bigint })[] = [];
      for (const row of rows) {
        const derived = await this.#entry(row);
        page.push({ ...derived, index: row.index });
        const place = { log: this.#log, table: "entries", index: row.index };
        yield* differences(place, derived.typed, row);
      }
      await insertPage(this.#tx, {
        log: this.#log,
        usages: page
          .filter(({ typed }) => typed.tracking !== null)
          .map(({ index, typed }) => ({ index, ...typed })),
        jobs: page.flatMap(({ jobs }) => jobs),
        reports: page.flatMap(({ reports }) => reports),
        keys: page.flatMap(({ keys }) => keys),
        beside: page.flatMap(({ beside }) => beside),
      });
      onProgress(this.#head.size);
    }
  }

  /** @returns how many entries the log has */
  async finish(now: Date): Promise<bigint> {
    const { size } = this.#head;
    if (size > 0n) await insertHead(this.#tx, this.#log, this.#head);
    const mark = { size: this.#asOf, leaf: this.#folded };
    if (mark.size > 0n && mark.size <= size) {
      await insertWatermark(this.#tx, this.#log, mark, now);
    }
    return size;
  }

  async #entry({ index, bytes }: EntryRow): Promise<Derived> {
    const entry = decodeEntry(bytes);
    const readable = typeof entry !== "string" && entry.index === this.#head.size;
    if (!readable)
      throw new Error(`rebuild: entry ${this.#head.size} of ${this.#log} cannot be read`);
    if (entry.kind === "log") this.#prefix = new Prefix(entry);
    else this.#prefix?.apply(entry);
    const cited = await citedBy(entry, this.#tx);
    const derived = this.#prefix && derive(entry, this.#prefix, cited, this.#hash);
    if (derived === undefined)
      throw new Error(`rebuild: entry ${index} of ${this.#log} says nothing`);
    const leaf = leafHash(bytes, this.#hash);
    const control = (CONTROL_KINDS as readonly string[]).includes(entry.kind);
    this.#head = {
      size: index + 1n,
      leaf,
      at: entry.at,
      control_index: control ? index : this.#head.control_index,
    };
    if (this.#head.size === this.#asOf) this.#folded = leaf;
    return derived;
  }
}
