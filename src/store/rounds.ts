/** Table `rounds`: which checkpoint of a log all witnesses are asked for now, over all processes. */
import type { Sql } from "./connect.ts";

/**
 * The size that is asked for: of the round that runs, else of a new one, which goes for all that is sealed.
 *
 * @param round.until of a new one; epoch milliseconds, as `now`
 */
export async function roundSize(
  sql: Sql,
  log: string,
  round: { now: number; until: number },
): Promise<bigint> {
  await sql`
    insert into rounds (log, size, ends_at)
    select log, size, ${new Date(round.until)}
    from seals
    where log = ${log}
    on conflict (log) do update
      set size = excluded.size, ends_at = excluded.ends_at
      where rounds.ends_at <= ${new Date(round.now)}`;
  const [row] = await sql<{ size: bigint }[]>`select size from rounds where log = ${log}`;
  return row?.size ?? 0n;
}

/** Ends what runs: by the quorum that it has reached, or because it cannot be reached any more. */
export async function endRound(
  sql: Sql,
  log: string,
  { size, now, reached }: { size: bigint; now: number; reached: boolean },
): Promise<void> {
  await sql`
    update rounds
    set
      ends_at = least(ends_at, ${new Date(now)}),
      reached = case when ${reached} then greatest(reached, size) else reached end
    where log = ${log} and size = ${size}`;
}

/** Logs of which something sealed has not reached the quorum, and since when the oldest waits. */
export interface PublicationLag {
  behind: bigint;
  since: Date | null;
}

export async function readPublicationLag(sql: Sql): Promise<PublicationLag> {
  const [row] = await sql<[PublicationLag]>`
    select count(*) as behind, min(sealed_at) as since
    from seals
    left join rounds using (log)
    left join lateral (
      select sealed_at
      from checkpoints
      where checkpoints.log = seals.log and checkpoints.size > coalesce(reached, 0)
      order by checkpoints.size
      limit 1
    ) as oldest on true
    where seals.size > coalesce(reached, 0)`;
  return row;
}
