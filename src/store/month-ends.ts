/** Tables `month_ends`, `allocations`, `pack_rolls` and `statements`: months that are closed for ever. */
import type { Sql, Transaction } from "./connect.ts";

type Reader = Sql | Transaction;

/** Tables that are written once when a month has ended; all of them follow from entries. */
export const ENDED_TABLES = ["allocations", "pack_rolls", "statements"] as const;
type EndedTable = (typeof ENDED_TABLES)[number];

/** The table that rows of a table go into: itself, or one like it. */
export type EndedInto = (table: EndedTable) => string;
const ITSELF: EndedInto = (table) => table;

export interface MonthEnd {
  month: string;
  /** Of the `month_closed` entry. */
  index: bigint;
  /** Of its cut-off. */
  closing: bigint;
}

/** Months with a `month_closed`, in their order. */
export async function readMonthEnds(sql: Reader, log: string): Promise<MonthEnd[]> {
  return await sql<MonthEnd[]>`
    select month, index, closing
    from month_ends
    where log = ${log}
    order by month`;
}

/** Logs with a month that is cut off and not closed, or closed and without its statement. */
export async function readUnfinished(sql: Sql): Promise<string[]> {
  const rows = await sql<{ log: string }[]>`
    select h.log
    from heads as h
    left join lateral (
      select index, kind
      from entries
      where log = h.log and kind in ('month_closing', 'month_closing_withdrawn')
      order by index desc
      limit 1
    ) as last on true
    where last.kind = 'month_closing'
        and not exists (select from month_ends where log = h.log and closing = last.index)
      or exists (
        select
        from month_ends as e
        where e.log = h.log
          and not exists (select from statements as s where s.log = e.log and s.month = e.month)
      )
    order by h.log`;
  return rows.map(({ log }) => log);
}

/** Billing months that anything is posted to below an index, in their order; as far as it is folded. */
export async function readPostedMonths(sql: Reader, log: string): Promise<string[]> {
  const rows = await sql<{ month: string }[]>`
    select distinct billing_month as month
    from usage_buckets
    where log = ${log}
    order by 1`;
  return rows.map(({ month }) => month);
}

export async function readStatement(
  sql: Reader,
  log: string,
  month: string,
): Promise<string | undefined> {
  const [row] = await sql<{ text: string }[]>`
    select text from statements where log = ${log} and month = ${month}`;
  return row?.text;
}

/** A statement, and the entry that it is held to; that is missing only where somebody has removed it. */
export interface HeldStatement {
  text: string;
  closed: { index: bigint; bytes: Uint8Array } | undefined;
}

export async function readHeldStatement(
  sql: Reader,
  log: string,
  month: string,
): Promise<HeldStatement | undefined> {
  const [row] = await sql<{ text: string; index: bigint | null; bytes: Uint8Array | null }[]>`
    select s.text, e.index, e.bytes
    from statements as s
    left join month_ends as m using (log, month)
    left join entries as e on e.log = m.log and e.index = m.index
    where s.log = ${log} and s.month = ${month}`;
  if (row === undefined) return undefined;
  const { bytes, index, text } = row;
  return { text, closed: index === null || bytes === null ? undefined : { index, bytes } };
}

export async function insertStatement(
  tx: Transaction,
  statement: { log: string; month: string; text: string },
  into: EndedInto = ITSELF,
): Promise<void> {
  await tx`insert into ${tx(into("statements"))} ${tx(statement)} on conflict do nothing`;
}

/** Amounts as decimals with six digits. */
export interface AllocationRow {
  namespace_id: string;
  usage_month: string;
  usage: string;
  included: string;
  drawn: string;
  overage: string;
  absorbed: string;
  not_billable: string;
  /** Canonical JSON. */
  packs: string;
}

/** As above. */
export interface PackRollRow {
  namespace_id: string;
  pack: string;
  opening: string;
  bought: string;
  drawn: string;
  expired: string;
  refunded: string;
  closing: string;
}

interface Ended {
  log: string;
  month: string;
}

/** Rows that stand already are left as they are. */
export async function insertAllocations(
  tx: Transaction,
  of: Ended,
  rows: readonly AllocationRow[],
  into: EndedInto = ITSELF,
): Promise<void> {
  await insert(tx, into("allocations"), of, rows);
}

/** As `insertAllocations`. */
export async function insertPackRolls(
  tx: Transaction,
  of: Ended,
  rows: readonly PackRollRow[],
  into: EndedInto = ITSELF,
): Promise<void> {
  await insert(tx, into("pack_rolls"), of, rows);
}

async function insert(
  tx: Transaction,
  table: string,
  of: Ended,
  rows: readonly object[],
): Promise<void> {
  if (rows.length === 0) return;
  const target = tx(table);
  const records = JSON.stringify(rows.map((row) => ({ ...of, ...row })));
  await tx`
    insert into ${target}
    select * from json_populate_recordset(null::${target}, ${records}::text::json)
    on conflict do nothing`;
}

/** The place of a line: what comes after it is the next page. */
export interface AllocationPlace {
  namespace: string;
  usageMonth: string;
}

/** In the order of namespace (as a number) and usage month. */
export async function readAllocations(
  sql: Reader,
  { log, month }: Ended,
  { after, limit }: { after?: AllocationPlace | undefined; limit: number },
): Promise<AllocationRow[]> {
  const { namespace, usageMonth } = after ?? { namespace: "-1", usageMonth: month };
  return await sql<AllocationRow[]>`
    select
      namespace_id::text, usage_month, usage::text, included::text, drawn::text, overage::text,
      absorbed::text, not_billable::text, packs
    from allocations
    where log = ${log} and month = ${month}
      and (namespace_id, usage_month) > (${namespace}, ${usageMonth})
    order by allocations.namespace_id, usage_month
    limit ${limit}`;
}

/** In the order of namespace (as a number) and pack, those after a pack of a namespace. */
export async function readPackRolls(
  sql: Reader,
  { log, month }: Ended,
  { after, limit }: { after?: { namespace: string; pack: string } | undefined; limit: number },
): Promise<PackRollRow[]> {
  const { namespace, pack } = after ?? { namespace: "-1", pack: "-1" };
  return await sql<PackRollRow[]>`
    select
      namespace_id::text, pack::text, opening::text, bought::text, drawn::text, expired::text,
      refunded::text, closing::text
    from pack_rolls
    where log = ${log} and month = ${month} and (namespace_id, pack) > (${namespace}, ${pack})
    order by pack_rolls.namespace_id, pack_rolls.pack
    limit ${limit}`;
}
