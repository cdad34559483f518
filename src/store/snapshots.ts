/**
 * Whole tables as one REPEATABLE READ snapshot sees them, for whoever compares them with the bytes:
 * rows in the order of the log, a page at a time, so that memory does not follow the size.
 */
import type { Hash } from "../core/hash.ts";
import type { Sql, Transaction } from "./connect.ts";
import { instant } from "./instant.ts";

/** A connection of its own, in a read-only transaction; `end` gives it back. */
export interface Snapshot {
  sql: Sql;
  /** Rows of a query that has a column `position`, in its order. */
  stream<Row extends Positioned>(name: string, query: Query): Promise<Stream<Row>>;
  end(): Promise<void>;
}

export interface Positioned {
  position: bigint;
}

export interface Stream<Row> {
  /** Takes the rows whose position lies below the bound and that were not taken yet. */
  below(bound: bigint): Promise<Row[]>;
  /** Takes up to a page of what is left; an empty page is the end. */
  page(): Promise<Row[]>;
  close(): Promise<void>;
}

type Query = (sql: Sql) => ReturnType<Sql["unsafe"]>;

const PAGE_ROWS = 1_000;

export async function openSnapshot(pool: Sql): Promise<Snapshot> {
  const sql = await pool.reserve();
  await sql`begin isolation level repeatable read read only`;
  // The log may be large and the reader slow; nothing waits for a snapshot that only reads.
  await sql`set local statement_timeout = 0`;
  await sql`set local idle_in_transaction_session_timeout = 0`;
  return {
    sql,
    stream: (name, query) => openStream(sql, name, query),
    end: async () => {
      try {
        await sql`rollback`;
      } finally {
        sql.release();
      }
    },
  };
}

async function openStream<Row extends Positioned>(
  sql: Sql,
  name: string,
  query: Query,
): Promise<Stream<Row>> {
  await sql`declare ${sql(name)} no scroll cursor for ${query(sql)}`;
  let buffer: Row[] = [];
  let ended = false;
  const fill = async () => {
    if (ended || buffer.length > 0) return;
    buffer = [...(await sql<Row[]>`fetch ${sql.unsafe(String(PAGE_ROWS))} from ${sql(name)}`)];
    ended = buffer.length < PAGE_ROWS;
  };
  return {
    below: async (bound) => {
      const rows: Row[] = [];
      for (;;) {
        await fill();
        const end = buffer.findIndex(({ position }) => position >= bound);
        rows.push(...buffer.splice(0, end < 0 ? buffer.length : end));
        if (buffer.length > 0 || ended) return rows;
      }
    },
    page: async () => {
      await fill();
      return buffer.splice(0);
    },
    close: async () => {
      await sql`close ${sql(name)}`;
    },
  };
}

/** Of usage entries; null for every other kind. Instants are texts. */
export interface TypedColumns {
  tracking: string | null;
  job_id: bigint | null;
  project_id: bigint | null;
  namespace_id: bigint | null;
  runner_uuid: string | null;
  runner_id: bigint | null;
  machine_type: string | null;
  duration_ms: bigint | null;
  compute_ms: string | null;
  not_billable: string | null;
  usage_month: string | null;
  billing_month: string | null;
  finished_at: string | null;
}

export interface EntryRow extends TypedColumns {
  log: string;
  index: bigint;
  kind: string;
  at: string;
  prev: Hash;
  leaf: Hash;
  bytes: Uint8Array;
}

/** Up to a page of entries from an index on, every column of them. */
export async function entryRows(
  sql: Sql | Transaction,
  log: string,
  from: bigint,
): Promise<EntryRow[]> {
  return await sql<EntryRow[]>`
    select
      log, index, kind, ${instant(sql, "at")}, prev, leaf, bytes, tracking, job_id, project_id,
      namespace_id, runner_uuid, runner_id, machine_type, duration_ms, compute_ms, not_billable,
      usage_month, billing_month, ${instant(sql, "finished_at")}
    from entries
    where log = ${log} and index >= ${from}
    order by index
    limit ${PAGE_ROWS}`;
}

export interface JobRow extends Positioned {
  tracking: string;
  job_id: bigint;
  index: bigint;
  fact: Hash;
}

export const jobRows =
  (log: string, from = 0n) =>
  (sql: Sql) =>
    sql`
  select index as position, tracking, job_id, index, fact
  from jobs
  where log = ${log} and index >= ${from}
  order by index, tracking, job_id`;

export interface ReportRow extends Positioned {
  kid: string;
  counter: bigint;
  digest: Hash;
  index: bigint | null;
  code: string;
  recorded: bigint;
}

export const reportRows =
  (log: string, from = 0n) =>
  (sql: Sql) =>
    sql`
  select recorded as position, kid, counter, digest, index, code, recorded
  from reports
  where log = ${log} and recorded >= ${from}
  order by recorded, kid, counter, digest`;

export interface KeyRow extends Positioned {
  kid: string;
  index: bigint;
  public_key: Uint8Array;
}

export const keyRows =
  (log: string, from = 0n) =>
  (sql: Sql) =>
    sql`
  select index as position, kid, index, public_key
  from keys
  where log = ${log} and index >= ${from}
  order by index, kid`;

export interface CheckpointRow extends Positioned {
  size: bigint;
  root: Hash;
  note: string;
}

export const checkpointRows = (log: string) => (sql: Sql) =>
  sql`
  select size as position, size, root, note
  from checkpoints
  where log = ${log}
  order by size`;

export interface SealRow {
  size: bigint;
  leaf: Hash;
  edge: Uint8Array;
}

export async function sealRow(sql: Sql | Transaction, log: string): Promise<SealRow | undefined> {
  const [row] = await sql<SealRow[]>`select size, leaf, edge from seals where log = ${log}`;
  return row;
}

/** The bytes of these entries, of those that there are. */
export async function bytesOf(
  sql: Sql | Transaction,
  log: string,
  indices: readonly bigint[],
): Promise<{ index: bigint; bytes: Uint8Array }[]> {
  return await sql<{ index: bigint; bytes: Uint8Array }[]>`
    select index, bytes
    from entries
    where log = ${log} and index = any(${sql.array([...indices], INT8_ARRAY)})`;
}

const INT8_ARRAY = 1016;

/** The entry that stands for a job, if one does. */
export async function jobIndices(
  sql: Sql | Transaction,
  log: string,
  tracking: string,
  jobId: bigint,
): Promise<bigint[]> {
  const rows = await sql<{ index: bigint }[]>`
    select index from jobs where log = ${log} and tracking = ${tracking} and job_id = ${jobId}`;
  return rows.map(({ index }) => index);
}

/** The entries that account for a key's reports with these counters. */
export async function recordedIndices(
  sql: Sql | Transaction,
  log: string,
  kid: string,
  counters: readonly bigint[],
): Promise<bigint[]> {
  const rows = await sql<{ recorded: bigint }[]>`
    select distinct recorded
    from reports
    where log = ${log} and kid = ${kid} and counter = any(${sql.array([...counters], INT8_ARRAY)})`;
  return rows.map(({ recorded }) => recorded);
}

export interface HeadRow {
  size: bigint;
  leaf: Hash;
  at: string;
  control_index: bigint;
}

export async function headRow(sql: Sql | Transaction, log: string): Promise<HeadRow | undefined> {
  const [row] = await sql<HeadRow[]>`
    select size, leaf, ${instant(sql, "at")}, control_index from heads where log = ${log}`;
  return row;
}
