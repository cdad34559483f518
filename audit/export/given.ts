/** The rows that a file must have, told from the log's entries under a signed root. */
import type { Entry, EntryOf } from "../../src/core/entry.ts";
import type { Manifest } from "../../src/core/export/manifest.ts";
import type { Row, TableName } from "../../src/core/export/tables.ts";
import { leafHash, type Sha256 } from "../../src/core/hash.ts";
import { TILE_WIDTH } from "../../src/core/tile.ts";
import { readEntry } from "../archive/block.ts";
import type { Proven } from "../fetch/proven.ts";
import { CannotLook } from "../finding.ts";
import type { OpenPiles } from "../tally/piles.ts";
import { Book } from "./book.ts";
import { entryRows } from "./entries.ts";
import { Rated } from "./rated.ts";

interface Giving {
  manifest: Manifest;
  hash: Sha256;
  openPiles: OpenPiles;
  /** Told of entry 0. */
  onLog(entry: EntryOf<"log">): void;
  onProgress?(done: bigint, bundles: bigint): void;
}

/** @throws NotProven, and CannotLook for an entry that cannot be read */
export async function* givenRows(
  proven: Proven,
  { name, ...giving }: Giving & { name: TableName },
): AsyncGenerator<Row> {
  const { hash, manifest } = giving;
  if (name !== "entries") {
    const book = await bookOf(proven, giving);
    yield* book.rows(name, manifest.parameters.month);
    return;
  }
  const from = BigInt(manifest.parameters.from ?? 0);
  const rated = new Rated();
  for await (const { entry, bytes } of entriesOf(proven, giving)) {
    const built = rated.take(entry);
    if (entry.index >= from) yield* entryRows(entry, leafHash(bytes, hash), built);
  }
}

/** All entries that the manifest is as of. @throws as `givenRows` */
export async function bookOf(proven: Proven, giving: Giving): Promise<Book> {
  const rated = new Rated();
  const book = new Book(giving.openPiles);
  for await (const { entry } of entriesOf(proven, giving)) book.take(entry, rated.take(entry));
  return book;
}

async function* entriesOf(
  proven: Proven,
  { manifest, onLog, onProgress }: Giving,
): AsyncGenerator<{ entry: Entry; bytes: Uint8Array }> {
  const size = BigInt(manifest.as_of);
  const width = BigInt(TILE_WIDTH);
  const bundles = (size + width - 1n) / width;
  for (let bundle = 0n; bundle < bundles; bundle += 1n) {
    for (const bytes of await proven.entries(bundle)) {
      const entry = readEntry(bytes);
      if (entry === "malformed") throw new CannotLook("an entry cannot be read: verify says which");
      if (entry.index >= size) return;
      // What a later version has added may bear on the file: nothing is said rather than half of it.
      if (entry.kind === "unknown-kind")
        throw new CannotLook(`entry ${entry.index} is of an unknown kind`);
      if (entry.kind === "log") onLog(entry);
      yield { entry, bytes };
    }
    onProgress?.(bundle + 1n, bundles);
  }
}
