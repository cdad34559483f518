/** Table `feed_acks`: which entries are acknowledgements of the feed; and the breaks that stand behind them. */
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

/** Each consumer's newest, by their names. */
export async function readNewestAcks(sql: Reader, log: string): Promise<FoundAck[]> {
  return await sql<FoundAck[]>`
    select index, bytes
    from (
      select distinct on (consumer collate "C") log, index, consumer
      from feed_acks
      where log = ${log}
      order by consumer collate "C", index desc
    ) as newest
    join entries using (log, index)
    order by consumer collate "C"`;
}

export interface PortalBreak {
  index: bigint;
  /** The billing month. */
  month: string;
  state: "open" | "accepted" | "corrected" | "healed";
}

/** A consumer's newest `portal-difference` of each month, as entries 0 … below−1 say. */
export async function readPortalBreaks(
  sql: Reader,
  log: string,
  consumer: string,
  below: bigint = ANY_INDEX,
): Promise<PortalBreak[]> {
  return await sql<PortalBreak[]>`
    select distinct on (b.month) b.index, b.month, coalesce(e.outcome, 'open') as state
    from breaks as b
    cross join lateral (
      select consumer
      from feed_acks as a
      where a.log = b.log and a.index < b.index
      order by a.index desc
      limit 1
    ) as ack
    left join break_ends as e
      on e.log = b.log and e.break = b.index and e.index < ${below}
    where b.log = ${log} and b.code = 'portal-difference' and b.index < ${below}
      and ack.consumer = ${consumer}
    order by b.month, b.index desc`;
}
