/** Reports that wait for persons, of which there may be thousands: read by the database from their entries' bytes. */
import { plainColumn } from "./columns.ts";
import type { Sql, Transaction } from "./connect.ts";
import { after, joinSigned } from "./signed-members.ts";

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
    ${joinSigned(tx)}
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
        ${after(tx, "signed", '"finished_at":"')} collate "C" < ${until}
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
  const job = after(sql, "signed", '"job":{"id":"');
  const rows = await sql<{ job: string; index: bigint }[]>`
    select ${job} as job, e.index
    from entries as e
    ${joinSigned(sql)}
    where e.log = ${log} and e.kind = 'hold'
      and not exists (select from hold_ends as h where h.log = e.log and h.hold = e.index)
      and ${job} = any(${plainColumn(jobs)}::text::text[])
    order by e.index`;
  return new Map(rows.map(({ index, job }) => [job, index]));
}
