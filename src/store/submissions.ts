/** Table `submissions`: when a log is to be submitted to a witness next, over all processes. */
import type { Sql } from "./connect.ts";

/** A witness by the id of its key, and an instant in epoch milliseconds. */
interface Claim {
  keyId: string;
  now: number;
  /** Until then nobody else submits what is claimed. */
  until: number;
  limit: number;
  /** What is asked for is the size of the round that runs, and the newest only where none does. */
  byRounds: boolean;
}

/**
 * Logs of whose checkpoint, the newest or the round's, this witness has not cosigned, and that are due: the caller has them to
 * itself until then, without holding a connection while the witness thinks. The longest waiting first.
 */
export async function claimSubmissions(
  sql: Sql,
  { keyId, now, until, limit, byRounds }: Claim,
): Promise<string[]> {
  const rows = await sql<{ log: string }[]>`
    insert into submissions (log, key_id, due_at)
    select seals.log, ${keyId}, ${new Date(until)}
    from seals
    left join submissions on submissions.log = seals.log and submissions.key_id = ${keyId}
    left join rounds on rounds.log = seals.log and ${byRounds} and ends_at > ${new Date(now)}
    where coalesce(rounds.size, seals.size) > coalesce(cosigned_size, 0)
      and (due_at is null or due_at <= ${new Date(now)})
    order by due_at nulls first, seals.log
    limit ${limit}
    on conflict (log, key_id) do update
      set due_at = excluded.due_at
      -- Asked again under the row's lock: of two processes the second finds it moved.
      where submissions.due_at <= ${new Date(now)}
    returning log`;
  return rows.map(({ log }) => log);
}

/** The largest size that this key has cosigned, of all that is stored. */
export async function lastCosigned(sql: Sql, log: string, keyId: string): Promise<bigint> {
  const [row] = await sql<{ cosigned_size: bigint }[]>`
    select cosigned_size
    from submissions
    where log = ${log} and key_id = ${keyId}`;
  return row?.cosigned_size ?? 0n;
}

/** Of what was claimed: nothing of these logs to this witness before then. */
export async function moveSubmissions(
  sql: Sql,
  logs: readonly string[],
  keyId: string,
  until: number,
): Promise<void> {
  await sql`
    update submissions
    set due_at = ${new Date(until)}
    where log = any(${sql.array([...logs])}) and key_id = ${keyId}`;
}

/** @param size what the witness says that it has cosigned, and we do not have */
export async function recordWitnessSize(
  sql: Sql,
  log: string,
  keyId: string,
  size: bigint,
): Promise<void> {
  await sql`
    insert into submissions (log, key_id, witness_size)
    values (${log}, ${keyId}, ${size})
    on conflict (log, key_id) do update set witness_size = excluded.witness_size`;
}

/** The witness refuses what we have as no continuation of what it has cosigned. */
export async function recordConflict(sql: Sql, log: string, keyId: string): Promise<void> {
  await sql`
    insert into submissions (log, key_id, conflict)
    values (${log}, ${keyId}, true)
    on conflict (log, key_id) do update set conflict = true`;
}

/** It has signed a continuation just now: whatever it said before is over. */
export async function recordAgreement(sql: Sql, log: string, keyId: string): Promise<void> {
  await sql`
    update submissions
    set witness_size = null, conflict = false
    where log = ${log} and key_id = ${keyId} and (witness_size is not null or conflict)`;
}

/** How many logs some witness has seen otherwise than they are here. */
export interface WitnessDoubts {
  /** It said that it has cosigned more, and nothing of it has come here since, however long the log is. */
  ahead: bigint;
  conflicting: bigint;
}

export async function readWitnessDoubts(
  sql: Sql,
  keyIds: readonly string[],
): Promise<WitnessDoubts> {
  const [row] = await sql<[WitnessDoubts]>`
    select
      count(distinct log) filter (where witness_size > cosigned_size) as ahead,
      count(distinct log) filter (where conflict) as conflicting
    from submissions
    where key_id = any(${sql.array([...keyIds])})`;
  return row;
}

/** Of all sealed logs, by what any of these keys has cosigned. */
export interface WitnessLag {
  /** Those that have a cosignature at all. */
  cosigned: bigint;
  /** Those whose newest checkpoint has none. */
  behind: bigint;
  /** When the oldest checkpoint beyond the last cosigned one was sealed; null when there is none. */
  since: Date | null;
}

export async function readWitnessLag(sql: Sql, keyIds: readonly string[]): Promise<WitnessLag> {
  const [row] = await sql<[WitnessLag]>`
    select
      count(*) filter (where cosigned > 0) as cosigned,
      count(*) filter (where size > cosigned) as behind,
      min(sealed_at) as since
    from (
      select seals.log, size, coalesce(max(cosigned_size), 0) as cosigned
      from seals
      left join submissions
        on submissions.log = seals.log and key_id = any(${sql.array([...keyIds])})
      group by seals.log
    ) as sealed
    left join lateral (
      select sealed_at
      from checkpoints
      where sealed.size > sealed.cosigned
        and checkpoints.log = sealed.log
        and checkpoints.size > sealed.cosigned
      order by checkpoints.size
      limit 1
    ) as oldest on true`;
  return row;
}

/** A witness that has signed more of a log than `size`, or a tree that contradicts it; the furthest one. */
export async function witnessBeyond(
  sql: Sql,
  log: string,
  size: bigint,
): Promise<{ keyId: string; witnessSize: bigint | null } | undefined> {
  const [row] = await sql<{ keyId: string; witnessSize: bigint | null }[]>`
    select key_id as "keyId", witness_size as "witnessSize"
    from submissions
    where log = ${log} and (witness_size > ${size} or conflict)
    order by witness_size desc nulls last, key_id
    limit 1`;
  return row;
}
