/** Entries of one kind, found through the index entries_by_kind. */
import type { Hash } from "../core/hash.ts";
import type { Sql, Transaction } from "./connect.ts";

export interface RegisteredEntry {
  index: bigint;
  leaf: Hash;
  bytes: Uint8Array;
}

/** In the order of the log, those after an index, a page at a time. */
export async function readRegister(
  sql: Sql | Transaction,
  log: string,
  kind: "issuer_key" | "key" | "verification",
  { after, limit }: { after: bigint; limit: number },
): Promise<RegisteredEntry[]> {
  // The kinds stand in the text too: only so the planner sees that the partial index has them.
  return await sql<RegisteredEntry[]>`
    select index, leaf, bytes
    from entries
    where log = ${log} and kind = ${kind} and index > ${after}
      and kind not in ('usage', 'disposition', 'attestation')
    order by index
    limit ${limit}
  `;
}

/** All rate cards below an index, in the order of the log. */
export async function readCards(
  sql: Sql | Transaction,
  log: string,
  below: bigint,
): Promise<Pick<RegisteredEntry, "index" | "bytes">[]> {
  return await sql<Pick<RegisteredEntry, "index" | "bytes">[]>`
    select index, bytes
    from entries
    where log = ${log} and kind = 'rate_card' and index < ${below}
    order by index
  `;
}

/** Above every index that an entry can have. */
const ANY_INDEX = 2n ** 63n - 1n;

type Newest =
  | "visibility"
  | "archive_adopted"
  | "role_mapping"
  | "access_digest"
  | "access_review"
  | "environment"
  | "feed_ack"
  | "mode"
  | "verification";

/** The newest of its kind, or the newest below an index. */
export async function readNewest(
  sql: Sql | Transaction,
  log: string,
  kind: Newest,
  below: bigint = ANY_INDEX,
): Promise<RegisteredEntry | undefined> {
  const [newest] = await sql<RegisteredEntry[]>`
    select index, leaf, bytes
    from entries
    where log = ${log} and kind = ${kind} and index < ${below}
      and kind not in ('usage', 'disposition', 'attestation')
    order by index desc
    limit 1
  `;
  return newest;
}

/** Of all logs: how many entries there are, and the bytes of the newest of a kind; none where there is none. */
export async function newestOfLogs(
  sql: Sql,
  kind: "environment" | "verification",
): Promise<{ log: string; size: bigint; bytes: Uint8Array | null }[]> {
  return await sql<{ log: string; size: bigint; bytes: Uint8Array | null }[]>`
    select heads.log, heads.size, newest.bytes
    from heads
    left join lateral (
      select bytes
      from entries
      where log = heads.log and kind = ${kind}
        and kind not in ('usage', 'disposition', 'attestation')
      order by index desc
      limit 1
    ) as newest on true
    order by heads.log`;
}

/** The `access_digest` of a day; the day straight from the bytes, as in 0007_quota.sql. */
export async function findDigest(
  sql: Sql,
  log: string,
  day: string,
): Promise<RegisteredEntry | undefined> {
  const [found] = await sql<RegisteredEntry[]>`
    select index, leaf, bytes
    from entries
    where log = ${log} and kind = 'access_digest'
      and position(convert_to(${`"day":"${day}"`}, 'UTF8') in bytes) > 0
    order by index
    limit 1
  `;
  return found;
}

/** Every `log_key` of these logs, in the order of each: there are as many as operators asked for. */
export async function readLogKeys(
  sql: Sql | Transaction,
  logs: readonly string[],
): Promise<{ log: string; index: bigint; bytes: Uint8Array }[]> {
  return await sql<{ log: string; index: bigint; bytes: Uint8Array }[]>`
    select log, index, bytes
    from entries
    where log = any(${logs}) and kind = 'log_key'
    order by log, index
  `;
}
