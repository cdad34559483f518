/**
 * One log as its archive has it, read for whoever restores a database from it. Nothing of it is
 * believed before it was held against the root of a signed checkpoint.
 */
import { decodeBundle } from "../../core/bundle.ts";
import { type Hash, leafHash, type Sha256 } from "../../core/hash.ts";
import { rootHash } from "../../core/merkle.ts";
import { equal } from "../../core/text.ts";
import { bundlePath, TILE_WIDTH, tilePath } from "../../core/tile.ts";
import type { Archive } from "../../store/archive.ts";
import { RecoveryError } from "./recovery.ts";

export const WIDTH = BigInt(TILE_WIDTH);
const HASH_BYTES = 32;
/** Files that are asked for before their turn: a bucket answers one after some 20 ms. */
const AHEAD = 16;

export interface Archived {
  archive: Archive;
  log: string;
  hash: Sha256;
}

/** Entries `index`·256 … of the log, `width` of them. */
export interface Block {
  index: bigint;
  width: number;
}

/** Those that hold entries `from` … `to`−1, each as wide as a log of `to` entries has it. */
export function* blocks(from: bigint, to: bigint): Generator<Block> {
  for (let index = from / WIDTH; from < to && index * WIDTH < to; index += 1n) {
    const left = to - index * WIDTH;
    yield { index, width: left < WIDTH ? Number(left) : TILE_WIDTH };
  }
}

/** What `read` gives of each, in their order, and some of them read before their turn. */
export async function* inOrder<T, R>(
  items: Iterable<T>,
  read: (item: T) => Promise<R>,
): AsyncGenerator<{ item: T; value: R }> {
  const waiting: { item: T; value: Promise<R> }[] = [];
  const next = async (): Promise<{ item: T; value: R } | undefined> => {
    const first = waiting.shift();
    return first && { item: first.item, value: await first.value };
  };
  for (const item of items) {
    const value = read(item);
    // It is heard when its turn comes; until then nobody else must stumble over it.
    value.catch(() => undefined);
    waiting.push({ item, value });
    if (waiting.length < AHEAD) continue;
    const first = await next();
    if (first !== undefined) yield first;
  }
  for (let first = await next(); first !== undefined; first = await next()) yield first;
}

/** Leaf hashes of a block from its tile. @throws RecoveryError `archive-altered` */
export async function readLeaves(
  { archive, log }: Archived,
  { index, width }: Block,
): Promise<Hash[]> {
  const bytes = await readWidth(archive, (as) => `${log}/${tilePath(0, index, as)}`, width);
  const path = tilePath(0, index, width);
  if (bytes === undefined) throw new RecoveryError("archive-altered", `${path} is missing`);
  if (bytes.length < width * HASH_BYTES) {
    throw new RecoveryError("archive-altered", `${path} is cut short`);
  }
  return Array.from({ length: width }, (_, i) => bytes.slice(i * HASH_BYTES, (i + 1) * HASH_BYTES));
}

/** Bytes of a block's entries, proven by the root over their leaves. @throws RecoveryError `archive-altered` */
export async function readProven(at: Archived, block: Block, root: Hash): Promise<Uint8Array[]> {
  const { archive, log, hash } = at;
  const { index, width } = block;
  const bytes = await readWidth(archive, (as) => `${log}/${bundlePath(index, as)}`, width);
  const entries = bytes && decodeBundle(bytes)?.slice(0, width);
  const leaves = entries?.map((entry) => leafHash(entry, hash));
  if (entries !== undefined && leaves?.length === width && equal(rootHash(leaves, hash), root)) {
    return entries;
  }
  const told = await readLeaves(at, block);
  const whole = wholeEntries(bytes ?? new Uint8Array());
  const wrong = told.findIndex((leaf, i) => {
    const entry = whole[i];
    return entry === undefined || !equal(leafHash(entry, hash), leaf);
  });
  const first = index * WIDTH + BigInt(Math.max(wrong, 0));
  const what = bytes === undefined ? "is missing" : "is not what was signed";
  throw new RecoveryError(
    "archive-altered",
    `entry ${first} in ${bundlePath(index, width)} ${what}`,
  );
}

/** A partial file may be gone once the full one is there (C2SP tlog-tiles). */
async function readWidth(
  archive: Archive,
  pathOf: (width: number) => string,
  width: number,
): Promise<Uint8Array | undefined> {
  return (await archive.get(pathOf(width))) ?? (await archive.get(pathOf(TILE_WIDTH)));
}

/** Of a bundle that may be cut: the entries before the cut. */
function wholeEntries(bytes: Uint8Array): Uint8Array[] {
  const entries: Uint8Array[] = [];
  let offset = 0;
  while (offset + 2 <= bytes.length) {
    const [high = 0, low = 0] = bytes.subarray(offset, offset + 2);
    const end = offset + 2 + ((high << 8) | low);
    if (end > bytes.length) break;
    entries.push(bytes.subarray(offset + 2, end));
    offset = end;
  }
  return entries;
}
