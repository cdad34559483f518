/** Table `retentions`: how far each log was gone over for what nothing needs any more. */
import type { Sql, Transaction } from "./connect.ts";

export interface Retention {
  /** Checkpoints of up to this size were judged. */
  checkpointsTo: bigint;
  /** A multiple of 256: partial tiles and bundles of entries before it are gone. */
  tilesTo: bigint;
}

/** Logs with a checkpoint that was sealed before `before`, was not judged, and is not the latest. */
export async function overdueLogs(sql: Sql, before: Date): Promise<string[]> {
  const rows = await sql<{ log: string }[]>`
    select log
    from seals
    left join retentions using (log)
    cross join lateral (
      select checkpoints.size, sealed_at
      from checkpoints
      where checkpoints.log = seals.log and checkpoints.size > coalesce(checkpoints_to, 0)
      order by checkpoints.size
      limit 1
    ) as oldest
    where sealed_at < ${before} and oldest.size < seals.size
    order by sealed_at, log`;
  return rows.map(({ log }) => log);
}

/** A row to lock; committed on its own, as that of `seals`. */
export async function ensureRetention(sql: Sql, log: string): Promise<void> {
  await sql`
    insert into retentions (log, checkpoints_to, tiles_to)
    values (${log}, 0, 0)
    on conflict do nothing`;
}

/** Undefined when somebody else is at it. */
export async function lockRetention(tx: Transaction, log: string): Promise<Retention | undefined> {
  const [row] = await tx<Retention[]>`
    select checkpoints_to as "checkpointsTo", tiles_to as "tilesTo"
    from retentions
    where log = ${log}
    for update skip locked`;
  return row;
}

export async function moveRetention(
  tx: Transaction,
  log: string,
  { checkpointsTo, tilesTo }: Retention,
): Promise<void> {
  await tx`
    update retentions
    set checkpoints_to = ${checkpointsTo}, tiles_to = ${tilesTo}
    where log = ${log}`;
}

/** Checkpoints of up to this size were judged: those without a row were let go. */
export async function retainedTo(sql: Sql, log: string): Promise<bigint> {
  const [row] = await sql<Pick<Retention, "checkpointsTo">[]>`
    select checkpoints_to as "checkpointsTo" from retentions where log = ${log}`;
  return row?.checkpointsTo ?? 0n;
}

/** As its row has it; `last` are the bytes of entry size−1, where that stands. */
export interface PassedCheckpoint {
  size: bigint;
  sealed_at: Date;
  last: Uint8Array | null;
}

/** Sizes of the log's largest checkpoints, the largest first. */
export async function newestSizes(tx: Transaction, log: string, limit: number): Promise<bigint[]> {
  const rows = await tx<{ size: bigint }[]>`
    select size from checkpoints where log = ${log} order by size desc limit ${limit}`;
  return rows.map(({ size }) => size);
}

/** Those after `after` and up to `upTo`, ascending, that were sealed before `before`. */
export async function passedCheckpoints(
  tx: Transaction,
  log: string,
  { after, upTo, before, limit }: { after: bigint; upTo: bigint; before: Date; limit: number },
): Promise<PassedCheckpoint[]> {
  return await tx<PassedCheckpoint[]>`
    select size, sealed_at, bytes as last
    from checkpoints
    left join entries on entries.log = checkpoints.log and entries.index = size - 1
    where checkpoints.log = ${log}
      and size > ${after}
      and size <= ${upTo}
      and sealed_at < ${before}
    order by size
    limit ${limit}`;
}

/** Removes those that nothing needs, and says which; the database itself refuses the others. */
export async function removeCheckpoints(
  tx: Transaction,
  log: string,
  sizes: readonly bigint[],
): Promise<bigint[]> {
  const rows = await tx<{ size: bigint }[]>`
    select size
    from remove_checkpoints(${log}, ${tx.array([...sizes], INT8_ARRAY)}) as size`;
  return rows.map(({ size }) => size);
}

const INT8_ARRAY = 1016;
