/** What the feed tells of, from `entries` and `adjustments`: in ranges that the caller bounds. */
import type { Sql, Transaction } from "./connect.ts";

type Reader = Sql | Transaction;

interface Range {
  readonly from: bigint;
  readonly to: bigint;
}

export interface FedEntry {
  index: bigint;
  bytes: Uint8Array;
  /** Of a usage. */
  runner_id: bigint | null;
}

/** Entries from … to−1 of the kinds that have events, the first of them, in the order of the log. */
export async function readFed(
  sql: Reader,
  log: string,
  { from, to, limit }: Range & { limit: number },
): Promise<FedEntry[]> {
  return await sql<FedEntry[]>`
    select index, bytes, runner_id
    from entries
    where log = ${log} and index >= ${from} and index < ${to}
      and (
        kind = 'usage' and ${charged(sql)}
        or kind in ('adjustment', 'month_closing', 'month_closing_withdrawn', 'month_closed')
      )
    order by index
    limit ${limit}`;
}

/** Amounts with six decimals, signed. */
export interface FedSum {
  billing_month: string;
  events: bigint;
  compute_ms: string;
}

/** By billing month, what the events of entries from … to−1 come to. */
export async function sumFed(sql: Reader, log: string, { from, to }: Range): Promise<FedSum[]> {
  return await sql<FedSum[]>`
    select billing_month, count(*) as events, sum(compute_ms) as compute_ms
    from (
      select billing_month, compute_ms
      from entries
      where log = ${log} and index >= ${from} and index < ${to}
        and kind = 'usage' and ${charged(sql)}
      union all
      select billing_month, amount
      from adjustments
      where log = ${log} and index >= ${from} and index < ${to}
    ) as fed
    group by billing_month`;
}

/** Events of entries 0 … below−1 that are posted to a billing month. */
export async function countEvents(
  sql: Reader,
  { log, month, below }: { log: string; month: string; below: bigint },
): Promise<bigint> {
  const [row] = await sql<[{ events: bigint }]>`
    select (
      select count(*)
      from entries
      where log = ${log} and index < ${below} and billing_month = ${month}
        and kind = 'usage' and ${charged(sql)}
    ) + (
      select count(*)
      from adjustments
      where log = ${log} and index < ${below} and billing_month = ${month}
    ) as events`;
  return row.events;
}

/** Of a usage: what core/feed/event.ts has an event for. */
function charged(sql: Reader) {
  return sql`not_billable = '' and compute_ms > 0`;
}

/** How far these logs are sealed; one that is not is absent. */
export async function readSealedSizes(
  sql: Reader,
  logs: readonly string[],
): Promise<Map<string, bigint>> {
  const rows = await sql<{ log: string; size: bigint }[]>`
    select log, size from seals where log in ${sql([...logs])}`;
  return new Map(rows.map(({ log, size }) => [log, size]));
}
