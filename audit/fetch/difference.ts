/** Two copies of one log: where they part, and whether each is what its own checkpoint says. */
import { type Hash, leafHash, type Sha256 } from "../../src/core/hash.ts";
import { equal } from "../../src/core/text.ts";
import { TILE_WIDTH } from "../../src/core/tile.ts";
import { ReadAhead } from "../archive/ahead.ts";
import { splitBundle } from "../archive/block.ts";
import type { OpenedCheckpoint } from "../archive/checkpoints.ts";
import { Tree } from "../archive/tree.ts";
import { CannotLook } from "../finding.ts";
import type { Source } from "../source.ts";

export interface Copy {
  name: string;
  source: Source;
  checkpoint: OpenedCheckpoint;
}

export interface Difference {
  /** Of the first entry that is not the same in both. */
  index: bigint | undefined;
  /** Copies whose entries do not give the root that was signed over them. */
  unsigned: Copy[];
}

/** One copy's entries, and the tree over them, as far as its checkpoint goes. */
class Entries {
  readonly copy: Copy;
  readonly #ahead: ReadAhead;
  readonly #tree: Tree;
  readonly #hash: Sha256;

  constructor(copy: Copy, hash: Sha256) {
    this.copy = copy;
    this.#ahead = new ReadAhead(copy.source, copy.checkpoint.size);
    this.#tree = new Tree(hash);
    this.#hash = hash;
  }

  get bundles(): bigint {
    return this.#ahead.end;
  }

  get root(): Hash {
    return this.#tree.root();
  }

  /** The leaf hashes of a bundle, the tree grown by them; none past the last bundle. */
  async leaves(index: bigint): Promise<Hash[]> {
    if (index >= this.bundles) return [];
    const { bundle, width } = await this.#ahead.read(index);
    const entries = bundle === undefined ? [] : splitBundle(bundle.bytes).entries.slice(0, width);
    if (entries.length < width) {
      const first = index * BigInt(TILE_WIDTH) + BigInt(entries.length);
      throw new CannotLook(`${this.copy.name} has no entry ${first}: it cannot be compared`);
    }
    const leaves = entries.map((entry) => leafHash(entry, this.#hash));
    for (const leaf of leaves) this.#tree.push(leaf);
    return leaves;
  }
}

/** Reads both to their ends: a difference proves a split view only if both signed what they show. */
export async function difference(a: Copy, b: Copy, hash: Sha256): Promise<Difference> {
  const [shorter, longer] = a.checkpoint.size > b.checkpoint.size ? [b, a] : [a, b];
  const [short, long] = [new Entries(shorter, hash), new Entries(longer, hash)];
  let index: bigint | undefined;
  for (let bundle = 0n; bundle < long.bundles; bundle += 1n) {
    const [some, all] = await Promise.all([short.leaves(bundle), long.leaves(bundle)]);
    // Where the shorter has ended, the other goes on, and that is no difference.
    const at = some.findIndex((leaf, i) => !equal(leaf, all[i] ?? NOTHING));
    if (at >= 0) index ??= bundle * BigInt(TILE_WIDTH) + BigInt(at);
  }
  const unsigned = [short, long].filter(({ copy, root }) => !equal(root, copy.checkpoint.root));
  return { index, unsigned: unsigned.map(({ copy }) => copy) };
}

const NOTHING = new Uint8Array();
