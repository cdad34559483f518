/** Table `quota_marks`: how far each log was looked at for changes of levels. */
import type { Sql, Transaction } from "./connect.ts";

/** An instant that is so much later than every clock was of one that was wrong. */
const SKEW = "1 minute";

/** Of a log that is made here: all that ever happens on it is news. */
export async function createMark(tx: Transaction, log: string): Promise<void> {
  await tx`insert into quota_marks (log) values (${log})`;
}

/** Entries of before `now` that come back from the archive are no news, as they were when they were new. */
export async function silenceMark(tx: Transaction, log: string, now: number): Promise<void> {
  await tx`
    insert into quota_marks as mark (log, news_from)
    values (${log}, least(${new Date(now)}, clock_timestamp() + ${SKEW}::interval))
    on conflict (log) do update
      set news_from = greatest(mark.news_from, excluded.news_from)`;
}

/** Logs with entries that nobody has looked at, or with a level to look at again; the longest waiting first. */
export async function logsToLookAt(sql: Sql, now: number): Promise<string[]> {
  // A log that was not made by a process that knows this table.
  await sql`
    insert into quota_marks (log, news_from)
    select log, ${new Date(now)}
    from heads
    where not exists (select from quota_marks where quota_marks.log = heads.log)
    on conflict do nothing`;
  const rows = await sql<{ log: string }[]>`
    select log
    from quota_marks
    join heads using (log)
    where index < size
      or exists (
        select
        from quota_levels
        where quota_levels.log = quota_marks.log and look_at <= ${new Date(now)}
      )
    order by looked_at, log`;
  return rows.map(({ log }) => log);
}

export interface Mark {
  /** Entries 0 … index−1 were looked at. */
  index: bigint;
  /** Epoch milliseconds: now, unless somebody has looked later than that already. */
  at: number;
}

export interface LockedMark extends Mark {
  /** Somebody has looked by a clock that was ahead, of which nothing is believed. */
  wasAhead: boolean;
}

/** Holds the log until the transaction ends; undefined if somebody else does. */
export async function lockMark(
  tx: Transaction,
  log: string,
  now: number,
): Promise<LockedMark | undefined> {
  const [row] = await tx<{ index: bigint; looked_at: Date; was_ahead: boolean }[]>`
    select
      index,
      greatest(looked_at, ${new Date(now)}) as looked_at,
      looked_at > greatest(${new Date(now)}, clock_timestamp()) + ${SKEW}::interval as was_ahead
    from quota_marks
    where log = ${log}
    for update skip locked`;
  if (row === undefined) return undefined;
  const { index, looked_at, was_ahead: wasAhead } = row;
  return { index, at: wasAhead ? now : looked_at.getTime(), wasAhead };
}

export async function moveMark(tx: Transaction, log: string, { index, at }: Mark): Promise<void> {
  await tx`
    update quota_marks
    set index = ${index}, looked_at = ${new Date(at)}
    where log = ${log}`;
}

/** A namespace that some entries are about. */
export interface Touched {
  namespace: string;
  /** The first of those entries, and when it was written. */
  first: bigint;
  firstAt: Date;
  /** Whether the last of them was written when changes were told already. */
  news: boolean;
}

/** Namespaces with hosted usage, limits, packs or adjustments in entries from … to−1, in the order of `first`. */
export async function readTouched(
  tx: Transaction,
  log: string,
  { from, to, limit }: { from: bigint; to: bigint; limit: number },
): Promise<Touched[]> {
  return await tx<Touched[]>`
    select
      namespace,
      min(index) as first,
      min(at) as "firstAt",
      max(at) >= (select news_from from quota_marks where log = ${log}) as news
    from (
      select
        index,
        at,
        case kind when 'usage' then namespace_id::text else entry_namespace(bytes) end as namespace
      from entries
      where log = ${log} and index >= ${from} and index < ${to}
        and (kind = 'usage' and tracking = 'hosted' or kind in ('quota', 'pack'))
      union all
      select index, at, adjustments.namespace_id::text
      from adjustments
      join entries using (log, index)
      where log = ${log} and index >= ${from} and index < ${to}
    ) as entry
    group by namespace
    order by first
    limit ${limit}`;
}
