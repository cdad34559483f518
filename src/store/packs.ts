/** Entries of kind `pack`, found by the pack that they are a version of (migrations/0007). */
import { canonical } from "../core/json.ts";
import { encodeUtf8 } from "../core/text.ts";
import type { Sql, Transaction } from "./connect.ts";

/** Which pack of a log. */
export interface PackKey {
  readonly source: string;
  readonly pack_id: string;
}

/** Above every index that an entry can have. */
const ANY_INDEX = 2n ** 63n - 1n;

/** The newest version of a pack, or the newest below an index. */
export async function readPack(
  sql: Sql | Transaction,
  log: string,
  { source, pack_id }: PackKey,
  below: bigint = ANY_INDEX,
): Promise<{ index: bigint; bytes: Uint8Array } | undefined> {
  // As much of an entry as names its pack, so that one function reads both.
  const naming = canonical({ pack_id, purchased_in: "", source, source_version: "" });
  const [newest] = await sql<{ index: bigint; bytes: Uint8Array }[]>`
    select index, bytes
    from entries
    where log = ${log} and kind = 'pack' and entry_pack(bytes) = entry_pack(${encodeUtf8(naming)})
      and index < ${below}
    order by index desc
    limit 1
  `;
  return newest;
}
