/** Table `checkpoints`: signed checkpoints, written once, each after it is durable in the archive. */
import type { Hash } from "../core/hash.ts";
import { bytesColumn, plainColumn, textColumn } from "./columns.ts";
import type { Sql, Transaction } from "./connect.ts";

export interface StoredCheckpoint {
  log: string;
  size: bigint;
  root: Hash;
  note: string;
}

/** A checkpoint that was just signed, and the size of the one before. */
export interface NewCheckpoint extends StoredCheckpoint {
  after: bigint;
}

/**
 * @param at epoch milliseconds; when the clock stepped back, the time of the checkpoint before stands
 *   instead
 */
export async function insertCheckpoints(
  tx: Transaction,
  checkpoints: readonly NewCheckpoint[],
  at: number,
): Promise<void> {
  await tx`
    insert into checkpoints (log, size, root, note, sealed_at)
    select
      log, size, decode(root, 'base64'), note,
      greatest(
        ${new Date(at)},
        (select sealed_at from checkpoints as before where before.log = new.log and before.size = after)
      )
    from unnest(
      ${plainColumn(checkpoints.map(({ log }) => log))}::text::text[],
      ${plainColumn(checkpoints.map(({ size }) => size))}::text::bigint[],
      ${bytesColumn(checkpoints.map(({ root }) => root))}::text::text[],
      ${textColumn(checkpoints.map(({ note }) => note))}::text::text[],
      ${plainColumn(checkpoints.map(({ after }) => after))}::text::bigint[]
    ) as new (log, size, root, note, after)`;
}

/**
 * Of a checkpoint that the archive holds and the table may lack. Nobody knows any more when it was
 * sealed: not before its last entry was written, nor before the checkpoint that precedes it.
 */
export async function restoreCheckpoint(
  tx: Transaction,
  { log, size, root, note }: StoredCheckpoint,
): Promise<void> {
  await tx`
    insert into checkpoints (log, size, root, note, sealed_at)
    select
      ${log}, ${size}, ${root}, ${note},
      greatest(
        at,
        (
          select sealed_at
          from checkpoints
          where log = ${log} and size < ${size}
          order by size desc
          limit 1
        )
      )
    from entries
    where log = ${log} and index = ${size - 1n}
    on conflict do nothing`;
}

/** Those after a size, ascending. */
export async function readStored(
  sql: Sql | Transaction,
  log: string,
  { after, limit }: { after: bigint; limit: number },
): Promise<StoredCheckpoint[]> {
  return await sql<StoredCheckpoint[]>`
    select log, size, root, note
    from checkpoints
    where log = ${log} and size > ${after}
    order by size
    limit ${limit}`;
}

/** Of all that are stored, ascending. */
export async function readSizes(sql: Sql | Transaction, log: string): Promise<bigint[]> {
  const rows = await sql<{ size: bigint }[]>`
    select size from checkpoints where log = ${log} order by size`;
  return rows.map(({ size }) => size);
}

export async function readRoot(
  tx: Transaction,
  log: string,
  size: bigint,
): Promise<Hash | undefined> {
  const [row] = await tx<{ root: Hash }[]>`
    select root
    from checkpoints
    where log = ${log} and size = ${size}`;
  return row?.root;
}

/** Sizes of those that are kept, after < size ≤ upTo, ascending. */
export async function listCheckpoints(
  sql: Sql,
  log: string,
  { after, upTo, limit }: { after: bigint; upTo: bigint; limit: number },
): Promise<bigint[]> {
  const rows = await sql<{ size: bigint }[]>`
    select size
    from checkpoints
    where log = ${log} and size > ${after} and size <= ${upTo}
    order by size
    limit ${limit}`;
  return rows.map(({ size }) => size);
}
