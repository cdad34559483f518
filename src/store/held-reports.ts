/**
 * Reports that wait for persons, as the database reads them from their entries' bytes. There may be thousands, and
 * nobody writes to a log while its head is locked: decoding 4,000 of them here would take four seconds.
 */
import { plainColumn } from "./columns.ts";
import type { Sql, Transaction } from "./connect.ts";

/** Holds and conflicts that have not ended. */
export interface Unresolved {
  count: bigint;
  /** Index of the first. */
  first: bigint | null;
}

interface Unsettled {
  kind: "conflict" | "hold";
  /** Of jobs that ended before this instant. */
  until: string;
  /** As entries 0 … below−1 say. */
  below: bigint;
}

/** Of a conflict also by the usage that stands: whichever version ended before the instant, it is not settled. */
export async function countUnresolved(
  tx: Transaction,
  log: string,
  { kind, until, below }: Unsettled,
): Promise<Unresolved> {
  const [row] = await tx<[Unresolved]>`
    select count(*) as count, min(e.index) as first
    from entries as e
    ${read(tx)}
    left join lateral (
      select finished_at
      from entries
      where log = e.log and index = nullif(${after(tx, "entry", '"stands":"')}, '')::bigint
      offset 0
    ) as stands on true
    where e.log = ${log} and e.kind = ${kind} and e.index < ${below}
      and e.kind not in ('usage', 'disposition', 'attestation')
      and not exists (
        select
        from ${tx(`${kind}_ends`)} as ended
        where ended.log = e.log and ended.${tx(kind)} = e.index and ended.index < ${below}
      )
      and (
        ${after(tx, "report", '"finished_at":"')} collate "C" < ${until}
        or stands.finished_at < ${until}
      )`;
  return row;
}

/** By job, the last of the reports of these that are held. */
export async function readHeld(
  sql: Sql | Transaction,
  log: string,
  jobs: readonly string[],
): Promise<Map<string, bigint>> {
  const job = after(sql, "report", '"job":{"id":"');
  const rows = await sql<{ job: string; index: bigint }[]>`
    select ${job} as job, e.index
    from entries as e
    ${read(sql)}
    where e.log = ${log} and e.kind = 'hold'
      and not exists (select from hold_ends as h where h.log = e.log and h.hold = e.index)
      and ${job} = any(${plainColumn(jobs)}::text::text[])
    order by e.index`;
  return new Map(rows.map(({ index, job }) => [job, index]));
}

/**
 * Text after a member's name, up to its end. In canonical JSON no space is between the two, and in no string of it
 * a quote that is not escaped. PostgreSQL's own reader of JSON takes three times as long.
 */
const after = (sql: Sql | Transaction, text: "entry" | "report", name: string) =>
  sql`split_part(split_part(${sql(text)}, ${name}, 2), '"', 1)`;

/** The entry `e` and its report, the payload of the JWS (RFC 7515 §7.1). OFFSET 0: each is read once. */
const read = (sql: Sql | Transaction) => sql`
  cross join lateral (
    select encode(e.bytes, 'escape') as entry offset 0
  ) as escaped
  cross join lateral (
    select replace(replace(split_part(${after(sql, "entry", '"jws":"')}, '.', 2), '-', '+'), '_', '/')
      as payload
    offset 0
  ) as signed
  cross join lateral (
    select
      encode(decode(payload || repeat('=', -octet_length(payload) & 3), 'base64'), 'escape') as report
    offset 0
  ) as decoded`;
