/** Table `checkpoints`: signed checkpoints, written once, each after it is durable in the archive. */
import type { Hash } from "../core/hash.ts";
import type { Transaction } from "./connect.ts";

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
