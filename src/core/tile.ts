/** C2SP tlog-tiles: paths, and the growing right edge of a log. */
import type { Hash, Sha256 } from "./hash.ts";
import { rootHash } from "./merkle.ts";
import { concat } from "./text.ts";

/** Hashes of a full tile, and entries of a full bundle. */
export const TILE_WIDTH = 256;
const TILE_BITS = 8n;
const LEVEL_MAX = 63;
const HASH_BYTES = 32;

/** `bytes` are `width` hashes of 32 bytes, 1 ≤ width ≤ 256. */
export interface Tile {
  level: number;
  index: bigint;
  width: number;
  bytes: Uint8Array;
}

/**
 * All that growing and signing a log need of it: at most 255 hashes of each level. `levels[l]` holds
 * those of its incomplete tile, ⌊size / 256^l⌋ mod 256 of them; the last level is never empty.
 */
export interface Edge {
  readonly size: bigint;
  readonly levels: readonly (readonly Hash[])[];
}

export const EMPTY_EDGE: Edge = { size: 0n, levels: [] };

/** `tile/0/x001/x234/067`; with a width below 256, the partial tile `….p/8`. */
export function tilePath(level: number, index: bigint, width = TILE_WIDTH): string {
  if (level < 0 || level > LEVEL_MAX) throw new Error("tile: no such level");
  return `tile/${level}/${indexPath(index, width)}`;
}

/** `tile/entries/x001/x234/067`; with a width below 256, the partial bundle `….p/8`. */
export function bundlePath(index: bigint, width = TILE_WIDTH): string {
  return `tile/entries/${indexPath(index, width)}`;
}

/**
 * The edge after these leaf hashes, and the tiles that they completed, in the order of completion.
 * Costs as much as there are leaves, whatever the size of the log; the given edge stays as it is.
 */
export function grow(
  edge: Edge,
  leaves: readonly Hash[],
  hash?: Sha256,
): { edge: Edge; full: Tile[] } {
  const levels = edge.levels.map((hashes) => [...hashes]);
  const full: Tile[] = [];
  let size = edge.size;
  for (const leaf of leaves) {
    size += 1n;
    let carry: Hash | undefined = leaf;
    for (let level = 0; carry !== undefined; level++) {
      const hashes: Hash[] = levels[level] ?? [];
      levels[level] = hashes;
      hashes.push(carry);
      if (hashes.length < TILE_WIDTH) break;
      full.push(tile(level, tileIndex(size, level) - 1n, hashes));
      levels[level] = [];
      carry = rootHash(hashes, hash);
    }
  }
  return { edge: { size, levels }, full };
}

/** The partial tiles that a checkpoint of this size implies, lowest level first; none is empty. */
export function partialTiles(edge: Edge): Tile[] {
  return edge.levels.flatMap((hashes, level) =>
    hashes.length === 0 ? [] : [tile(level, tileIndex(edge.size, level), hashes)],
  );
}

/** MTH of the whole log (RFC 6962 §2.1). */
export function edgeRoot(edge: Edge, hash?: Sha256): Hash {
  let below: Hash[] = []; // the root of what the lower levels hold, if they hold anything
  for (const hashes of edge.levels) {
    const nodes = [...hashes, ...below];
    if (nodes.length > 0) below = [rootHash(nodes, hash)];
  }
  return rootHash(below, hash);
}

/** For storage: the size as uint64 big-endian, then the hashes, lowest level first. */
export function encodeEdge(edge: Edge): Uint8Array {
  const size = new Uint8Array(8);
  new DataView(size.buffer).setBigUint64(0, edge.size);
  return concat(size, ...edge.levels.flat());
}

/** Throws unless the bytes are an edge's: a store that gives back others is broken. */
export function decodeEdge(bytes: Uint8Array): Edge {
  if (bytes.length < 8) throw new Error("edge: cut short");
  const size = new DataView(bytes.buffer, bytes.byteOffset).getBigUint64(0);
  const levels: Hash[][] = [];
  let offset = 8;
  for (let rest = size; rest > 0n; rest >>= TILE_BITS) {
    const width = Number(rest % BigInt(TILE_WIDTH));
    const end = offset + width * HASH_BYTES;
    levels.push(split(bytes.slice(offset, end)));
    offset = end;
  }
  if (offset !== bytes.length) throw new Error("edge: not as many hashes as its size says");
  return { size, levels };
}

function indexPath(index: bigint, width: number): string {
  if (index < 0n) throw new Error("tile: no such index");
  if (width < 1 || width > TILE_WIDTH) throw new Error("tile: no such width");
  const groups = [String(index % 1000n).padStart(3, "0")];
  for (let rest = index / 1000n; rest > 0n; rest /= 1000n) {
    groups.unshift(`x${String(rest % 1000n).padStart(3, "0")}`);
  }
  return `${groups.join("/")}${width < TILE_WIDTH ? `.p/${width}` : ""}`;
}

/** Index of the tile at `level` that the next hash of a log of this size goes to. */
function tileIndex(size: bigint, level: number): bigint {
  return size >> (TILE_BITS * BigInt(level + 1));
}

function tile(level: number, index: bigint, hashes: readonly Hash[]): Tile {
  return { level, index, width: hashes.length, bytes: concat(...hashes) };
}

function split(bytes: Uint8Array): Hash[] {
  return Array.from({ length: bytes.length / HASH_BYTES }, (_, i) =>
    bytes.subarray(i * HASH_BYTES, (i + 1) * HASH_BYTES),
  );
}
