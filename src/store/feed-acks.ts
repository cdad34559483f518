/** Tables `feed_acks` and `portal_breaks`: acknowledgements of the feed, and the breaks that stand behind them. */
import { plainColumn } from "./columns.ts";
import type { Sql, Transaction } from "./connect.ts";

type Reader = Sql | Transaction;

/** Above every index that an entry can have. */
const ANY_INDEX = 2n ** 63n - 1n;

export interface FoundAck {
  index: bigint;
  bytes: Uint8Array;
}

/** A consumer's newest, of entries 0 … below−1. */
export async function readNewestAck(
  sql: Reader,
  log: string,
  consumer: string,
  below: bigint = ANY_INDEX,
): Promise<FoundAck | undefined> {
  const [found] = await sql<FoundAck[]>`
    select index, bytes
    from feed_acks
    join entries using (log, index)
    where log = ${log} and consumer = ${consumer} and index < ${below}
    order by index desc
    limit 1`;
  return found;
}

/** Anybody's that reaches furthest, of those of 0 … upTo−1 or less that stand on entries 0 … below−1. */
export async function readFurthestAck(
  sql: Reader,
  log: string,
  upTo: bigint,
  below: bigint = ANY_INDEX,
): Promise<FoundAck | undefined> {
  const [found] = await sql<FoundAck[]>`
    select index, bytes
    from feed_acks
    join entries using (log, index)
    where log = ${log} and up_to <= ${upTo} and index < ${below}
    order by up_to desc, index desc
    limit 1`;
  return found;
}

/** The newest one before an entry, whoever's: a `portal-difference` there is about it. */
export async function readAckBefore(
  sql: Reader,
  log: string,
  index: bigint,
): Promise<FoundAck | undefined> {
  const [found] = await sql<FoundAck[]>`
    select index, bytes
    from feed_acks
    join entries using (log, index)
    where log = ${log} and index < ${index}
    order by index desc
    limit 1`;
  return found;
}

export interface KeptAck extends FoundAck {
  consumer: string;
  up_to: bigint;
}

/** Each consumer's newest, by their names: as many looks into the index as there are names. */
export async function readNewestAcks(sql: Reader, log: string): Promise<KeptAck[]> {
  return await sql<KeptAck[]>`
    with recursive ${consumersOf(sql, log)}
    select index, bytes, newest.consumer, up_to
    from consumers
    cross join lateral (
      select a.log, a.index, a.consumer, a.up_to
      from feed_acks as a
      where a.log = ${log} and a.consumer = consumers.consumer
      order by a.index desc
      limit 1
    ) as newest
    join entries using (log, index)
    where kind = 'feed_ack'
    order by consumers.consumer collate "C"`;
}

/** Acknowledgements that stand on the log and not in the table, or in the table and not on the log. */
export async function countUnmatchedAcks(sql: Reader, log: string): Promise<bigint> {
  const [row] = await sql<[{ count: bigint }]>`
    select count(*)
    from (
      select index from entries
      where log = ${log} and kind = 'feed_ack'
        and kind not in ('usage', 'disposition', 'attestation')
    ) as told
    full join (select index from feed_acks where log = ${log}) as kept using (index)
    where told.index is null or kept.index is null`;
  return row.count;
}

/** Names by which there are acknowledgements on entries 0 … below−1. */
export async function countConsumers(sql: Reader, log: string, below: bigint): Promise<number> {
  const [row] = await sql<[{ count: bigint }]>`
    with recursive ${consumersOf(sql, log)}
    select count(*)
    from consumers
    where exists (
      select
      from feed_acks as a
      where a.log = ${log} and a.consumer = consumers.consumer and a.index < ${below}
    )`;
  return Number(row.count);
}

/** From name to name, not over all that each of them acknowledged. */
function consumersOf(sql: Reader, log: string) {
  return sql`
    consumers (consumer) as (
      select min(consumer) from feed_acks where log = ${log}
      union all
      select (
        select min(a.consumer)
        from feed_acks as a
        where a.log = ${log} and a.consumer > consumers.consumer
      )
      from consumers
      where consumer is not null
    )`;
}

export interface PortalBreak {
  index: bigint;
  /** The billing month. */
  month: string;
  state: "open" | "accepted" | "corrected" | "healed";
}

/** A consumer's newest `portal-difference` of each of these months, as entries 0 … below−1 say. */
export async function readPortalBreaks(
  sql: Reader,
  log: string,
  { consumer, months, below }: { consumer: string; months: readonly string[]; below: bigint },
): Promise<PortalBreak[]> {
  return await sql<PortalBreak[]>`
    select newest.index, newest.month, coalesce(e.outcome, 'open') as state
    from unnest(${plainColumn(months)}::text::date[]) as asked (month)
    cross join lateral (
      select b.index, b.month
      from portal_breaks as b
      where b.log = ${log} and b.consumer = ${consumer} and b.month = asked.month
        and b.index < ${below}
      order by b.index desc
      limit 1
    ) as newest
    left join break_ends as e
      on e.log = ${log} and e.break = newest.index and e.index < ${below}
    order by newest.month`;
}
