/**
 * Tables `key_marks` and `counter_gaps`: which counters of each key are accounted for, and what it attested. A report
 * for another log uses no counter of this one.
 */
import type { Sql, Transaction } from "./connect.ts";

/** Of a row of `reports`: that its counter has come. */
const isOwn = (sql: Sql | Transaction) => sql`code <> 'wrong-log'`;

/** What a key has said of itself, by an attestation or by its first entry. */
export interface Heard {
  kid: string;
  /** Of the entry. */
  at: string;
  by: "attestation" | "key";
  /** The highest counter that it had used. */
  counter: bigint;
  /** Reports that it had not delivered. */
  spool: bigint;
}

/** In the order of their entries. A counter that was attested once stays so. */
export async function keepHeard(
  tx: Transaction,
  log: string,
  { at, by, counter, kid, spool }: Heard,
): Promise<void> {
  const since = spool > 0n ? at : null;
  const attestedAt = by === "attestation" ? at : null;
  await tx`
    insert into key_marks as kept (log, kid, attested, heard_at, attested_at, undelivered_since)
    values (${log}, ${kid}, ${counter}, ${at}, ${attestedAt}, ${since})
    on conflict on constraint key_marks_pkey do update
      set
        attested = greatest(kept.attested, excluded.attested),
        heard_at = excluded.heard_at,
        attested_at = coalesce(excluded.attested_at, kept.attested_at),
        undelivered_since = case
          when excluded.undelivered_since is not null
          then coalesce(kept.undelivered_since, excluded.undelivered_since)
        end
  `;
}

export interface KeyMark {
  kid: string;
  attested: bigint;
  heard_at: Date | null;
  attested_at: Date | null;
  undelivered_since: Date | null;
}

export async function readKeyMarks(sql: Sql | Transaction, log: string): Promise<KeyMark[]> {
  return await sql<KeyMark[]>`
    select kid, attested, heard_at, attested_at, undelivered_since
    from key_marks
    where log = ${log}
    order by kid
  `;
}

/** Counters of a key without any report. */
interface Gap {
  kid: string;
  first: bigint;
  last: bigint;
  since: Date;
}

/**
 * Finds the gaps above the last counter that was looked at, up to `upTo` or the highest that came, and goes on
 * from there. Cost follows what is new.
 */
export async function findGaps(
  tx: Transaction,
  log: string,
  { kid, upTo, at }: { kid: string; upTo: bigint; at: string },
): Promise<void> {
  await tx`
    with mark as (
      select checked
      from key_marks
      where log = ${log} and kid = ${kid}
    ), come as (
      select distinct counter
      from reports, mark
      where log = ${log} and kid = ${kid} and counter > checked and ${isOwn(tx)}
    ), ends as (
      select checked as counter from mark
      union all
      select counter from come
      union all
      select least(${upTo}::bigint, 9223372036854775806) + 1 from mark
      where ${upTo} > greatest(checked, (select coalesce(max(counter), 0) from come))
    ), steps as (
      select lag(counter) over (order by counter) as before, counter from ends
    ), gaps as (
      insert into counter_gaps (log, kid, first, last, since)
      select ${log}, ${kid}, before + 1, counter - 1, ${at}
      from steps
      where counter > before + 1
      on conflict on constraint counter_gaps_pkey do nothing
    )
    update key_marks
    set checked = greatest(checked, ${upTo}, (select coalesce(max(counter), 0) from come))
    where log = ${log} and kid = ${kid}
  `;
}

/** A gap as it is now. */
export interface StandingGap extends Gap {
  missing: bigint;
}

export async function readGaps(tx: Transaction, log: string): Promise<StandingGap[]> {
  return await tx<StandingGap[]>`
    select kid, first, last, since, last - first + 1 - come.count as missing
    from counter_gaps as g
    cross join lateral (
      select count(distinct counter)
      from reports as r
      where r.log = g.log and r.kid = g.kid and r.counter between g.first and g.last
        and ${isOwn(tx)}
      offset 0
    ) as come
    where log = ${log}
    order by kid, first
  `;
}

export async function dropGap(tx: Transaction, log: string, { first, kid }: Gap): Promise<void> {
  await tx`
    delete from counter_gaps
    where log = ${log} and kid = ${kid} and first = ${first}
  `;
}

/** Above every index that an entry can have. */
const ANY_INDEX = 2n ** 63n - 1n;

/** How many of a key's counters first … last entries 0 … below−1 account for, and the last of these entries. */
export async function readCome(
  sql: Sql | Transaction,
  log: string,
  { first, kid, last }: Pick<Gap, "first" | "kid" | "last">,
  below = ANY_INDEX,
): Promise<{ come: bigint; last: bigint | null }> {
  const [row] = await sql<[{ come: bigint; last: bigint | null }]>`
    select count(distinct counter) as come, max(recorded) as last
    from reports
    where log = ${log} and kid = ${kid} and counter between ${first} and ${last}
      and recorded < ${below} and ${isOwn(sql)}
  `;
  return row;
}
