/**
 * The walk over a log's entries: each is in its place, linked to the one before, and under the root of
 * every checkpoint that covers it. What an entry says is for others to judge.
 */
import type { Checkpoint } from "../../src/core/checkpoint.ts";
import { type EntryOf, GENESIS_PREV } from "../../src/core/entry.ts";
import type { Hash, Sha256 } from "../../src/core/hash.ts";
import { equal } from "../../src/core/text.ts";
import { bundlePath, TILE_WIDTH, tilePath } from "../../src/core/tile.ts";
import type { Findings } from "../finding.ts";
import { hear } from "../hearing.ts";
import type { Reading } from "../prefix/statement.ts";
import { type Bundle, unpackBundle } from "../reading/bundle.ts";
import type { Reader } from "../reading/reader.ts";
import type { Source } from "../source.ts";
import type { OpenPiles } from "../tally/piles.ts";
import { ReadAhead } from "./ahead.ts";
import { align, type ReadEntry, type UnknownEntry } from "./block.ts";
import type { Checkpoints } from "./checkpoints.ts";
import {
  type BlockFiles,
  blocksAfter,
  compareBundles,
  compareTile,
  entriesOf,
  leavesOf,
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
  openPiles: OpenPiles;
  reader: Reader;
}

/** Of a bundle: the entries that can be judged, and how many the checkpoint covers. */
export interface Block {
  entries: Judged[];
  width: number;
}

/** An entry in its place, the hash of its bytes, and what an agent says by it. */
export interface Judged {
  entry: ReadEntry | UnknownEntry;
  leaf: Hash;
  said: Reading | undefined;
}

/** A leaf whose hash is not settled before the next entry has spoken. */
interface Pending {
  index: bigint;
  /** Of the entry that was found; undefined where there is none. */
  found: Hash | undefined;
  tile: Hash | undefined;
  /** The entry, where it is about a key of the log's own and in its place. */
  logKey: EntryOf<"log_key"> | undefined;
}

/** Stands for an entry that neither bundle nor tile have. */
const NO_LEAF: Hash = new Uint8Array(32);
const WIDTH = BigInt(TILE_WIDTH);

/** Bundle by bundle, in the order of the log, and no further than there is something to read. */
export async function* walk(options: WalkOptions): AsyncGenerator<Block> {
  const { reader, top } = options;
  const walker = new Walker(options);
  let next = 0n;
  for await (const { bundle, files } of hear(blocksOf(options), reader)) {
    if (files.index > next) await walker.gap(next, files.index * WIDTH);
    const packed = await bundle;
    const read = packed && unpackBundle(packed);
    yield { entries: await walker.block(files, read), width: files.width };
    next = files.index + 1n;
  }
  if (next * WIDTH < top.size) await walker.gap(next, top.size);
  await walker.end();
}

/** All blocks of which there is a bundle or a tile. */
async function* blocksOf({ openPiles, source, top }: WalkOptions): AsyncGenerator<BlockFiles> {
  const blocks = new ReadAhead(source, top.size);
  let later: Iterator<bigint> | undefined;
  let index: bigint | undefined = 0n;
  while (index !== undefined && index < blocks.end) {
    const files = await blocks.read(index);
    if (files.bundle !== undefined || files.tile !== undefined) {
      yield files;
      index += 1n;
    } else {
      later ??= await blocksAfter(source, index, openPiles);
      index = nextOf(later, index);
    }
  }
}

/** The smallest above `index`, of numbers that ascend. */
function nextOf(numbers: Iterator<bigint>, index: bigint): bigint | undefined {
  for (;;) {
    const { done, value } = numbers.next();
    if (done) return undefined;
    if (value > index) return value;
  }
}

function min(a: bigint, b: bigint): bigint {
  return a < b ? a : b;
}

class Walker {
  readonly #options: WalkOptions;
  readonly #tree: Tree;
  readonly #full: Filled[] = [];
  readonly #roots: { size: bigint; root: Hash }[] = [];
  #pending: Pending | undefined;
  #at = "";
  #block = -1n;
  /** Whether all leaves so far are known, and so the tree over them. */
  #whole = true;
  #sizes = new Set<bigint>();

  constructor(options: WalkOptions) {
    this.#options = options;
    this.#tree = new Tree(options.hash);
  }

  async block(files: BlockFiles, bundle: Bundle | undefined): Promise<Judged[]> {
    const { findings, source } = this.#options;
    const first = files.index * WIDTH;
    const tile = leavesOf(files);
    const judged: Judged[] = [];
    align(entriesOf(files, bundle, findings), first, files.width, findings).forEach((found, i) => {
      const index = first + BigInt(i);
      const entry = found?.entry === "malformed" ? undefined : found?.entry;
      const before = this.#settle((leaf) => entry !== undefined && equal(entry.prev, leaf));
      this.#pending = { index, found: found?.leaf, tile: tile?.[i], logKey: undefined };
      if (found === undefined) {
        // Where the whole bundle is missing, that was said once.
        if (files.bundle !== undefined) findings.add("entry-missing", { index }, "there is none");
      } else if (entry === undefined) {
        findings.add("entry-malformed", { index }, "not the canonical bytes of an entry");
      } else if (this.#fits(entry, before)) {
        if (entry.kind === "log_key") this.#pending.logKey = entry;
        judged.push({ entry, leaf: found.leaf, said: found.said });
      }
    });
    await this.#compare();
    await compareBundles(source, files, findings);
    return judged;
  }

  /**
   * From bundle `index` up to entry `end` there is nothing to take leaves from: what comes after them is
   * judged without the tree.
   */
  async gap(index: bigint, end: bigint): Promise<void> {
    const first = index * WIDTH;
    const where = { index: first, path: bundlePath(index, Number(min(WIDTH, end - first))) };
    const detail = `neither bundles nor tiles of entries ${first} to ${end - 1n}`;
    this.#options.findings.add("bundle-missing", where, detail);
    this.#settle(() => false);
    this.#pending = undefined;
    await this.#compare();
    this.#whole = false;
  }

  /** The last leaf has nobody after it: the signed root tells whether entry or tile was changed. */
  async end(): Promise<void> {
    const { root } = this.#options.top;
    this.#settle((leaf) => equal(this.#tree.rootWith(leaf), root));
    if (this.#whole) this.#full.push(...this.#tree.partial());
    await this.#compare();
  }

  /**
   * Decides which hash the tree goes on with for the entry before, and pushes it. Where entry and tile
   * differ, the witness tells which of them was changed; with none, the tile stands in, so that one
   * changed entry is one finding and the root still proves all the others. Undefined after a gap.
   */
  #settle(witness: (leaf: Hash) => boolean): Hash | undefined {
    if (this.#pending === undefined) return this.#whole ? GENESIS_PREV : undefined;
    const { index, found, logKey, tile } = this.#pending;
    const { checkpoints, findings } = this.#options;
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
    // An entry that is not the tree's own is under no root, whatever the root proves.
    if (logKey !== undefined && leaf === found) checkpoints.note(logKey);
    if (this.#whole) this.#push(leaf);
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
  #fits(entry: ReadEntry | UnknownEntry, before: Hash | undefined): boolean {
    const { findings, log } = this.#options;
    const { at, index, kind } = entry;
    if (before !== undefined && !equal(entry.prev, before)) {
      findings.add("entry-link", { index }, "its prev is not the hash of the entry before");
    }
    if (entry.log !== log) {
      findings.add("entry-foreign", { index }, `an entry of log ${entry.log}`);
      return false;
    }
    // Held to the entry before alone, so that one instant of the future is not found of all that follow.
    if (at < this.#at) findings.add("entry-time", { index }, `${at} after ${this.#at}`);
    this.#at = at;
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
