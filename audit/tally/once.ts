/** Hashes of which each may be said once. */
import type { FindingCode, Findings } from "../finding.ts";
import { type OpenPiles, pileOfHash, SortedPiles } from "./piles.ts";

/** hash 32 · index 8 */
const WIDTH = 40;
const KEY = 32;

export class Once {
  readonly #piles: SortedPiles;
  readonly #record = new Uint8Array(WIDTH);
  readonly #view = new DataView(this.#record.buffer);

  constructor(open: OpenPiles) {
    this.#piles = new SortedPiles(open, { width: WIDTH, keyWidth: KEY });
  }

  note(hash: Uint8Array, index: bigint): void {
    this.#record.set(hash);
    this.#view.setBigUint64(KEY, index);
    this.#piles.add(pileOfHash(hash), this.#record);
  }

  /** All but the first of each are findings of this code. */
  check(findings: Findings, code: FindingCode): void {
    let stands = 0n;
    for (const { record, first } of this.#piles.records()) {
      const index = new DataView(record.buffer, record.byteOffset).getBigUint64(KEY);
      if (first) stands = index;
      else findings.add(code, { index }, `entry ${stands} says the same`);
    }
  }
}
