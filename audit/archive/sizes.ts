/** For which sizes there are checkpoints in the archive. */
import type { Source } from "../source.ts";
import type { OpenPiles, Piles } from "../tally/piles.ts";

const PATH = /^checkpoint\/(0|[1-9][0-9]{0,18})$/;
const RECORD_BYTES = 8;
const BLOCK_BITS = 8n;
const PILE_BITS = 16n;
/** Of one pile's sizes there is one record each at most. */
const PILE_BYTES_MAX = RECORD_BYTES << Number(PILE_BITS);

/** The sizes that checkpoints are there for. A second brings at most one, years bring millions. */
export class CheckpointSizes {
  readonly #piles: Piles;
  #loaded = -1;
  #blocks = new Map<bigint, bigint[]>();

  constructor(open: OpenPiles) {
    this.#piles = open(RECORD_BYTES);
  }

  async load(source: Source): Promise<void> {
    const record = new Uint8Array(RECORD_BYTES);
    for await (const path of source.list("checkpoint")) {
      const size = sizeOf(path);
      if (size === undefined) continue;
      new DataView(record.buffer).setBigUint64(0, size);
      this.#piles.add(Number(blockOf(size) >> (PILE_BITS - BLOCK_BITS)), record);
    }
  }

  *descending(): Generator<bigint> {
    for (const pile of this.#piles.numbers().reverse()) {
      yield* this.#read(pile).sort((a, b) => (a < b ? 1 : -1));
    }
  }

  /** The sizes that entries of bundle `block` complete; 0 belongs to the first. */
  ofBlock(block: bigint): bigint[] {
    const pile = Number(block >> (PILE_BITS - BLOCK_BITS));
    if (pile !== this.#loaded) {
      this.#loaded = pile;
      this.#blocks = new Map();
      for (const size of this.#read(pile)) {
        const sizes = this.#blocks.get(blockOf(size));
        if (sizes === undefined) this.#blocks.set(blockOf(size), [size]);
        else sizes.push(size);
      }
    }
    return this.#blocks.get(block) ?? [];
  }

  #read(pile: number): bigint[] {
    const sizes: bigint[] = [];
    for (const part of this.#piles.read(pile, PILE_BYTES_MAX)) {
      const view = new DataView(part.buffer, part.byteOffset, part.byteLength);
      for (let at = 0; at < part.length; at += RECORD_BYTES) sizes.push(view.getBigUint64(at));
    }
    return sizes;
  }
}

/** Of a checkpoint's path; undefined for all other names. */
export function sizeOf(path: string): bigint | undefined {
  const [, digits] = PATH.exec(path) ?? [];
  return digits === undefined ? undefined : BigInt(digits);
}

/** The bundle whose entries complete a size. */
export function blockOf(size: bigint): bigint {
  return size === 0n ? 0n : (size - 1n) >> BLOCK_BITS;
}
