/**
 * Derived tables made anew beside the ones that stand, in temporary tables of one transaction of the
 * owner; then compared with them, and put in their place.
 */
import { BESIDE_TABLES, type BesideRow } from "../core/beside.ts";
import { insertRows } from "./beside.ts";
import { foldInto } from "./buckets.ts";
import { CLOSED_TABLES, type ClosedMonth, insertClosed } from "./closed.ts";
import type { Transaction } from "./connect.ts";
import { ENDED_TABLES, type MonthEnd } from "./month-ends.ts";
import type { HeadRow, JobRow, KeyRow, ReportRow, TypedColumns } from "./snapshots.ts";

/** Tables that the entries' bytes give, and whether a row of them may ever be replaced. */
const DERIVED = {
  jobs: "kept",
  reports: "kept",
  keys: "kept",
  ...kept(BESIDE_TABLES),
  ...kept(CLOSED_TABLES),
  heads: "replaced",
  watermarks: "replaced",
  usage_buckets: "replaced",
  ...kept(ENDED_TABLES),
} as const;
function kept<T extends string>(tables: readonly T[]): Record<T, "kept"> {
  return Object.fromEntries(tables.map((table) => [table, "kept"])) as Record<T, "kept">;
}

export type DerivedTable = keyof typeof DERIVED;
export const DERIVED_TABLES = Object.keys(DERIVED) as DerivedTable[];

/** Those that come from entries one by one; the others, `ENDED_TABLES`, are counted from them. */
export const ENTRY_TABLES: readonly DerivedTable[] = DERIVED_TABLES.filter(
  (table) => !(ENDED_TABLES as readonly string[]).includes(table),
);

/** Tables of the log that no rebuild writes: the service does, from entries alone, while it runs. */
export const LEFT_TABLES = [
  {
    tables: ["counter_gaps", "key_marks", "namespace_days", "runner_hours", "unseen_usages"],
    why: "counted on by the service from where `reconcile_marks` stands: at 0, all of the log again",
  },
] as const;

/** Rows that the bytes give and the table lacks, and rows that it has besides. */
export interface Balance {
  missing: bigint;
  surplus: bigint;
}

/** Nothing is appended, sealed into figures or refreshed until the transaction ends. */
export async function lockDerived(tx: Transaction): Promise<void> {
  await takeTime(tx);
  // In the order in which a refresh takes them, so that neither ever waits for the other in a circle.
  await tx`lock table usage_buckets, watermarks, heads in exclusive mode`;
}

/** Nothing is written of a closed month until the transaction ends. */
export async function lockEnded(tx: Transaction): Promise<void> {
  await takeTime(tx);
  await tx`lock table allocations, pack_rolls, statements in exclusive mode`;
}

async function takeTime(tx: Transaction): Promise<void> {
  await tx`set local statement_timeout = 0`;
  await tx`set local idle_in_transaction_session_timeout = 0`;
}

export async function createEntryScratch(tx: Transaction): Promise<void> {
  await createScratch(tx, ENTRY_TABLES);
  await tx`create temporary table scratch_usages (like entries) on commit drop`;
  // Only what is summed is kept a second time.
  for (const column of ["kind", "at", "prev", "leaf", "bytes"]) {
    await tx`alter table scratch_usages drop column ${tx(column)}`;
  }
}

export async function createEndedScratch(tx: Transaction): Promise<void> {
  await createScratch(tx, ENDED_TABLES);
}

async function createScratch(tx: Transaction, tables: readonly DerivedTable[]): Promise<void> {
  for (const table of tables) {
    await tx`create temporary table ${tx(scratch(table))} (like ${tx(table)}) on commit drop`;
  }
}

/** Entries that a log's figures are as of: as far as they were, or as far as it is sealed. */
export async function readAsOf(tx: Transaction, log: string): Promise<bigint> {
  const [row] = await tx<{ size: bigint }[]>`
    select coalesce(least(w.size, s.size), s.size, 0) as size
    from (
      select max(size) as size
      from (
        select size from seals where log = ${log}
        union all
        select max(size) from checkpoints where log = ${log}
      ) as sealed
    ) as s
    left join watermarks as w on w.log = ${log}`;
  return row?.size ?? 0n;
}

/** A page of what was derived. */
export interface Page {
  log: string;
  usages: (TypedColumns & { index: bigint })[];
  jobs: JobRow[];
  reports: ReportRow[];
  keys: KeyRow[];
  beside: BesideRow[];
}

export async function insertPage(tx: Transaction, page: Page): Promise<void> {
  const { log } = page;
  await insert(tx, "scratch_usages", log, page.usages);
  await insert(tx, scratch("jobs"), log, page.jobs);
  await insert(tx, scratch("reports"), log, page.reports);
  await insert(tx, scratch("keys"), log, page.keys);
  await insertRows(tx, log, page.beside, scratch);
}

export async function insertHead(tx: Transaction, log: string, head: HeadRow): Promise<void> {
  await tx`insert into scratch_heads ${tx({ log, ...head })}`;
}

/** `at` stands where the log was never refreshed. */
export async function insertWatermark(
  tx: Transaction,
  log: string,
  mark: { size: bigint; leaf: Uint8Array },
  at: Date,
): Promise<void> {
  await tx`
    insert into scratch_watermarks (log, size, leaf, refreshed_at)
    select
      ${log}, ${mark.size}, ${mark.leaf},
      coalesce((select refreshed_at from watermarks where log = ${log}), ${at})`;
}

/** Sums what was derived, as of each log's watermark. */
export async function sumScratch(tx: Transaction): Promise<void> {
  const tables = { usages: "scratch_usages", adjustments: scratch("adjustments") };
  const marks = await tx<{ log: string; size: bigint }[]>`
    select log, size from scratch_watermarks order by log`;
  for (const { log, size } of marks) {
    await foldInto(tx, scratch("usage_buckets"), { log, from: 0n, to: size }, tables);
  }
  const closed = await tx<ClosedMonth[]>`
    select log, month, closing as size
    from scratch_month_ends
    join scratch_watermarks using (log)
    where closing <= size`;
  for (const month of closed) await insertClosed(tx, month, tables, scratch);
}

/** Closed months whose rollups stand, of all logs. */
export async function readClosed(tx: Transaction): Promise<(MonthEnd & { log: string })[]> {
  return await tx<(MonthEnd & { log: string })[]>`
    select log, month, index, closing
    from month_ends
    join closed_months using (log, month)
    order by log, month`;
}

/** What was derived of a month is given up. */
export async function dropMonth(
  tx: Transaction,
  { log, month }: { log: string; month: string },
): Promise<void> {
  for (const table of ENDED_TABLES) {
    await tx`delete from ${tx(scratch(table))} where log = ${log} and month = ${month}`;
  }
}

export async function balance(tx: Transaction, table: DerivedTable): Promise<Balance> {
  const [row] = await tx<Balance[]>`
    select
      (select count(*) from (table ${tx(scratch(table))} except table ${tx(table)}) as m) as missing,
      (select count(*) from (table ${tx(table)} except table ${tx(scratch(table))}) as s) as surplus`;
  if (row === undefined) throw new Error("rebuilds: a count without a row");
  return row;
}

/**
 * Puts the derived rows in place. Of those that are kept only what is missing: their triggers
 * refuse the rest, and an answer that was given is not for a rebuild to take back.
 */
export async function replace(tx: Transaction, table: DerivedTable): Promise<void> {
  if (DERIVED[table] === "replaced") await tx`delete from ${tx(table)}`;
  await tx`
    insert into ${tx(table)}
    table ${tx(scratch(table))}
    on conflict do nothing`;
}

/** Where what is derived of a table goes. */
export function scratch(table: DerivedTable): string {
  return `scratch_${table}`;
}

const INSERT_ROWS = 1_000;

async function insert(
  tx: Transaction,
  table: string,
  log: string,
  rows: readonly object[],
): Promise<void> {
  for (let from = 0; from < rows.length; from += INSERT_ROWS) {
    const part = rows.slice(from, from + INSERT_ROWS).map((row) => {
      const { position, ...columns } = { position: undefined, ...row };
      return { log, ...columns };
    });
    await tx`insert into ${tx(table)} ${tx(part)}`;
  }
}
