/** Keys whose heartbeats count no longer: who said them was not to be believed. */
import { decodeEntry } from "../../core/entry.ts";
import type { Sql } from "../../store/connect.ts";
import { readKeys, readRevocations } from "../../store/keys.ts";

/** Index of the `key` entry of each key of the log that was revoked; one that was rotated is none of them. */
export async function readRevoked(sql: Sql, log: string): Promise<ReadonlySet<bigint>> {
  const kids = (await readRevocations(sql, log)).map((bytes) => {
    const entry = decodeEntry(bytes);
    if (typeof entry === "string") throw new Error(`revoked: an entry is ${entry}`);
    if (entry.kind !== "key_revoked") throw new Error("revoked: another kind of entry");
    return entry.body.kid;
  });
  if (kids.length === 0) return new Set();
  const keys = await readKeys(sql, [...new Set(kids)]);
  return new Set(keys.flatMap((key) => (key.log === log ? [key.index] : [])));
}
