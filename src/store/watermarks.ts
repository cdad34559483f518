/** How far each log is folded and in the views: everything that is served says so (DESIGN §8). */
import type { Hash } from "../core/hash.ts";
import type { Sql, Transaction } from "./connect.ts";

/** Entries 0 … size−1 are in the buckets and in the views; `leaf` is the hash of the last of them. */
export interface Watermark {
  size: bigint;
  leaf: Hash;
  refreshedAt: Date;
}

/** Sealed entries `from` … `to`−1 of a log wait to be folded. */
export interface Lag {
  log: string;
  from: bigint;
  to: bigint;
}

export async function readWatermark(
  sql: Sql | Transaction,
  log: string,
): Promise<Watermark | undefined> {
  const [row] = await sql<Watermark[]>`
    select size, leaf, refreshed_at as "refreshedAt" from watermarks where log = ${log}`;
  return row;
}

/**
 * Logs that are sealed further than folded, with at most `max` entries each. Never past the seal: a
 * figure must not rest on what a checkpoint does not cover.
 */
export async function readLags(sql: Sql | Transaction, max: bigint): Promise<Lag[]> {
  return await sql<Lag[]>`
    select s.log, coalesce(w.size, 0) as "from", least(s.size, coalesce(w.size, 0) + ${max}) as "to"
    from seals as s
    left join watermarks as w on w.log = s.log
    where s.size > coalesce(w.size, 0)
    order by s.log`;
}

export async function moveWatermark(tx: Transaction, lag: Lag, at: Date): Promise<void> {
  // The size that was read is asked again: two refreshers can never both have folded a range.
  const moved = await tx`
    insert into watermarks as w (log, size, leaf, refreshed_at)
    select log, index + 1, leaf, ${at}
    from entries
    where log = ${lag.log} and index = ${lag.to - 1n}
    on conflict (log) do update
      set size = excluded.size, leaf = excluded.leaf, refreshed_at = excluded.refreshed_at
      where w.size = ${lag.from}`;
  if (moved.count !== 1) throw new Error("watermarks: moved by another, or past the last entry");
}
