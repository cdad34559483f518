/**
 * Tiles and bundles of which each is proven under one signed root before anybody sees it: the right
 * edge by the root itself, a full tile by the hash of it in the tile above, a bundle by its leaves.
 */
import { encodeBundle } from "../../src/core/bundle.ts";
import type { Checkpoint } from "../../src/core/checkpoint.ts";
import { type Hash, leafHash, type Sha256 } from "../../src/core/hash.ts";
import { rootHash } from "../../src/core/merkle.ts";
import { rootNodes, treeRoot } from "../../src/core/proof.ts";
import { equal } from "../../src/core/text.ts";
import {
  bundlePath,
  TILE_WIDTH,
  type Tile,
  tileNodes,
  tilePath,
  tilesOf,
} from "../../src/core/tile.ts";
import { splitBundle } from "../archive/block.ts";
import { readWidth } from "../archive/files.ts";
import { CannotLook, type FindingCode } from "../finding.ts";
import { Recent } from "../recent.ts";
import type { Source } from "../source.ts";

/** What a source had, or had not, is not what the signed root says. */
export class NotProven extends Error {
  override readonly name = "NotProven";
  readonly code: FindingCode;
  readonly path: string;
  readonly index: bigint | undefined;

  constructor(code: FindingCode, path: string, detail: string, index?: bigint) {
    super(detail);
    this.code = code;
    this.path = path;
    this.index = index;
  }
}

export interface ProvenOptions {
  /** Asked in this order: the first whose answer is proven counts. */
  sources: readonly Source[];
  checkpoint: Checkpoint;
  hash: Sha256;
  /** Told of each file, under the name that the checkpoint implies, and by which source it came. */
  onProven?(path: string, bytes: Uint8Array, source: Source): Promise<void>;
}

const HASH_BYTES = 32;
/** 8 KiB each. Who goes through a log in its order needs a few of each level at a time. */
const TILES_KEPT = 128;

export class Proven {
  readonly #options: ProvenOptions;
  readonly #edge = new Map<string, Tile>();
  readonly #tiles = new Recent<Tile>(TILES_KEPT);

  private constructor(options: ProvenOptions) {
    this.#options = options;
  }

  /** Throws `NotProven` unless the edge gives the checkpoint's root. */
  static async open(options: ProvenOptions): Promise<Proven> {
    const proven = new Proven(options);
    await proven.#readEdge();
    return proven;
  }

  /** As wide as the checkpoint implies; throws `NotProven`. */
  async tile(level: number, index: bigint): Promise<Tile> {
    const key = tilePath(level, index);
    return this.#edge.get(key) ?? (await this.#tiles.get(key, () => this.#readFull(level, index)));
  }

  /** The bundle's entries, as many as the checkpoint covers; throws `NotProven`. */
  async entries(index: bigint): Promise<Uint8Array[]> {
    const { bytes, width } = await this.tile(0, index);
    const path = bundlePath(index, width);
    const find = async (source: Source): Promise<Uint8Array[]> => {
      const file = await readWidth(source, (as) => bundlePath(index, as), width);
      if (file === undefined) throw new NotProven("bundle-missing", path, "there is no such file");
      const held = splitBundle(file.bytes).entries.slice(0, width);
      const wrong = held.findIndex((entry, i) => !equal(this.#leaf(entry), hashAt(bytes, i)));
      const at = index * BigInt(TILE_WIDTH) + BigInt(Math.max(wrong, 0));
      if (wrong >= 0) throw new NotProven("entry-altered", path, "not what the root covers", at);
      if (held.length === width) return held;
      throw new NotProven("bundle-width", path, `${held.length} entries, not ${width}`);
    };
    const { found, source } = await this.#first(find);
    await this.#options.onProven?.(path, encodeBundle(found), source);
    return found;
  }

  /** Of the tree when it had this size, which must not be above the checkpoint's; throws `NotProven`. */
  async root(size: bigint): Promise<Hash> {
    const { checkpoint, hash } = this.#options;
    const names = tilesOf(rootNodes(size), checkpoint.size);
    const tiles = await Promise.all(names.map(({ level, index }) => this.tile(level, index)));
    return treeRoot(size, tileNodes(tiles, hash), hash);
  }

  async #readEdge(): Promise<void> {
    const { checkpoint, hash, onProven } = this.#options;
    const { root, size } = checkpoint;
    const names = tilesOf(rootNodes(size), size);
    const find = async (source: Source): Promise<Tile[]> => {
      const tiles = await Promise.all(names.map((name) => readTile(source, name)));
      if (equal(treeRoot(size, tileNodes(tiles, hash), hash), root)) return tiles;
      throw new NotProven("checkpoint-root", `checkpoint/${size}`, "the tiles give another root");
    };
    const { found, source } = await this.#first(find);
    for (const tile of found) {
      const { bytes, index, level, width } = tile;
      if (width < TILE_WIDTH) this.#edge.set(tilePath(level, index), tile);
      await onProven?.(tilePath(level, index, width), bytes, source);
    }
  }

  async #readFull(level: number, index: bigint): Promise<Tile> {
    const { hash, onProven } = this.#options;
    const above = await this.tile(level + 1, index / BigInt(TILE_WIDTH));
    const expected = hashAt(above.bytes, Number(index % BigInt(TILE_WIDTH)));
    const find = async (source: Source): Promise<Tile> => {
      const tile = await readTile(source, { level, index, width: TILE_WIDTH });
      const hashes = Array.from({ length: TILE_WIDTH }, (_, i) => hashAt(tile.bytes, i));
      if (equal(rootHash(hashes, hash), expected)) return tile;
      throw new NotProven("tile-hash", tilePath(level, index), "not what the tile above covers");
    };
    const { found, source } = await this.#first(find);
    await onProven?.(tilePath(level, index), found.bytes, source);
    return found;
  }

  /**
   * What the first source has that proves. If none does, the fault of the last one; or the failure of one
   * that could not be looked at, for it may have had it.
   */
  async #first<T>(find: (source: Source) => Promise<T>): Promise<{ found: T; source: Source }> {
    let fault: unknown = new Error("proven: no source");
    for (const source of this.#options.sources) {
      try {
        return { found: await find(source), source };
      } catch (error) {
        if (!(error instanceof NotProven || error instanceof CannotLook)) throw error;
        if (!(fault instanceof CannotLook)) fault = error;
      }
    }
    throw fault;
  }

  #leaf(entry: Uint8Array): Hash {
    return leafHash(entry, this.#options.hash);
  }
}

async function readTile(
  source: Source,
  { level, index, width }: { level: number; index: bigint; width: number },
): Promise<Tile> {
  const path = tilePath(level, index, width);
  const file = await readWidth(source, (as) => tilePath(level, index, as), width);
  if (file === undefined) throw new NotProven("tile-missing", path, "there is no such file");
  const detail = `${file.bytes.length} bytes, not ${file.width * HASH_BYTES}`;
  if (file.bytes.length !== file.width * HASH_BYTES) {
    throw new NotProven("tile-width", file.path, detail);
  }
  return { level, index, width, bytes: file.bytes.subarray(0, width * HASH_BYTES) };
}

function hashAt(tile: Uint8Array, i: number): Uint8Array {
  return tile.subarray(i * HASH_BYTES, (i + 1) * HASH_BYTES);
}
