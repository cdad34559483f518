/**
 * Records set aside until the walk over the entries is done, then looked at pile by pile: what belongs
 * together lies in one pile, so that memory never grows with the log.
 */
import { equal } from "../../src/core/text.ts";

/** Records of one width in numbered piles. A pile must fit into memory; all of them need not. */
export interface Piles {
  add(pile: number, record: Uint8Array): void;
  /** Numbers of the piles that hold something, ascending. */
  numbers(): number[];
  /** The records of a pile, one after another, in the order they came. */
  read(pile: number): Uint8Array;
}

/** Makes the piles for records of `width` bytes. */
export type OpenPiles = (width: number) => Piles;

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

/** A pile's records in order of their bytes. Keys and indices are big-endian, so theirs as well. */
export function sortRecords(pile: Uint8Array, width: number): Uint8Array[] {
  const records = Array.from({ length: pile.length / width }, (_, i) =>
    pile.subarray(i * width, (i + 1) * width),
  );
  return records.sort(compareBytes);
}

/** Runs of records with the same first `keyWidth` bytes, of every pile. */
export function* groups(piles: Piles, width: number, keyWidth: number): Generator<Uint8Array[]> {
  for (const number of piles.numbers()) {
    let run: Uint8Array[] = [];
    let key = new Uint8Array();
    for (const record of sortRecords(piles.read(number), width)) {
      if (run.length > 0 && !equal(key, record.subarray(0, keyWidth))) {
        yield run;
        run = [];
      }
      if (run.length === 0) key = record.slice(0, keyWidth);
      run.push(record);
    }
    if (run.length > 0) yield run;
  }
}

function compareBytes(a: Uint8Array, b: Uint8Array): number {
  for (let i = 0; i < a.length; i += 1) {
    const difference = (a[i] ?? 0) - (b[i] ?? 0);
    if (difference !== 0) return difference;
  }
  return 0;
}
