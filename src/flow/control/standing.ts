/** Entries of financial control that stand before another, for whoever decides about that one. */
import type { MappedRole } from "../../core/control.ts";
import { decodeEntry, type Entry, type EntryOf, type Kind } from "../../core/entry.ts";
import type { Hash } from "../../core/hash.ts";
import type { Sql, Transaction } from "../../store/connect.ts";
import { readEntries } from "../../store/entries.ts";
import { readNewest } from "../../store/registers.ts";

export type Standing<K extends Kind> = EntryOf<K> & { readonly leaf: Hash };

/** The entry at an index, if there is one and it is of this kind. */
export async function standing<K extends Kind>(
  sql: Sql | Transaction,
  log: string,
  kind: K,
  index: bigint,
): Promise<Standing<K> | undefined> {
  const entry = await entryAt(sql, log, index);
  return entry?.kind === kind ? (entry as Standing<K>) : undefined;
}

/** The entry at an index, if there is one that can be read. */
export async function entryAt(
  sql: Sql | Transaction,
  log: string,
  index: bigint,
): Promise<(Entry & { readonly leaf: Hash }) | undefined> {
  const [stored] = await readEntries(sql, log, index, index + 1n);
  if (stored === undefined) return undefined;
  const entry = decodeEntry(stored.bytes);
  return typeof entry === "string" ? undefined : { ...entry, leaf: stored.leaf };
}

/** Who holds which role on a log, or held before an index; undefined: no entry says so. */
export async function newestMapping(
  sql: Sql | Transaction,
  log: string,
  below?: bigint,
): Promise<readonly MappedRole[] | undefined> {
  const found = await readNewest(sql, log, "role_mapping", below);
  if (found === undefined) return undefined;
  const entry = decodeEntry(found.bytes);
  if (typeof entry === "string" || entry.kind !== "role_mapping") {
    throw new Error("role_mapping: another kind of entry");
  }
  return entry.body.grants;
}
