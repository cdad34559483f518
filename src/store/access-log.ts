/** Tables `access_log` and `access_marks`: who read or changed what, and how far days are closed. */
import { plainColumn, textColumn } from "./columns.ts";
import type { Sql, Transaction } from "./connect.ts";
import type { Positioned, Snapshot, Stream } from "./snapshots.ts";

/** What of a request is kept: no query, no body, no token, and nothing of what was answered but its code. */
export interface AccessRow {
  /** Empty: about no log, or about one that there is not. */
  log: string;
  /** The principal's id. */
  by: string;
  /** Those that counted, with commas between. */
  roles: string;
  method: string;
  /** As declared. */
  route: string;
  /** The path that was asked for. */
  target: string;
  status: number;
  /** Of the problem that was answered; undefined: it was none. */
  code: string | undefined;
  request: string;
}

export interface StoredAccess extends Omit<AccessRow, "code"> {
  /** Null also of rows of versions that wrote none. */
  code: string | null;
  number: bigint;
  day: string;
  at: Date;
}

/**
 * In one statement, which commits by itself. Rows of a log are numbered in their order; all logs have a mark.
 * The day is the database's own, so that no two processes differ about it.
 */
export async function insertAccess(sql: Sql, rows: readonly AccessRow[]): Promise<void> {
  await sql`
    with asked as (
      select *, row_number() over (partition by log order by n) as place
      from unnest(
        ${textColumn(rows.map((row) => row.log))}::text::text[],
        ${textColumn(rows.map((row) => row.by))}::text::text[],
        ${textColumn(rows.map((row) => row.roles))}::text::text[],
        ${textColumn(rows.map((row) => row.method))}::text::text[],
        ${textColumn(rows.map((row) => row.route))}::text::text[],
        ${textColumn(rows.map((row) => row.target))}::text::text[],
        ${plainColumn(rows.map((row) => String(row.status)))}::text::int[],
        ${textColumn(rows.map((row) => row.code))}::text::text[],
        ${textColumn(rows.map((row) => row.request))}::text::text[]
      ) with ordinality as row (log, by, roles, method, route, target, status, code, request, n)
    ),
    -- In one order, so that two processes never wait for each other in a circle.
    mark as materialized (
      select log, number, closed_through
      from access_marks
      where log in (select log from asked)
      order by log
      for update
    ),
    moved as (
      update access_marks
      set number = access_marks.number + asked.rows
      from mark
      join (select log, count(*) as rows from asked group by log) as asked using (log)
      where access_marks.log = mark.log
    )
    insert into access_log
      (log, number, day, at, by, roles, method, route, target, status, code, request)
    select
      log, number + place, greatest((clock_timestamp() at time zone 'UTC')::date, closed_through + 1),
      clock_timestamp(), by, roles, method, route, target, status, code, request
    from asked
    left join mark using (log) -- of a log without a mark a row has no number, and all are refused
  `;
}

/** Of those named: the logs whose accesses can be written. */
export async function markedLogs(sql: Sql, logs: readonly string[]): Promise<string[]> {
  const rows = await sql<{ log: string }[]>`
    select log from access_marks where log = any(${textColumn(logs)}::text::text[])`;
  return rows.map(({ log }) => log);
}

/** Of a log that there is, and that has none yet; the days up to `closedThrough` are spoken for. */
export async function createAccessMark(
  sql: Sql,
  log: string,
  closedThrough: string | undefined,
): Promise<void> {
  await sql`
    insert into access_marks (log, closed_through)
    select log, ${closedThrough ?? "-infinity"}
    from heads
    where log = ${log}
    on conflict do nothing`;
}

/** A day's rows in the order of their numbers, a page at a time. */
export async function readAccess(
  sql: Sql | Transaction,
  log: string,
  { day, after, limit }: { day: string; after: bigint; limit: number },
): Promise<StoredAccess[]> {
  return await sql<StoredAccess[]>`
    select log, number, day, at, by, roles, method, route, target, status, code, request
    from access_log
    where log = ${log} and day = ${day} and number > ${after}
    order by number
    limit ${limit}`;
}

/** So long after its end a day takes rows, of requests that were under way. */
const CLOSING = "5 minutes";

/** Closes every day that has ended, of all logs: waits for whoever is writing rows just now. */
export async function closeDays(sql: Sql): Promise<void> {
  await sql`
    with ended as (
      select ((clock_timestamp() at time zone 'UTC') - ${CLOSING}::interval)::date - 1 as day
    ),
    due as materialized (
      select log
      from access_marks
      where log <> '' and closed_through < (select day from ended)
      order by log -- as whoever writes rows
      for update
    )
    update access_marks
    set closed_through = ended.day
    from due
    cross join ended
    where access_marks.log = due.log`;
}

/** The first closed day of each log that has rows and no digest yet. */
export async function daysToDigest(sql: Sql): Promise<{ log: string; day: string }[]> {
  // The day straight from the bytes: in canonical JSON this text can only be that member (0007_quota.sql).
  return await sql<{ log: string; day: string }[]>`
    select mark.log, due.day
    from access_marks as mark
    left join lateral (
      select substring(encode(bytes, 'escape') from '"day":"([0-9-]{10})"')::date as day
      from entries
      where log = mark.log and kind = 'access_digest'
      order by index desc
      limit 1
    ) as digest on true
    cross join lateral (
      select day
      from access_log
      where log = mark.log and day <= mark.closed_through
        and day > coalesce(digest.day, '-infinity')
      order by day
      limit 1
    ) as due
    where mark.log <> '' and mark.number > 0
    order by mark.log`;
}

/** How many numbers near a day have no row of any day, as one look sees rows and mark. */
export interface MissingAccess {
  /** From the last row of the days before to this day's last. */
  until: bigint;
  /** From there to the first row of a later day, or to the mark. */
  behind: bigint;
}

export async function missingAccess(sql: Sql, log: string, day: string): Promise<MissingAccess> {
  // Rows are counted by number and not by day: a clock that was put back mixes two days, and takes nothing away.
  const [missing] = await sql<[MissingAccess]>`
    with found as (
      select
        coalesce((
          select number from access_log where log = ${log} and day < ${day}
          order by day desc, number desc limit 1
        ), 0) as before,
        (select max(number) from access_log where log = ${log} and day = ${day}) as last,
        coalesce((
          select number - 1 from access_log where log = ${log} and day > ${day}
          order by day, number limit 1
        ), (
          select number from access_marks where log = ${log}
        ), 0) as next
    ), ends as (
      select before, greatest(before, last) as last, greatest(before, last, next) as next
      from found
    )
    select
      last - before - (
        select count(*) from access_log where log = ${log} and number > before and number <= last
      ) as until,
      next - last - (
        select count(*) from access_log where log = ${log} and number > last and number <= next
      ) as behind
    from ends`;
  return missing;
}

/** Numbers from `position` to `last` that no row has; where `last` is less, rows end there and the mark before. */
export interface AccessGap extends Positioned {
  last: bigint;
}

export async function accessGaps(snapshot: Snapshot, log: string): Promise<Stream<AccessGap>> {
  return await snapshot.stream<AccessGap>(
    "access_gaps",
    (sql) => sql`
      select number + 1 as position, next - 1 as last
      from (
        select number, lead(number, 1, coalesce(mark, 0) + 1) over (order by number) as next
        from (
          select 0::bigint as number
          union all
          select number from access_log where log = ${log}
        ) as row
        cross join (
          select max(number) as mark from access_marks where log = ${log}
        ) as mark
      ) as pair
      where next <> number + 1
      order by number`,
  );
}

/** Those that have rows, in their order: as many as a log is old, at most. */
export async function daysOfAccess(sql: Sql, log: string): Promise<string[]> {
  const rows = await sql<{ day: string }[]>`
    select distinct day from access_log where log = ${log} order by day`;
  return rows.map(({ day }) => day);
}

/** Whether rows may still come to it. */
export async function isDayClosed(sql: Sql, log: string, day: string): Promise<boolean> {
  const [row] = await sql`
    select from access_marks where log = ${log} and closed_through >= ${day}`;
  return row !== undefined;
}
