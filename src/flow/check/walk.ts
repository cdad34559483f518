/** One log from index 0 to its end, each entry and each row beside it from the bytes. */
import { BESIDE_TABLES, type BesideTable } from "../../core/beside.ts";
import { CONTROL_KINDS, decodeEntry, type Entry, GENESIS_PREV } from "../../core/entry.ts";
import { type Hash, leafHash, type Sha256 } from "../../core/hash.ts";
import { Prefix } from "../../core/prefix.ts";
import { equal } from "../../core/text.ts";
import { type BesideRead, besideRows } from "../../store/beside.ts";
import {
  type EntryRow,
  entryRows,
  type JobRow,
  jobRows,
  type KeyRow,
  keyRows,
  type ReportRow,
  reportRows,
  type Snapshot,
} from "../../store/snapshots.ts";
import { Beside } from "./beside.ts";
import { differences, finding } from "./compare.ts";
import { decisionRules } from "./decision.ts";
import { citedBy, derive } from "./derive.ts";
import type { Finding, Unread } from "./event.ts";
import { FeedRules } from "./feed.ts";
import { admission, rejudge } from "./judgement.ts";
import { moneyRules } from "./money.ts";
import { resolutionRules } from "./resolution.ts";
import { earlierVersion, unnamed } from "./unnamed.ts";

const CONTROL: readonly string[] = CONTROL_KINDS;

/** What the entries say of the log's head. */
export interface WalkedHead {
  size: bigint;
  leaf: Hash;
  at: string;
  control_index: bigint;
}

/** The entry walked last: as stored, and as its bytes hash. */
interface Last {
  index: bigint;
  stored: Hash;
  computed: Hash;
}

/** Where a walk begins that does not begin at entry 0: after this entry, with what those up to it decide. */
export interface Before {
  prefix: Prefix;
  last: EntryRow;
}

interface Besides {
  jobs: Beside<JobRow>;
  reports: Beside<ReportRow>;
  keys: Beside<KeyRow>;
  control: ReadonlyMap<BesideTable, Beside<BesideRead>>;
}

export class Walk {
  readonly #snapshot: Snapshot;
  readonly #log: string;
  readonly #hash: Sha256;
  readonly #jobs: Beside<JobRow>;
  readonly #reports: Beside<ReportRow>;
  readonly #keys: Beside<KeyRow>;
  readonly #control: ReadonlyMap<BesideTable, Beside<BesideRead>>;
  readonly #feed: FeedRules;
  #prefix: Prefix | undefined;
  #last: Last | undefined;
  #head: WalkedHead = { size: 0n, leaf: GENESIS_PREV, at: "", control_index: -1n };

  private constructor(
    snapshot: Snapshot,
    log: string,
    hash: Sha256,
    { before, ...beside }: Besides & { before: Before | undefined },
  ) {
    this.#snapshot = snapshot;
    this.#log = log;
    this.#hash = hash;
    this.#jobs = beside.jobs;
    this.#reports = beside.reports;
    this.#keys = beside.keys;
    this.#control = beside.control;
    this.#feed = new FeedRules(snapshot.sql);
    if (before === undefined) return;
    this.#prefix = before.prefix;
    this.#head = { ...this.#head, control_index: before.prefix.controlIndex };
    this.#advance(before.last, decodeEntry(before.last.bytes));
  }

  /** @param before from whose last entry on it goes; absent, the walk begins at entry 0 */
  static async start(
    snapshot: Snapshot,
    log: string,
    hash: Sha256,
    before?: Before,
  ): Promise<Walk> {
    const from = before === undefined ? 0n : before.last.index + 1n;
    const jobs = await snapshot.stream<JobRow>("jobs_by_index", jobRows(log, from));
    const reports = await snapshot.stream<ReportRow>("reports_by_entry", reportRows(log, from));
    const keys = await snapshot.stream<KeyRow>("keys_by_index", keyRows(log, from));
    const control = new Map<BesideTable, Beside<BesideRead>>();
    for (const table of BESIDE_TABLES) {
      const name = `${table}_by_entry`;
      const rows = await snapshot.stream<BesideRead>(name, besideRows(log, table, from));
      control.set(table, new Beside({ log, table }, "index", rows));
    }
    return new Walk(snapshot, log, hash, {
      before,
      jobs: new Beside({ log, table: "jobs" }, "index", jobs),
      reports: new Beside({ log, table: "reports" }, "recorded", reports),
      keys: new Beside({ log, table: "keys" }, "index", keys),
      control,
    });
  }

  /** Valid once the walk is over. */
  get head(): WalkedHead {
    return this.#head;
  }

  /** Of the entries walked so far; undefined before the first. */
  get prefix(): Prefix | undefined {
    return this.#prefix;
  }

  /** The next page of entries; the rows beside them are then in memory. */
  async page(): Promise<EntryRow[]> {
    const rows = await entryRows(this.#snapshot.sql, this.#log, this.#head.size);
    const last = rows.at(-1);
    if (last !== undefined) {
      for (const table of this.#besides()) await table.read(last.index + 1n);
    }
    return rows;
  }

  /** Every column of the entry's row, and every row beside it. */
  async *entry(row: EntryRow): AsyncGenerator<Finding | Unread> {
    const place = { log: this.#log, table: "entries", index: row.index };
    // Named where the first of the missing ones should be.
    const next = this.#head.size;
    const gap = row.index !== next;
    if (gap) yield finding({ ...place, index: next }, "index", next, row.index);
    const entry = decodeEntry(row.bytes);
    if (typeof entry === "string") {
      if (entry === "unknown-kind")
        yield { kind: "unread", log: this.#log, index: String(row.index) };
      else yield finding(place, "bytes", "the bytes of an entry", entry);
      if (!gap) yield* this.#link(row.prev);
    } else {
      const { log, index, kind, at, prev } = entry;
      yield* differences(place, { log, index, kind, at, prev }, row);
      if (!gap) yield* this.#link(prev);
      const before = this.#head.at;
      if (this.#last !== undefined && at < before) yield finding(place, "at", before, at);
      yield* this.#content(entry, row);
    }
    this.#advance(row, entry);
  }

  /** What is left: the last entry's hash, against the head's, and rows that belong to no entry. */
  async *end(headLeaf: Hash | undefined): AsyncGenerator<Finding> {
    if (this.#last !== undefined) {
      yield* this.#rehashed(this.#last, headLeaf);
      // The head follows the leaf that the entry had when it was written.
      const { stored, computed } = this.#last;
      const leaf = headLeaf !== undefined && equal(headLeaf, stored) ? stored : computed;
      this.#head = { ...this.#head, leaf };
    }
    for (const table of this.#besides()) yield* table.rest();
  }

  /** Rows of the page that no entry has asked for. */
  *unclaimed(): Generator<Finding> {
    for (const table of this.#besides()) yield* table.unclaimed();
  }

  #besides() {
    return [this.#jobs, this.#reports, this.#keys, ...this.#control.values()];
  }

  /** What the body says: columns, rows beside, and whether it was judged as it must be. */
  async *#content(entry: Entry, row: EntryRow): AsyncGenerator<Finding> {
    const place = { log: this.#log, table: "entries", index: row.index };
    const prefix = this.#before(entry);
    if (prefix === undefined) {
      yield finding(place, "bytes", "log", entry.kind);
      return;
    }
    const { sql } = this.#snapshot;
    if (entry.index > 0n) {
      const earlier = await earlierVersion(entry, sql);
      for await (const [expected, found] of decisionRules(entry, prefix, sql)) {
        yield finding(place, "bytes", expected, found);
      }
      for (const [expected, found] of admission(entry, prefix, earlier)) {
        yield finding(place, "bytes", expected, found);
      }
      for await (const [expected, found] of moneyRules(entry, prefix, sql)) {
        yield finding(place, "bytes", expected, found);
      }
      for await (const [expected, found] of resolutionRules(entry, prefix, sql)) {
        yield finding(place, "bytes", expected, found);
      }
      for await (const [expected, found] of this.#feed.judge(entry)) {
        yield finding(place, "bytes", expected, found);
      }
    }
    const besides = await unnamed(entry, prefix, sql, this.#hash);
    const cited = await citedBy(entry, sql, besides);
    const derived = derive(entry, prefix, cited, this.#hash);
    if (derived === undefined) {
      yield finding(place, "bytes", "what can be read again", entry.kind);
      return;
    }
    for (const [expected, found] of rejudge(entry, derived, prefix, cited, this.#hash)) {
      yield finding(place, "bytes", expected, found);
    }
    yield* differences(place, derived.typed, row);
    yield* this.#jobs.compare(row.index, derived.jobs);
    yield* this.#reports.compare(row.index, derived.reports);
    yield* this.#keys.compare(row.index, derived.keys);
    for (const [table, rows] of this.#control) {
      const own = derived.beside.filter((each) => each.table === table);
      yield* rows.compare(
        row.index,
        own.map((each) => ({ position: row.index, ...each.row })),
      );
    }
  }

  /** The prefix that judges an entry; of entry 0, the one that it begins. */
  #before(entry: Entry): Prefix | undefined {
    if (this.#prefix === undefined && entry.kind === "log" && entry.index === 0n) {
      this.#prefix = new Prefix(entry);
    }
    return this.#prefix;
  }

  /** `prev` of the next entry against the last one's hash. */
  *#link(prev: Hash): Generator<Finding> {
    const { computed, stored } = this.#last ?? { computed: GENESIS_PREV, stored: GENESIS_PREV };
    if (this.#last !== undefined) yield* this.#rehashed(this.#last, prev);
    if (equal(prev, computed) || equal(prev, stored)) return;
    const place = { log: this.#log, table: "entries", index: this.#head.size };
    yield finding(place, "prev", computed, prev);
  }

  /** Bytes and leaf that do not go together: whoever came after says which of the two was changed. */
  *#rehashed({ index, stored, computed }: Last, witness: Hash | undefined): Generator<Finding> {
    if (equal(stored, computed)) return;
    const place = { log: this.#log, table: "entries", index };
    if (witness !== undefined && equal(witness, stored)) {
      yield finding(place, "bytes", stored, computed);
    } else yield finding(place, "leaf", computed, stored);
  }

  #advance(row: EntryRow, entry: Entry | string): void {
    const computed = leafHash(row.bytes, this.#hash);
    this.#last = { index: row.index, stored: row.leaf, computed };
    const read = typeof entry === "string" ? undefined : entry;
    const control = CONTROL.includes(read?.kind ?? row.kind);
    this.#head = {
      size: row.index + 1n,
      leaf: computed,
      at: read?.at ?? row.at,
      control_index: control ? row.index : this.#head.control_index,
    };
  }
}
