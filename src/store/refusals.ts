/** Table `refusals`: digest and code of what proved nothing. Bounded, and never on the log. */
import type { Hash } from "../core/hash.ts";
import { bytesColumn, plainColumn } from "./columns.ts";
import type { Sql } from "./connect.ts";

export interface Refusal {
  digest: Hash;
  code: string;
  times: bigint;
}

/** Adds to the counts; digests are distinct. Then the oldest beyond `rowsMax` go. */
export async function recordRefusals(
  sql: Sql,
  refusals: readonly Refusal[],
  at: string,
  rowsMax: number,
): Promise<void> {
  await sql`
    insert into refusals as known (digest, code, first_at, last_at, times)
    select decode(digest, 'base64'), code, ${at}, ${at}, times
    from unnest(
      ${bytesColumn(refusals.map((refusal) => refusal.digest))}::text::text[],
      ${plainColumn(refusals.map((refusal) => refusal.code))}::text::text[],
      ${plainColumn(refusals.map((refusal) => refusal.times))}::text::bigint[]
    ) as refusal (digest, code, times)
    order by digest -- two processes that meet the same rows take them in one order
    on conflict (digest) do update
    set code = excluded.code,
      last_at = greatest(known.last_at, excluded.last_at),
      times = known.times + excluded.times
  `;
  await sql`
    delete from refusals
    where digest in (
      select digest
      from refusals
      order by last_at desc, digest
      offset ${rowsMax}
    )
  `;
}
