/**
 * Tables `principals`, `barred_principals`, `lifted_bars` and `access_reviews`: who has used a log, and who may
 * no longer.
 */
import type { Hash } from "../core/hash.ts";
import { textColumn } from "./columns.ts";
import type { Sql, Transaction } from "./connect.ts";

/** That somebody used a log today. */
export interface Use {
  /** Empty: no log, or all of them. */
  log: string;
  id: string;
  issuer: string;
  subject: string;
  /** With commas between; of who is registered all with which they ever came. */
  roles: string;
}

export interface KnownPrincipal extends Use {
  firstAt: Date;
  lastOn: string;
  /** Since when nothing holds for them on this log; null: they are not barred. */
  barredAt: Date | null;
  /** A review of this log has said so. */
  isRemoved: boolean;
}

/**
 * To the day: who comes again on the same one as the same changes nothing. Each log and id comes once. A role
 * stays: a token that says less than one before does not make its bearer somebody else.
 */
export async function registerUses(sql: Sql, uses: readonly Use[]): Promise<void> {
  await sql`
    insert into principals as known (log, id, issuer, subject, roles, first_at, last_on)
    select
      log, id, issuer, subject, roles, clock_timestamp(), (clock_timestamp() at time zone 'UTC')::date
    from unnest(
      ${textColumn(uses.map((use) => use.log))}::text::text[],
      ${textColumn(uses.map((use) => use.id))}::text::text[],
      ${textColumn(uses.map((use) => use.issuer))}::text::text[],
      ${textColumn(uses.map((use) => use.subject))}::text::text[],
      ${textColumn(uses.map((use) => use.roles))}::text::text[]
    ) as use (log, id, issuer, subject, roles)
    order by log, id -- two processes that meet the same rows take them in one order
    on conflict (log, id) do update
    set
      roles = array_to_string(array(
        select unnest(string_to_array(known.roles, ','))
        union
        select unnest(string_to_array(excluded.roles, ','))
        order by 1
      ), ','),
      last_on = greatest(known.last_on, excluded.last_on)
    where known.last_on < excluded.last_on
      or not string_to_array(known.roles, ',') @> string_to_array(excluded.roles, ',')`;
}

/** All with which somebody ever used a log, with commas between; empty for who never did. */
export async function readRoles(sql: Sql, { log, id }: Pick<Use, "log" | "id">): Promise<string> {
  const [row] = await sql<{ roles: string }[]>`
    select roles from principals where log = ${log} and id = ${id}`;
  return row?.roles ?? "";
}

/** In the order of their ids, a page at a time. */
export async function readPrincipals(
  sql: Sql,
  log: string,
  { after, limit }: { after: string; limit: number },
): Promise<KnownPrincipal[]> {
  return await sql<KnownPrincipal[]>`
    select *
    from (${known(sql, log)}) as known
    where id collate "C" > ${after}
    order by id collate "C"
    limit ${limit}`;
}

/**
 * Whoever can get in, and of those whom a review removed the `kept`; without those who are viewers and no more.
 * In the order of their ids.
 */
export async function readReviewable(
  tx: Transaction,
  log: string,
  { kept, limit }: { kept: readonly string[]; limit: number },
): Promise<KnownPrincipal[]> {
  return await tx<KnownPrincipal[]>`
    select *
    from (${known(tx, log)}) as known
    where roles <> 'viewer'
      and ("barredAt" is null or "isRemoved" and id = any(${textColumn(kept)}::text::text[]))
    order by id collate "C"
    limit ${limit}`;
}

function known(sql: Sql | Transaction, log: string) {
  return sql`
    select
      p.log, p.id, p.issuer, p.subject, p.roles, p.first_at as "firstAt", p.last_on as "lastOn",
      (
        select min(at)
        from barred_principals as b
        where id = p.id and log in ('', p.log) and ${stands(sql)}
      ) as "barredAt",
      exists (
        select
        from barred_principals as b
        where id = p.id and log = p.log and reason = ${BY_REVIEW} and ${stands(sql)}
      ) as "isRemoved"
    from principals as p
    where p.log = ${log}`;
}

/** Logs that somebody has used; `""` stands for none, or all of them. */
export async function readLogsOf(sql: Sql, id: string): Promise<string[]> {
  const rows = await sql<{ log: string }[]>`select log from principals where id = ${id}`;
  return rows.map(({ log }) => log);
}

/** Reason of the bars that a review lays; who gives it for one by hand gets such a one. */
export const BY_REVIEW = "access review";

export interface Bar {
  /** Empty: of all logs. */
  log: string;
  id: string;
  by: string;
  reason: string;
}

/** @returns how many were not barred before */
export async function barPrincipals(sql: Sql | Transaction, bars: readonly Bar[]): Promise<number> {
  const { count } = await sql`
    insert into barred_principals (log, id, at, by, reason)
    select log, id, clock_timestamp(), by, reason
    from ${asRows(sql, bars)} as bar (log, id, by, reason)
    where not exists (
      select
      from barred_principals as b
      where b.log = bar.log and b.id = bar.id and ${stands(sql)}
    )
    order by log, id
    on conflict do nothing`;
  return count;
}

/** @returns how many bars it lifted, of reviews or of others */
export async function liftBars(
  sql: Sql | Transaction,
  lifts: readonly Bar[],
  of: { reviews: boolean },
): Promise<number> {
  const { count } = await sql`
    insert into lifted_bars (log, id, barred_at, at, by, reason)
    select b.log, b.id, b.at, clock_timestamp(), lift.by, lift.reason
    from ${asRows(sql, lifts)} as lift (log, id, by, reason)
    join barred_principals as b on b.log = lift.log and b.id = lift.id
    where (b.reason = ${BY_REVIEW}) = ${of.reviews} and ${stands(sql)}
    order by b.log, b.id
    on conflict do nothing`;
  return count;
}

/** Whether a review of the log has removed them, and none has kept them since. */
export async function isRemoved(sql: Sql, { log, id }: Pick<Bar, "log" | "id">): Promise<boolean> {
  const rows = await sql`
    select
    from barred_principals as b
    where log = ${log} and id = ${id} and reason = ${BY_REVIEW} and ${stands(sql)}
    limit 1`;
  return rows.length > 0;
}

function asRows(sql: Sql | Transaction, bars: readonly Bar[]) {
  return sql`unnest(
    ${textColumn(bars.map((bar) => bar.log))}::text::text[],
    ${textColumn(bars.map((bar) => bar.id))}::text::text[],
    ${textColumn(bars.map((bar) => bar.by))}::text::text[],
    ${textColumn(bars.map((bar) => bar.reason))}::text::text[]
  )`;
}

/** Of a row `b` of `barred_principals`: nobody has lifted it. */
function stands(sql: Sql | Transaction) {
  return sql`not exists (
    select
    from lifted_bars as l
    where l.log = b.log and l.id = b.id and l.barred_at = b.at
  )`;
}

/** Principals to the logs that they are barred from; `""` stands for all. */
export async function readBarred(sql: Sql): Promise<Map<string, ReadonlySet<string>>> {
  const rows = await sql<{ id: string; logs: string[] }[]>`
    select id, array_agg(distinct log) as logs
    from barred_principals as b
    where ${stands(sql)}
    group by id
    order by id`;
  return new Map(rows.map(({ id, logs }) => [id, new Set(logs)]));
}

export async function insertReview(
  tx: Transaction,
  log: string,
  review: { digest: Hash; lines: string },
): Promise<void> {
  await tx`
    insert into access_reviews (log, list_sha256, lines)
    values (${log}, ${review.digest}, ${review.lines})
    on conflict do nothing`;
}
