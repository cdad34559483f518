/**
 * Records set aside until the walk over the entries is done, then looked at pile by pile: what belongs
 * together lies in one pile, so that memory never grows with the log.
 */

/** Records of one width in numbered piles, of which neither one nor all need to fit into memory. */
export interface Piles {
  add(pile: number, record: Uint8Array): void;
  /** Numbers of the piles that hold something, ascending. */
  numbers(): number[];
  /** The records of a pile in the order they came, in parts of whole records and at most so many bytes. */
  read(pile: number, partBytesMax: number): Iterable<Uint8Array>;
}

/** Makes the piles for records of `width` bytes. */
export type OpenPiles = (width: number) => Piles;

/** Tens of thousands of records, which sorting makes several times as large. */
const SORTED_BYTES_MAX = 1024 * 1024;
/** Of each sorted run while runs are merged: a thousand of them, four gigabytes of one key, take 64 MiB. */
const MERGED_BYTES_MAX = 64 * 1024;

/** Ten million records of 58 bytes make piles of 570 KB. */
const PILES = 1024;

/** The pile of a key that is a hash: uniform by itself. */
export function pileOfHash(hash: Uint8Array): number {
  return (((hash[0] ?? 0) << 8) | (hash[1] ?? 0)) % PILES;
}

/** The pile of a number: Fibonacci hashing spreads runs of neighbours evenly. */
export function pileOfNumber(number: bigint): number {
  return Number(BigInt.asUintN(64, number * 0x9e3779b97f4a7c15n) >> 54n);
}

/** A record in its group: those with the same key, which are the first `keyWidth` bytes. */
export interface Grouped {
  record: Uint8Array;
  first: boolean;
  last: boolean;
}

/** Piles whose records come back group by group, in the order of their bytes. */
export class SortedPiles {
  readonly #open: OpenPiles;
  readonly #piles: Piles;
  readonly #width: number;
  readonly #keyWidth: number;
  readonly #sortedBytesMax: number;

  constructor(
    open: OpenPiles,
    { width, keyWidth }: { width: number; keyWidth: number },
    sortedBytesMax = SORTED_BYTES_MAX,
  ) {
    this.#open = open;
    this.#piles = open(width);
    this.#width = width;
    this.#keyWidth = keyWidth;
    this.#sortedBytesMax = sortedBytesMax;
  }

  add(pile: number, record: Uint8Array): void {
    this.#piles.add(pile, record);
  }

  *records(): Generator<Grouped> {
    for (const pile of this.#piles.numbers()) {
      let before: Uint8Array | undefined;
      let first = true;
      for (const record of this.#sorted(pile)) {
        if (before !== undefined) {
          const last = !startAlike(before, record, this.#keyWidth);
          yield { record: before, first, last };
          first = last;
        }
        before = record;
      }
      if (before !== undefined) yield { record: before, first, last: true };
    }
  }

  /** One key may have a million records, and then all in one pile: each part is sorted, and all merged. */
  *#sorted(pile: number): Generator<Uint8Array> {
    const runs = this.#open(this.#width);
    let run = 0;
    let sorted: Uint8Array[] = [];
    for (const part of this.#piles.read(pile, this.#sortedBytesMax)) {
      for (const record of sorted) runs.add(run, record);
      if (sorted.length > 0) run += 1;
      sorted = sortRecords(part, this.#width);
    }
    if (run === 0) {
      yield* sorted;
      return;
    }
    for (const record of sorted) runs.add(run, record);
    yield* merge(runs, this.#width);
  }
}

/** A part's records in order of their bytes. Keys and indices are big-endian, so theirs as well. */
function sortRecords(part: Uint8Array, width: number): Uint8Array[] {
  const records: Uint8Array[] = [];
  for (let at = 0; at < part.length; at += width) records.push(part.subarray(at, at + width));
  return records.sort(compareBytes);
}

function* merge(runs: Piles, width: number): Generator<Uint8Array> {
  const heads = runs.numbers().flatMap((number) => {
    const rest = recordsOf(runs.read(number, MERGED_BYTES_MAX), width);
    const { value } = rest.next();
    return value === undefined ? [] : [{ record: value, rest }];
  });
  while (heads.length > 0) {
    const least = heads.reduce((a, b) => (compareBytes(b.record, a.record) < 0 ? b : a));
    yield least.record;
    const { value } = least.rest.next();
    if (value === undefined) heads.splice(heads.indexOf(least), 1);
    else least.record = value;
  }
}

function* recordsOf(parts: Iterable<Uint8Array>, width: number): Generator<Uint8Array, undefined> {
  for (const part of parts) {
    for (let at = 0; at < part.length; at += width) yield part.subarray(at, at + width);
  }
}

/** Asked of every record: views of the two would cost more than the comparison. */
function startAlike(a: Uint8Array, b: Uint8Array, width: number): boolean {
  for (let i = 0; i < width; i += 1) if (a[i] !== b[i]) return false;
  return true;
}

/** In the order of their bytes; of two that begin alike the shorter comes first. */
export function compareBytes(a: Uint8Array, b: Uint8Array): number {
  for (let i = 0; i < a.length && i < b.length; i += 1) {
    const difference = (a[i] ?? 0) - (b[i] ?? 0);
    if (difference !== 0) return difference;
  }
  return a.length - b.length;
}
