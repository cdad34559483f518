/** Lines of dispositions name the entry that stands: a usage entry of the same log. */
import type { Findings } from "../finding.ts";
import { type OpenPiles, SortedPiles } from "./piles.ts";

/** index 8 · whether a line names it 1 · index of the entry that says so 8 */
const WIDTH = 17;
const KEY = 8;
const BY = 9;
/** In this order, so that an entry's own record comes before those of the lines that name it. */
const SAID = { usage: 0, named: 1 } as const;
/** Entries are numbered without gaps: neighbours share a pile. */
const PILE_BITS = 16n;

export class Standing {
  readonly #piles: SortedPiles;
  readonly #record = new Uint8Array(WIDTH);
  readonly #view = new DataView(this.#record.buffer);

  constructor(open: OpenPiles) {
    this.#piles = new SortedPiles(open, { width: WIDTH, keyWidth: KEY });
  }

  /** Entry `index` holds a usage. */
  note(index: bigint): void {
    this.#add(index, SAID.usage, index);
  }

  /** A line of entry `by` says that the usage of entry `index` stands. */
  name(index: bigint, by: bigint): void {
    this.#add(index, SAID.named, by);
  }

  check(findings: Findings): void {
    let stands = false;
    for (const { record, first } of this.#piles.records()) {
      if (first) stands = record[KEY] === SAID.usage;
      if (stands) continue;
      const view = new DataView(record.buffer, record.byteOffset);
      const detail = `a line names entry ${view.getBigUint64(0)}, which is not usage`;
      findings.add("line-index", { index: view.getBigUint64(BY) }, detail);
    }
  }

  #add(index: bigint, said: number, by: bigint): void {
    this.#view.setBigUint64(0, index);
    this.#record[KEY] = said;
    this.#view.setBigUint64(BY, by);
    this.#piles.add(Number(index >> PILE_BITS), this.#record);
  }
}
