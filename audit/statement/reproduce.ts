/** Reads a log for the statement of one of its months: all entries, under the newest checkpoint that a key has signed. */
import type { Sha256 } from "../../src/core/hash.ts";
import { encodeBase64, encodeUtf8 } from "../../src/core/text.ts";
import { readEntry } from "../archive/block.ts";
import { type NewestOptions, newest } from "../fetch/newest.ts";
import { NotProven } from "../fetch/proven.ts";
import { CannotLook } from "../finding.ts";
import type { Source } from "../source.ts";
import { StatementBook } from "./book.ts";
import { readAll, readOne } from "./read.ts";

export interface ReproduceOptions extends NewestOptions {
  month: string;
  hash: Sha256;
  onProgress?(done: bigint, bundles: bigint): void;
}

/**
 * The canonical JSON that the service must have served, and whose hash is in the entry that closed the month. Who signed what in the entries is not looked at:
 * that is what `verify` does.
 *
 * @throws NotProven for what the log is at fault for; CannotLook for a month that is not closed
 */
export async function reproduce(source: Source, options: ReproduceOptions): Promise<string> {
  const { hash, month, openPiles } = options;
  const checkpoint = await newest(source, options);
  if (checkpoint === undefined) throw new CannotLook("there is no checkpoint");
  const book = new StatementBook(month, openPiles);
  await readAll(source, { ...options, checkpoint }, (bytes) => {
    const entry = readEntry(bytes);
    if (entry === "malformed") throw new CannotLook("an entry cannot be read: verify says which");
    // What a later version has added may bear on the month: nothing is said rather than half of it.
    if (entry.kind !== "unknown-kind") book.take(entry);
    else if (!book.isClosed) throw new CannotLook(`entry ${entry.index} is of an unknown kind`);
  });
  for (const index of book.adjusted.keys()) {
    const entry = readEntry(await readOne(source, index, checkpoint.size));
    if (entry === "malformed" || entry.kind !== "usage") {
      throw new CannotLook(`entry ${index} is corrected and is no usage`);
    }
    book.correct(index, entry.body);
  }
  const statement = book.statement();
  if (statement === undefined) throw new CannotLook(`${month} is not closed on this log`);
  if (encodeBase64(hash(encodeUtf8(statement))) !== book.signed) {
    const detail = "month_closed names another statement than the log's entries give";
    throw new NotProven("month-figures", month, detail);
  }
  return statement;
}
