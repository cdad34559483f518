/** A log's tree from its entries alone, so that a proof from tiles can be held against it. */
import type { Hash, Sha256 } from "../../src/core/hash.ts";
import { rootHash } from "../../src/core/merkle.ts";
import type { ReadNode } from "../../src/core/proof.ts";
import { TILE_WIDTH } from "../../src/core/tile.ts";

/** A full bundle's entries are a perfect subtree of this level. */
const BUNDLE_LEVEL = 8;

/**
 * Fed with leaf hashes bundle by bundle. Of each bundle one hash is kept; all of them only of the
 * bundle that is asked for, and of the last one if it is not full.
 */
export class EntryTree {
  readonly #hash: Sha256;
  readonly #bundles: Hash[] = [];
  readonly #leaves = new Map<bigint, readonly Hash[]>();

  constructor(hash: Sha256) {
    this.#hash = hash;
  }

  /** The next bundle. `keep`: nodes inside it will be read. */
  add(leaves: readonly Hash[], keep: boolean): void {
    if (keep || leaves.length < TILE_WIDTH) {
      this.#leaves.set(BigInt(this.#bundles.length), leaves);
    }
    this.#bundles.push(rootHash(leaves, this.#hash));
  }

  /** Throws on a node inside a bundle that was not kept, and on one past the entries. */
  readonly read: ReadNode = ({ level, index }) => {
    const height = level - BUNDLE_LEVEL;
    if (height >= 0) return this.#root(this.#bundles, Number(index), height);
    const first = index << BigInt(level);
    const leaves = this.#leaves.get(first / BigInt(TILE_WIDTH)) ?? [];
    const within = Number(first % BigInt(TILE_WIDTH)) >> level;
    return this.#root(leaves, within, level);
  };

  #root(hashes: readonly Hash[], index: number, height: number): Hash {
    const width = 2 ** height;
    const below = hashes.slice(index * width, (index + 1) * width);
    if (below.length < width) throw new Error("entry tree: a node that was not kept");
    return rootHash(below, this.#hash);
  }
}
