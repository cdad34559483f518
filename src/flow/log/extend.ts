/**
 * The tree's right edge extended by new entries, each read again and proven first: what was altered
 * between append and seal must not get a signature.
 */
import { GENESIS_PREV } from "../../core/entry.ts";
import { type Hash, leafHash, type Sha256 } from "../../core/hash.ts";
import { encodeBase64, encodeUtf8, equal } from "../../core/text.ts";
import { type Edge, grow, TILE_WIDTH, type Tile } from "../../core/tile.ts";
import type { Transaction } from "../../store/connect.ts";
import { readEntries, type StoredEntry } from "../../store/entries.ts";
import type { Seal } from "../../store/seals.ts";
import { logBehind } from "./refusal.ts";

/** The seal as far as this page goes. */
export interface Page extends Seal {
  /** Tiles that the page completed. */
  full: Tile[];
  /**
   * Bytes of the page's entries; of the first page, those of the sealed entries before it that share
   * its bundle stand at the front.
   */
  entries: Uint8Array[];
}

/** Up to 64 MiB where every entry has its largest size, a hundredth of that in practice. */
const PAGE_ENTRIES = 1_024n;
const WIDTH = BigInt(TILE_WIDTH);

/** What the next entry has to go on from. */
interface Link {
  leaf: Hash;
  at: string;
}

/**
 * Pages from the seal up to `size` entries, at least one new entry each.
 *
 * @throws Problem `log-behind` naming, in its cause, the first entry that is missing or altered
 */
export async function* extend(
  tx: Transaction,
  log: string,
  seal: Seal,
  size: bigint,
  hash?: Sha256,
): AsyncGenerator<Page> {
  let { edge } = seal;
  let link: Link | undefined;
  let start = behind(seal.size);
  for (let from = seal.size; from < size; from = edge.size) {
    const to = from + PAGE_ENTRIES < size ? from + PAGE_ENTRIES : size;
    const rows = await readEntries(tx, log, start, to);
    const old = rows.splice(0, Number(from - start));
    if (from === seal.size) link = linkOf(log, seal, old, hash);
    link = prove(log, { rows, from, to }, link, hash);
    const grown = grow(
      edge,
      rows.map((row) => row.leaf),
      hash,
    );
    edge = grown.edge;
    const entries = [...(from % WIDTH === 0n ? [] : old), ...rows].map((row) => row.bytes);
    yield { size: to, leaf: link.leaf, edge, full: grown.full, entries };
    start = to;
  }
}

/** Where sealed entries begin that are needed once more: those of the open bundle, and always the last one. */
function behind(size: bigint): bigint {
  if (size === 0n) return 0n;
  const open = size % WIDTH;
  return size - (open === 0n ? 1n : open);
}

/** What the first new entry goes on from, when the old ones are those that were sealed. */
function linkOf(
  log: string,
  { size, leaf, edge }: Seal,
  rows: readonly StoredEntry[],
  hash: Sha256 | undefined,
): Link {
  if (size === 0n) return { leaf: GENESIS_PREV, at: "" };
  const from = behind(size);
  const link = prove(log, { rows, from, to: size }, undefined, hash);
  const altered = size % WIDTH === 0n ? -1 : rows.findIndex((row, i) => !isLeaf(edge, i, row.leaf));
  const index = altered >= 0 ? from + BigInt(altered) : size - 1n;
  if (altered >= 0 || !equal(link.leaf, leaf)) {
    throw logBehind(`entry ${index} is not the one that was sealed`);
  }
  return link;
}

function isLeaf(edge: Edge, position: number, leaf: Hash): boolean {
  const sealed = edge.levels[0]?.[position];
  return sealed !== undefined && equal(sealed, leaf);
}

/** The last one's link, when rows are all entries from … to−1 and each goes on from the one before. */
function prove(
  log: string,
  { rows, from, to }: { rows: readonly StoredEntry[]; from: bigint; to: bigint },
  before: Link | undefined,
  hash: Sha256 | undefined,
): Link {
  let link = before;
  let index = from;
  for (const row of rows) {
    if (row.index !== index) break;
    assertEntry(log, row, link, hash);
    link = row;
    index += 1n;
  }
  if (index !== to || link === undefined) throw logBehind(`entry ${index} is missing`);
  return link;
}

function assertEntry(
  log: string,
  entry: StoredEntry,
  before: Link | undefined,
  hash: Sha256 | undefined,
): void {
  const linked = before === undefined || (equal(entry.prev, before.leaf) && entry.at >= before.at);
  const proven = linked && isFramed(log, entry) && equal(leafHash(entry.bytes, hash), entry.leaf);
  if (!proven) throw logBehind(`entry ${entry.index} is not as it was appended`);
}

/**
 * Do the bytes say of themselves what the columns say? Canonical order puts `at` first and all other
 * members behind the body, so that both ends are known without parsing what lies between.
 */
function isFramed(log: string, { index, kind, at, prev, bytes }: StoredEntry): boolean {
  const front = encodeUtf8(`{"at":"${at}","body":`);
  const back = encodeUtf8(
    `,"index":"${index}","kind":"${kind}","log":"${log}","prev":"${encodeBase64(prev)}","v":"1"}`,
  );
  return equal(bytes.subarray(0, front.length), front) && equal(bytes.subarray(-back.length), back);
}
