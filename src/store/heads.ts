/** Table `heads`: the one row that all writers of a log queue at. */
import type { Hash } from "../core/hash.ts";
import { plainColumn } from "./columns.ts";
import type { Sql, Transaction } from "./connect.ts";

export interface Head {
  /** Entries 0 … size−1 are committed. */
  size: bigint;
  /** Leaf hash of entry size−1. */
  leaf: Hash;
  /** `at` of entry size−1. */
  at: string;
  /** Index of the newest entry that decides how reports are judged; −1 while there is none. */
  controlIndex: bigint;
}

export interface LockedHead extends Head {
  /**
   * When this server started, and the files that hold the tables there: another text means a restart, a
   * failover or a restore, also one into a server that goes on running.
   */
  copy: string;
}

/** Both paths name the database too. */
const copy = (sql: Sql | Transaction) => sql`
  concat_ws(
    ' ', pg_postmaster_start_time(), pg_relation_filepath('heads'), pg_relation_filepath('entries')
  )`;

interface Row {
  size: bigint;
  leaf: Hash;
  at: Date;
  control_index: bigint;
}

/** Holds the row until the transaction ends; undefined if there is no such log. */
export async function lockHead(tx: Transaction, log: string): Promise<LockedHead | undefined> {
  const [row] = await tx<(Row & { copy: string })[]>`
    select size, leaf, at, control_index, ${copy(tx)} as copy
    from heads
    where log = ${log}
    for update
  `;
  return row && { ...headOf(row), copy: row.copy };
}

/** What is committed now, without waiting for anybody. */
export async function readHead(sql: Sql | Transaction, log: string): Promise<Head | undefined> {
  const [row] = await sql<Row[]>`
    select size, leaf, at, control_index
    from heads
    where log = ${log}
  `;
  return row && headOf(row);
}

/** What is committed now of each of these logs that there is, without waiting for anybody. */
export async function readHeads(
  sql: Sql | Transaction,
  logs: readonly string[],
): Promise<Map<string, LockedHead>> {
  const rows = await sql<(Row & { log: string; copy: string })[]>`
    select log, size, leaf, at, control_index, ${copy(sql)} as copy
    from heads
    where log = any(${plainColumn(logs)}::text::text[])
  `;
  return new Map(rows.map((row) => [row.log, { ...headOf(row), copy: row.copy }]));
}

/** Until the transaction ends nobody else creates a log: there is no row yet to queue at. */
export async function lockCreation(tx: Transaction): Promise<void> {
  await tx`select pg_advisory_xact_lock(hashtextextended('minutebook.heads', 0))`;
}

/** The head of a log whose entry 0 is inserted in the same transaction. */
export async function createHead(tx: Transaction, log: string, head: Head): Promise<void> {
  await tx`
    insert into heads (log, size, leaf, at, control_index)
    values (${log}, ${head.size}, ${head.leaf}, ${head.at}, ${head.controlIndex})
  `;
}

/**
 * Compare-and-swap, though the row is locked: a lost lock must become an error, never a fork.
 *
 * @throws Error when the head is no longer at `from`
 */
export async function moveHead(tx: Transaction, log: string, from: Head, to: Head): Promise<void> {
  const { count } = await tx`
    update heads
    set size = ${to.size}, leaf = ${to.leaf}, at = ${to.at}, control_index = ${to.controlIndex}
    where log = ${log} and size = ${from.size} and leaf = ${from.leaf}
  `;
  if (count !== 1) throw new Error("heads: moved under the lock");
}

function headOf(row: Row): Head {
  return {
    size: row.size,
    leaf: row.leaf,
    at: row.at.toISOString(),
    controlIndex: row.control_index,
  };
}
