/** The log's Merkle tree, grown again from the leaves alone (RFC 6962 §2.1, C2SP tlog-tiles). */
import { type Hash, nodeHash, type Sha256 } from "../../src/core/hash.ts";
import { foldPeaks } from "../../src/core/merkle.ts";
import { TILE_WIDTH } from "../../src/core/tile.ts";

/** Tile `index` of `level`, as far as the tree has filled it. */
export interface Filled {
  level: number;
  index: bigint;
  hashes: readonly Hash[];
}

const TILE_HEIGHT = 8;

export class Tree {
  readonly #hash: Sha256;
  #size = 0n;
  /** Roots of the perfect subtrees from left to right, one for each one-bit of the size. */
  readonly #peaks: Hash[] = [];
  /** Hashes of each level's unfinished tile. */
  readonly #levels: Hash[][] = [];

  constructor(hash: Sha256) {
    this.#hash = hash;
  }

  get size(): bigint {
    return this.#size;
  }

  /** The tiles that this leaf completes, lowest level first. */
  push(leaf: Hash): Filled[] {
    const full: Filled[] = [];
    let node = leaf;
    this.#collect(0, node, full);
    let height = 0;
    for (let bits = this.#size; bits & 1n; bits >>= 1n) {
      node = nodeHash(this.#peaks.pop() ?? node, node, this.#hash);
      height += 1;
      if (height % TILE_HEIGHT === 0) this.#collect(height / TILE_HEIGHT, node, full);
    }
    this.#peaks.push(node);
    this.#size += 1n;
    return full;
  }

  root(): Hash {
    return foldPeaks(this.#peaks, this.#hash);
  }

  /** The root that one more leaf would give: a leaf is a peak of its own, until it is paired. */
  rootWith(leaf: Hash): Hash {
    return foldPeaks([...this.#peaks, leaf], this.#hash);
  }

  /** What is left at the end: the partial tiles of this size. */
  partial(): Filled[] {
    return this.#levels.flatMap((hashes, level) =>
      hashes.length === 0 ? [] : [{ level, index: this.#size >> shift(level), hashes }],
    );
  }

  #collect(level: number, node: Hash, full: Filled[]): void {
    const hashes = this.#levels[level] ?? [];
    this.#levels[level] = hashes;
    hashes.push(node);
    if (hashes.length < TILE_WIDTH) return;
    full.push({ level, index: this.#size >> shift(level), hashes });
    this.#levels[level] = [];
  }
}

/** log2 of how many entries a full tile of this level stands for. */
function shift(level: number): bigint {
  return BigInt(TILE_HEIGHT * (level + 1));
}
