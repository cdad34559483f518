/** Table `checkpoints`: signed checkpoints, written once, each after it is durable in the archive. */
import type { Hash } from "../core/hash.ts";
import type { Sql, Transaction } from "./connect.ts";

export interface StoredCheckpoint {
  log: string;
  size: bigint;
  root: Hash;
  note: string;
}

/**
 * @param at epoch milliseconds; when the clock stepped back, the time of the checkpoint before, of
 *   `after` entries, stands instead
 */
export async function insertCheckpoint(
  tx: Transaction,
  { log, size, root, note }: StoredCheckpoint,
  at: number,
  after: bigint,
): Promise<void> {
  await tx`
    insert into checkpoints (log, size, root, note, sealed_at)
    select
      ${log}, ${size}, ${root}, ${note},
      greatest(
        ${new Date(at)},
        (select sealed_at from checkpoints where log = ${log} and size = ${after})
      )`;
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
