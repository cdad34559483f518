/** Tables `names` and `name_erasures`: what the platform's numbers are called, on no log (migrations/0019). */
import { plainColumn, textColumn } from "./columns.ts";
import type { Sql, Transaction } from "./connect.ts";

type Reader = Sql | Transaction;

export const NAMED_KINDS = ["namespace", "project", "runner"] as const;
export type NamedKind = (typeof NAMED_KINDS)[number];

export interface NamedId {
  kind: NamedKind;
  id: string;
}

export interface NameRow extends NamedId {
  name: string;
}

/** What has a name already gets this one. @param rows no number of a kind twice */
export async function putNames(sql: Sql, log: string, rows: readonly NameRow[]): Promise<void> {
  // In one order, so that two writers never wait for each other in a circle.
  await sql`
    insert into names (log, kind, id, name)
    select ${log}, kind, id, name
    from unnest(
      ${plainColumn(rows.map(({ kind }) => kind))}::text::text[],
      ${plainColumn(rows.map(({ id }) => id))}::text::bigint[],
      ${textColumn(rows.map(({ name }) => name))}::text::text[]
    ) as put (kind, id, name)
    order by kind, id
    on conflict on constraint names_pkey do update set name = excluded.name`;
}

/** One after the other: what is asked for twice is given twice. */
export async function readNames(
  sql: Reader,
  log: string,
  ids: readonly NamedId[],
): Promise<NameRow[]> {
  if (ids.length === 0) return [];
  return await sql<NameRow[]>`
    select kind, id::text, name
    from unnest(
      ${plainColumn(ids.map(({ kind }) => kind))}::text::text[],
      ${plainColumn(ids.map(({ id }) => id))}::text::bigint[]
    ) as asked (kind, id)
    join names using (kind, id)
    where log = ${log}`;
}

/** False where there is none. The erasure is on record in the same statement as it is done. */
export async function eraseName(
  sql: Sql,
  { log, kind, id }: NamedId & { log: string },
  at: Date,
): Promise<boolean> {
  const [row] = await sql<[{ erased: bigint }]>`
    with erased as (
      delete from names where log = ${log} and kind = ${kind} and id = ${id} returning log
    ), recorded as (
      insert into name_erasures (log, erased_at)
      select log, ${at} from erased
      on conflict on constraint name_erasures_pkey do update
        set erased_at = greatest(name_erasures.erased_at, excluded.erased_at)
    )
    select count(*) as erased from erased`;
  return row.erased > 0n;
}
