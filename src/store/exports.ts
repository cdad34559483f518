/** Table `exports`: what was asked for, by whom, and what became of it (migrations/0016). */
import { plainColumn, textColumn } from "./columns.ts";
import type { Sql, Transaction } from "./connect.ts";

type Reader = Sql | Transaction;

export interface NewExportRow {
  log: string;
  id: string;
  name: string;
  format: string;
  /** Canonical JSON. */
  parameters: string;
  as_of: bigint;
  checkpoint_size: bigint;
  checkpoint_root: Uint8Array;
  asked_by: string;
  asked_at: Date;
  origin: string | null;
  kept: boolean;
  deliver_to: string | null;
}

export interface ExportRow extends NewExportRow {
  /** The order in which they were asked for, over all logs. */
  number: bigint;
  state: "pending" | "done" | "failed";
  /** Written so far. */
  bytes: bigint;
  /** Canonical JSON, of what is done. */
  manifest: string | null;
  /** A code, of what failed. */
  error: string | null;
  ended_at: Date | null;
  /** When the copy was whole. */
  delivered_at: Date | null;
}

type Key = Pick<ExportRow, "log" | "id">;

const COLUMNS = [
  ...["log", "id", "number", "name", "format", "parameters", "as_of", "checkpoint_size"],
  ...["checkpoint_root", "asked_by", "asked_at", "origin", "kept", "deliver_to", "state", "bytes"],
  ...["manifest", "error", "ended_at", "delivered_at"],
];

/** False where one of this origin is there already: another process has asked. */
export async function insertExport(sql: Reader, row: NewExportRow): Promise<boolean> {
  const { count } = await sql`
    insert into exports ${sql({ ...row })}
    on conflict (log, origin) do nothing`;
  return count === 1;
}

export async function readExport(sql: Reader, { log, id }: Key): Promise<ExportRow | undefined> {
  const [row] = await sql<ExportRow[]>`
    select ${sql(COLUMNS)}
    from exports
    where log = ${log} and id = ${id}`;
  return row;
}

/** What was asked for on a schedule, by what it is known by there. */
export async function readExportBy(
  sql: Reader,
  log: string,
  origin: string,
): Promise<ExportRow | undefined> {
  const [row] = await sql<ExportRow[]>`
    select ${sql(COLUMNS)}
    from exports
    where log = ${log} and origin = ${origin}`;
  return row;
}

/** Newest first, those below a number, a page at a time. */
export async function listExports(
  sql: Reader,
  log: string,
  { below, limit }: { below: bigint; limit: number },
): Promise<ExportRow[]> {
  return await sql<ExportRow[]>`
    select ${sql(COLUMNS)}
    from exports
    where log = ${log} and number < ${below}
    order by number desc
    limit ${limit}`;
}

/** Until the transaction ends nobody else asks for one of this log. */
export async function lockAsking(tx: Transaction, log: string): Promise<void> {
  await tx`select pg_advisory_xact_lock(hashtextextended(${`minutebook.exports/${log}`}, 0))`;
}

export async function countPending(sql: Reader, log: string): Promise<bigint> {
  const [row] = await sql<[{ pending: bigint }]>`
    select count(*) as pending from exports where log = ${log} and state = 'pending'`;
  return row.pending;
}

/** Of all logs, those after a number, in the order in which they were asked for. */
export async function listPending(sql: Reader, after: bigint, limit: number): Promise<ExportRow[]> {
  return await sql<ExportRow[]>`
    select ${sql(COLUMNS)}
    from exports
    where state = 'pending' and number > ${after}
    order by number
    limit ${limit}`;
}

/** As `listPending`, of those that are done and of which no copy is where it has to go, but for some places. */
export async function listUndelivered(
  sql: Reader,
  { after, except }: { after: bigint; except: readonly string[] },
  limit: number,
): Promise<ExportRow[]> {
  return await sql<ExportRow[]>`
    select ${sql(COLUMNS)}
    from exports
    where state = 'done' and deliver_to is not null and delivered_at is null and number > ${after}
      and deliver_to <> all(${textColumn(except)}::text::text[])
      and not ${hasErased(sql)}
    order by number
    limit ${limit}`;
}

/** Whether the file may have a name that was erased since: nobody is given it any more. */
export async function isOvertaken(sql: Reader, { log, id }: Key): Promise<boolean> {
  const { count } = await sql`
    select from exports where log = ${log} and id = ${id} and ${hasErased(sql)}`;
  return count > 0;
}

/** With names, of which one was erased since it was asked for, by whichever process's clock. */
const hasErased = (sql: Reader) => sql`(
  parameters like '%"names":true%' and exists (
    select from name_erasures
    where name_erasures.log = exports.log and asked_at < erased_at + interval '1 minute'
  )
)`;

/** Of all logs, the one that was asked for last and has its file; undefined where none has. */
export async function readNewestDone(sql: Reader): Promise<ExportRow | undefined> {
  const [row] = await sql<ExportRow[]>`
    select ${sql(COLUMNS)}
    from exports
    where state = 'done'
    order by number desc
    limit 1`;
  return row;
}

/** Until the transaction ends, or its process dies, nobody else has it. */
export async function lockExport(tx: Transaction, { log, id }: Key): Promise<boolean> {
  const [row] = await tx<[{ locked: boolean }]>`
    select pg_try_advisory_xact_lock(hashtextextended(${`minutebook.exports/${log}/${id}`}, 0))
      as locked`;
  return row.locked;
}

export async function setProgress(sql: Reader, { log, id }: Key, bytes: bigint): Promise<void> {
  await sql`
    update exports set bytes = ${bytes} where log = ${log} and id = ${id} and state = 'pending'`;
}

/** What has ended stays as it is. */
export async function endExport(
  sql: Reader,
  { log, id }: Key,
  end: { bytes: bigint; manifest: string } | { error: string },
  at: Date,
): Promise<void> {
  const state = "error" in end ? "failed" : "done";
  await sql`
    update exports
    set ${sql({ ...end, state, ended_at: at })}
    where log = ${log} and id = ${id} and state = 'pending'`;
}

/** The file of what was done is damaged, or gone: it waits to be made as it was. */
export async function setPending(sql: Reader, { log, id }: Key): Promise<void> {
  await sql`
    update exports
    set state = 'pending', bytes = 0, manifest = null, ended_at = null
    where log = ${log} and id = ${id} and state = 'done'`;
}

export async function setDelivered(sql: Reader, { log, id }: Key, at: Date): Promise<void> {
  await sql`update exports set delivered_at = ${at} where log = ${log} and id = ${id}`;
}

export type ExpiredRow = Pick<ExportRow, "log" | "id" | "number" | "format" | "state">;

/**
 * What has ended, after a number, the oldest first: asked for before an instant, not kept for good, and where it has
 * to be, or that has not come there by another one; or on a schedule, and failed before another one; or with names, of which one was erased since. What removes
 * those of a schedule lets them be asked for again.
 */
export async function listExpired(
  sql: Reader,
  after: bigint,
  before: { asked: Date; undelivered: Date; failed: Date },
  limit: number,
): Promise<ExpiredRow[]> {
  return await sql<ExpiredRow[]>`
    select log, id, number, format, state
    from exports
    where number > ${after} and (
      not kept and asked_at < ${before.asked} and (
        state = 'failed' or state = 'done' and (
          deliver_to is null or delivered_at is not null or asked_at < ${before.undelivered}
        )
      )
      or origin is not null and state = 'failed' and ended_at < ${before.failed}
      or state <> 'pending' and ${hasErased(sql)}
    )
    order by number
    limit ${limit}`;
}

export async function deleteExport(sql: Reader, { log, id }: Key): Promise<void> {
  await sql`delete from exports where log = ${log} and id = ${id}`;
}

/** An archived checkpoint that covers what is exported. */
export interface Covering {
  size: bigint;
  root: Uint8Array;
}

/** The newest of a log; undefined where nothing is archived yet, or there is no such log. */
export async function readCovering(sql: Reader, log: string): Promise<Covering | undefined> {
  const [row] = await sql<Covering[]>`
    select size, root
    from seals
    join checkpoints using (log, size)
    where log = ${log}`;
  return row;
}

/** What a schedule has not asked for yet: of which log, and under which checkpoint. */
export interface Unasked extends Covering {
  log: string;
}

/** Logs that have no export of this origin: among those that are named, or of all. */
export async function listLogsWithout(
  sql: Reader,
  origin: string,
  logs: Logs,
  limit: number,
): Promise<Unasked[]> {
  return await sql<Unasked[]>`
    select seals.log, size, root
    from seals
    join checkpoints using (log, size)
    where ${among(sql, logs)}
      and not exists (select from exports where exports.log = seals.log and origin = ${origin})
    order by seals.log
    limit ${limit}`;
}

/** Closed months that have no export whose origin is this text and the month; as `listLogsWithout`. */
export async function listMonthsWithout(
  sql: Reader,
  origin: string,
  logs: Logs,
  limit: number,
): Promise<(Unasked & { month: string; closing: bigint })[]> {
  return await sql<(Unasked & { month: string; closing: bigint })[]>`
    select seals.log, size, root, month, closing
    from month_ends
    join seals using (log)
    join checkpoints using (log, size)
    where ${among(sql, logs)}
      and not exists (
        select from exports where exports.log = seals.log and origin = ${origin} || month::text
      )
    order by seals.log, month
    limit ${limit}`;
}

type Logs = "*" | readonly string[];

const among = (sql: Reader, logs: Logs) =>
  logs === "*" ? sql`true` : sql`seals.log = any(${plainColumn(logs)}::text::text[])`;
