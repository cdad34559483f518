/** Sums by what a file's rows are told apart by, in the order of its rows, whatever there is of them. */
import { type OpenPiles, SortedPiles } from "../tally/piles.ts";
import { getAmount, setAmount } from "../tally/record.ts";

/** Bytes of each part of a key. Numbers are big-endian and none is below zero: bytes are in their order. */
const BYTES = {
  account: 4,
  day: 4,
  machine: 4,
  namespace: 8,
  project: 8,
  runner: 8,
  subscription: 4,
  tracking: 1,
  usage_month: 4,
} as const;
export type Part = keyof typeof BYTES;
export type Key<P extends Part> = Readonly<Record<P, bigint>>;

export interface Sum<P extends Part> {
  key: Key<P>;
  /** Of the entries that are in it, the last. */
  last: bigint;
  amounts: bigint[];
}

const INDEX_BYTES = 8;
const AMOUNT_BYTES = 16;

export class Fold<P extends Part> {
  readonly #parts: readonly P[];
  readonly #piles: SortedPiles;
  readonly #keyWidth: number;
  readonly #amounts: number;
  readonly #pileOf: (key: Key<P>) => number;
  readonly #record: Uint8Array;
  readonly #view: DataView;

  /**
   * @param parts in the order in which rows are sorted by them
   * @param amounts how many are summed
   * @param pileOf a number below 2^53 that never falls from one key to the next: piles are sorted one by one
   */
  constructor(
    open: OpenPiles,
    {
      amounts,
      parts,
      pileOf,
    }: { parts: readonly P[]; amounts: number; pileOf: (key: Key<P>) => number },
  ) {
    this.#parts = parts;
    this.#amounts = amounts;
    this.#pileOf = pileOf;
    this.#keyWidth = parts.reduce((width, part) => width + BYTES[part], 0);
    const width = this.#keyWidth + INDEX_BYTES + amounts * AMOUNT_BYTES;
    this.#piles = new SortedPiles(open, { width, keyWidth: this.#keyWidth });
    this.#record = new Uint8Array(width);
    this.#view = new DataView(this.#record.buffer);
  }

  add(key: Key<P>, index: bigint, amounts: readonly bigint[]): void {
    let at = 0;
    for (const part of this.#parts) {
      if (BYTES[part] === 8) this.#view.setBigUint64(at, key[part]);
      else if (BYTES[part] === 4) this.#view.setUint32(at, Number(key[part]));
      else this.#view.setUint8(at, Number(key[part]));
      at += BYTES[part];
    }
    this.#view.setBigUint64(at, index);
    at += INDEX_BYTES;
    for (const amount of amounts) {
      setAmount(this.#view, at, amount);
      at += AMOUNT_BYTES;
    }
    this.#piles.add(this.#pileOf(key), this.#record);
  }

  *sums(): Generator<Sum<P>> {
    let amounts: bigint[] = [];
    for (const { record, first, last } of this.#piles.records()) {
      const view = new DataView(record.buffer, record.byteOffset, record.byteLength);
      const start = this.#keyWidth + INDEX_BYTES;
      if (first) amounts = Array.from({ length: this.#amounts }, () => 0n);
      for (let i = 0; i < this.#amounts; i += 1) {
        amounts[i] = (amounts[i] ?? 0n) + getAmount(view, start + i * AMOUNT_BYTES);
      }
      // Indices follow the key, so that the last of a group has the highest.
      if (last) yield { key: this.#keyOf(view), last: view.getBigUint64(this.#keyWidth), amounts };
    }
  }

  #keyOf(view: DataView): Key<P> {
    let at = 0;
    const read = this.#parts.map((part) => {
      const bytes = BYTES[part];
      const value = bytes === 8 ? view.getBigUint64(at) : smallAt(view, at, bytes);
      at += bytes;
      return [part, value];
    });
    return Object.fromEntries(read) as Key<P>;
  }
}

function smallAt(view: DataView, at: number, bytes: 1 | 4): bigint {
  return BigInt(bytes === 4 ? view.getUint32(at) : view.getUint8(at));
}
