/** C2SP tlog-tiles: paths, and the growing right edge of a log. */
import type { Hash, Sha256 } from "./hash.ts";
import { rootHash } from "./merkle.ts";
import type { Node, ReadNode } from "./proof.ts";
import { concat } from "./text.ts";

/** Hashes of a full tile, and entries of a full bundle. */
export const TILE_WIDTH = 256;
const TILE_BITS = 8n;
const LEVEL_MAX = 63;
const HASH_BYTES = 32;
/** Six groups of digits: more than any tile below 2^63 entries has. */
const PATH =
  /^tile\/(entries|0|[1-9][0-9]?)\/((?:x[0-9]{3}\/){0,5}[0-9]{3})(?:\.p\/([1-9][0-9]{0,2}))?$/;

/** Which tile, and how many hashes of it: 1 ≤ width ≤ 256. */
export interface TileName {
  level: number;
  index: bigint;
  width: number;
}

/** `bytes` are `width` hashes of 32 bytes. */
export interface Tile extends TileName {
  bytes: Uint8Array;
}

/** What a path of the format names: a tile, or a bundle of `width` entries. */
export type TilePath =
  | ({ kind: "tile" } & TileName)
  | { kind: "entries"; index: bigint; width: number };

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

/** Undefined for every text that `tilePath` and `bundlePath` do not write. */
export function parseTilePath(path: string): TilePath | undefined {
  const [, kind = "", groups = "", digits] = PATH.exec(path) ?? [];
  const width = digits === undefined ? TILE_WIDTH : Number(digits);
  const level = kind === "entries" ? 0 : Number(kind);
  if (groups === "" || level > LEVEL_MAX || width > TILE_WIDTH) return undefined;
  const index = BigInt(groups.replaceAll(/[x/]/g, ""));
  // Writing it again refuses groups of leading zeros, and the full width as that of a partial tile.
  if (kind === "entries") {
    return bundlePath(index, width) === path ? { kind, index, width } : undefined;
  }
  return tilePath(level, index, width) === path ? { kind: "tile", level, index, width } : undefined;
}

/**
 * Does a checkpoint of this size imply this tile or bundle? It implies the full ones, and of each level
 * the one partial; narrower ones are those of earlier checkpoints.
 */
export function isImplied(path: TilePath, size: bigint): boolean {
  const level = path.kind === "entries" ? 0 : path.level;
  return path.width === widthAt(level, path.index, size);
}

/** The tiles that hold these nodes, each once, as a checkpoint of this size implies them. */
export function tilesOf(nodes: Iterable<Node>, size: bigint): TileName[] {
  const names = new Map<string, TileName>();
  for (const node of nodes) {
    const { level, index, start, count } = placeOf(node);
    const width = widthAt(level, index, size);
    if (start + count > width) throw new Error("tile: a node past the size");
    names.set(tileKey(level, index), { level, index, width });
  }
  return [...names.values()];
}

/**
 * Reads nodes from tiles. A tile may hold more hashes than its width says; fewer, or a cut one, throw,
 * and so does reading a node that they do not hold.
 */
export function tileNodes(tiles: Iterable<Tile>, hash?: Sha256): ReadNode {
  const byKey = new Map<string, Hash[]>();
  for (const { level, index, width, bytes } of tiles) {
    if (bytes.length % HASH_BYTES !== 0 || bytes.length < width * HASH_BYTES) {
      throw new Error(`tile: ${tilePath(level, index, width)} is cut short`);
    }
    byKey.set(tileKey(level, index), split(bytes));
  }
  return (node) => {
    const { level, index, start, count } = placeOf(node);
    const hashes = byKey.get(tileKey(level, index))?.slice(start, start + count) ?? [];
    if (hashes.length < count) throw new Error(`tile: ${tilePath(level, index)} is not at hand`);
    return rootHash(hashes, hash);
  };
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

/** How many hashes a log of this size has in a tile; 0 or less when it has not come so far. */
function widthAt(level: number, index: bigint, size: bigint): number {
  const hashes = size >> (TILE_BITS * BigInt(level));
  const rest = hashes - index * BigInt(TILE_WIDTH);
  return rest < BigInt(TILE_WIDTH) ? Number(rest) : TILE_WIDTH;
}

/** Where a node lies: its tile, and the hashes there that it is the root of. */
function placeOf({ level, index }: Node): {
  level: number;
  index: bigint;
  start: number;
  count: number;
} {
  const height = level % Number(TILE_BITS);
  const first = index << BigInt(height);
  return {
    level: (level - height) / Number(TILE_BITS),
    index: first >> TILE_BITS,
    start: Number(first % BigInt(TILE_WIDTH)),
    count: 2 ** height,
  };
}

function tileKey(level: number, index: bigint): string {
  return `${level}/${index}`;
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
