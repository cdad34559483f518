/**
 * The walk over a log's entries: each is in its place, linked to the one before, and under the root of
 * every checkpoint that covers it. What an entry says is for others to judge.
 */
import type { Checkpoint } from "../../src/core/checkpoint.ts";
import { type Entry, GENESIS_PREV } from "../../src/core/entry.ts";
import { type Hash, leafHash, type Sha256 } from "../../src/core/hash.ts";
import { equal } from "../../src/core/text.ts";
import { TILE_WIDTH, tilePath } from "../../src/core/tile.ts";
import type { Findings } from "../finding.ts";
import type { Source } from "../source.ts";
import { align, type UnknownEntry } from "./block.ts";
import type { Checkpoints } from "./checkpoints.ts";
import {
  type BlockFiles,
  compareBundles,
  compareTile,
  entriesOf,
  leavesOf,
  readBlock,
} from "./files.ts";
import { type Filled, Tree } from "./tree.ts";

export interface WalkOptions {
  source: Source;
  log: string;
  /** The largest checkpoint: how far the walk goes. */
  top: Checkpoint;
  hash: Sha256;
  findings: Findings;
  checkpoints: Checkpoints;
}

/** Of a bundle: the entries that can be judged, and how many the checkpoint covers. */
export interface Block {
  entries: (Entry | UnknownEntry)[];
  width: number;
}

/** A leaf whose hash is not settled before the next entry has spoken. */
interface Pending {
  index: bigint;
  /** Of the entry that was found; undefined where there is none. */
  found: Hash | undefined;
  tile: Hash | undefined;
}

/** Stands for an entry that neither bundle nor tile have. */
const NO_LEAF: Hash = new Uint8Array(32);
const WIDTH = BigInt(TILE_WIDTH);

/** Bundle by bundle, in the order of the log. */
export async function* walk(options: WalkOptions): AsyncGenerator<Block> {
  const { source, top } = options;
  const walker = new Walker(options);
  for (let first = 0n; first < top.size; first += WIDTH) {
    const left = top.size - first;
    const width = left < WIDTH ? Number(left) : TILE_WIDTH;
    const files = await readBlock(source, first / WIDTH, width);
    yield { entries: await walker.block(files), width };
  }
  await walker.end();
}

class Walker {
  readonly #options: WalkOptions;
  readonly #tree: Tree;
  readonly #full: Filled[] = [];
  readonly #roots: { size: bigint; root: Hash }[] = [];
  #pending: Pending | undefined;
  #at = "";
  #block = -1n;
  #sizes = new Set<bigint>();

  constructor(options: WalkOptions) {
    this.#options = options;
    this.#tree = new Tree(options.hash);
  }

  async block(files: BlockFiles): Promise<(Entry | UnknownEntry)[]> {
    const { findings, source } = this.#options;
    const first = files.index * WIDTH;
    const entries = entriesOf(files, findings);
    const tile = leavesOf(files);
    const judged: (Entry | UnknownEntry)[] = [];
    align(entries, first, files.width, findings).forEach((found, i) => {
      const index = first + BigInt(i);
      const entry = found?.entry === "malformed" ? undefined : found?.entry;
      const before = this.#settle((leaf) => entry !== undefined && equal(entry.prev, leaf));
      const leaf = found && leafHash(found.bytes, this.#options.hash);
      this.#pending = { index, found: leaf, tile: tile?.[i] };
      if (found === undefined) {
        // Where the whole bundle is missing, that was said once.
        if (files.bundle !== undefined) findings.add("entry-missing", { index }, "there is none");
      } else if (entry === undefined) {
        findings.add("entry-malformed", { index }, "not the canonical bytes of an entry");
      } else if (this.#fits(entry, before)) {
        judged.push(entry);
      }
    });
    await this.#compare();
    await compareBundles(source, files, entries, findings);
    return judged;
  }

  /** The last leaf has nobody after it: the signed root tells whether entry or tile was changed. */
  async end(): Promise<void> {
    const { root } = this.#options.top;
    this.#settle((leaf) => equal(this.#tree.rootWith(leaf), root));
    this.#full.push(...this.#tree.partial());
    await this.#compare();
  }

  /**
   * Decides which hash the tree goes on with for the entry before, and pushes it. Where entry and tile
   * differ, the witness tells which of them was changed; with none, the tile stands in, so that one
   * changed entry is one finding and the root still proves all the others.
   */
  #settle(witness: (leaf: Hash) => boolean): Hash {
    if (this.#pending === undefined) return GENESIS_PREV;
    const { index, found, tile } = this.#pending;
    const { findings } = this.#options;
    let leaf = found ?? tile ?? NO_LEAF;
    if (found !== undefined && tile !== undefined && !equal(found, tile)) {
      if (witness(found) && !witness(tile)) {
        const path = tilePath(0, index / WIDTH);
        findings.add(
          "tile-hash",
          { index, path },
          "the entry is linked to, the tile's hash is not",
        );
      } else {
        leaf = tile;
        findings.add("entry-altered", { index }, "its hash is not the one in the tile");
      }
    }
    this.#push(leaf);
    return leaf;
  }

  #push(leaf: Hash): void {
    const block = this.#tree.size / WIDTH;
    if (block !== this.#block) {
      this.#block = block;
      this.#sizes = new Set(this.#options.checkpoints.sizesOf(block));
      if (this.#sizes.has(0n)) this.#roots.push({ size: 0n, root: this.#tree.root() });
    }
    this.#full.push(...this.#tree.push(leaf));
    const { size } = this.#tree;
    if (this.#sizes.has(size)) this.#roots.push({ size, root: this.#tree.root() });
  }

  /** Whether the entry is one of this log; what is wrong with its place is said. */
  #fits(entry: Entry | UnknownEntry, before: Hash): boolean {
    const { findings, log } = this.#options;
    const { at, index, kind } = entry;
    if (!equal(entry.prev, before)) {
      findings.add("entry-link", { index }, "its prev is not the hash of the entry before");
    }
    if (entry.log !== log) {
      findings.add("entry-foreign", { index }, `an entry of log ${entry.log}`);
      return false;
    }
    if (at < this.#at) findings.add("entry-time", { index }, `${at} after ${this.#at}`);
    else this.#at = at;
    if ((kind === "log") === (index === 0n)) return true;
    findings.add("log-misplaced", { index }, `an entry of kind ${kind}`);
    return false;
  }

  async #compare(): Promise<void> {
    const { checkpoints, findings, source } = this.#options;
    for (const { size, root } of this.#roots.splice(0)) await checkpoints.compareRoot(size, root);
    for (const tile of this.#full.splice(0)) await compareTile(source, tile, findings);
  }
}
