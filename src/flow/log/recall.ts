/** A log's prefix, read back from its entries and then kept up with them. */
import { decodeEntry, type Entry } from "../../core/entry.ts";
import { Prefix } from "../../core/prefix.ts";
import type { Sql, Transaction } from "../../store/connect.ts";
import { readControl, readEntry } from "../../store/entries.ts";

/** Some hundred kilobytes at a time, whatever the log has. */
const PAGE = 500;

/** The prefix of entry 0 alone, of a log that exists. */
export async function recall(sql: Sql | Transaction, log: string): Promise<Prefix> {
  const entry = decoded((await readEntry(sql, log, 0n)).bytes);
  if (entry.kind !== "log") throw new Error("recall: entry 0 is no log");
  return new Prefix(entry);
}

/** Applies what is new up to and with the entry at `upTo`. */
export async function catchUp(sql: Sql | Transaction, prefix: Prefix, upTo: bigint): Promise<void> {
  while (prefix.controlIndex < upTo) {
    const range = { after: prefix.controlIndex, upTo, limit: PAGE };
    const page = await readControl(sql, prefix.id, range);
    if (page.length === 0) throw new Error("recall: the head names an entry that is not there");
    for (const bytes of page) prefix.apply(decoded(bytes));
  }
}

function decoded(bytes: Uint8Array): Entry {
  const entry = decodeEntry(bytes);
  if (typeof entry === "string") throw new Error(`recall: an entry is ${entry}`);
  return entry;
}
