/** Compute time by what it is charged for: what a file says of it, beside what the log gives. */
import { sha256 } from "@noble/hashes/sha2.js";
import { canonical, type Json } from "../../../src/core/json.ts";
import { encodeUtf8 } from "../../../src/core/text.ts";
import { type OpenPiles, pileOfHash, SortedPiles } from "../../tally/piles.ts";
import { getAmount, setAmount } from "../../tally/record.ts";

/** digest of what it is of 32 · row 8 · amount 16 */
const WIDTH = 56;
const KEY = 32;
const AMOUNT = 40;
/** Of what the log gives: behind all rows. */
const NO_ROW = 2n ** 64n - 1n;

/** `row` is the first that is about it; undefined where the file has none. */
export interface Unequal {
  row: bigint | undefined;
  file: bigint;
  log: bigint;
}

export class FocusSums {
  readonly #piles: SortedPiles;
  readonly #record = new Uint8Array(WIDTH);
  readonly #view = new DataView(this.#record.buffer);

  constructor(open: OpenPiles) {
    this.#piles = new SortedPiles(open, { width: WIDTH, keyWidth: KEY });
  }

  /** Row `row` of the file says so much of it. */
  said(of: Json, row: bigint, amount: bigint): void {
    this.#add(of, row, amount);
  }

  given(of: Json, amount: bigint): void {
    this.#add(of, NO_ROW, amount);
  }

  *unequal(): Generator<Unequal> {
    let sums: Unequal = { row: undefined, file: 0n, log: 0n };
    for (const { record, first, last } of this.#piles.records()) {
      const view = new DataView(record.buffer, record.byteOffset);
      const row = view.getBigUint64(KEY);
      const amount = getAmount(view, AMOUNT);
      if (first) sums = { row: row === NO_ROW ? undefined : row, file: 0n, log: 0n };
      sums[row === NO_ROW ? "log" : "file"] += amount;
      if (last && sums.file !== sums.log) yield sums;
    }
  }

  #add(of: Json, row: bigint, amount: bigint): void {
    const digest = sha256(encodeUtf8(canonical(of)));
    this.#record.set(digest);
    this.#view.setBigUint64(KEY, row);
    setAmount(this.#view, AMOUNT, amount);
    this.#piles.add(pileOfHash(digest), this.#record);
  }
}
