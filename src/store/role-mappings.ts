/** Entries of kind `role_mapping`, over all logs: of each the newest. */

import type { Hash } from "../core/hash.ts";
import { plainColumn } from "./columns.ts";
import type { Sql } from "./connect.ts";

export interface NewestMapping {
  log: string;
  index: bigint;
  /** Of a database that was restored, another entry may have the same index. */
  leaf: Hash;
}

export async function newestMappings(sql: Sql): Promise<NewestMapping[]> {
  return await sql<NewestMapping[]>`
    select distinct on (log) log, index, leaf
    from entries
    where kind = 'role_mapping'
    order by log, index desc`;
}

/** The bytes of these entries, in no order. */
export async function mappingBytes(
  sql: Sql,
  newest: readonly NewestMapping[],
): Promise<{ log: string; bytes: Uint8Array }[]> {
  return await sql<{ log: string; bytes: Uint8Array }[]>`
    select log, bytes
    from entries
    join unnest(
      ${plainColumn(newest.map(({ log }) => log))}::text::text[],
      ${plainColumn(newest.map(({ index }) => index))}::text::bigint[]
    ) as newest (log, index) using (log, index)`;
}
