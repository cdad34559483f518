/** Lines of dispositions name the entry that stands: one of the same log that answers a report. */
import type { Findings } from "../finding.ts";
import { groups, type OpenPiles, type Piles } from "./piles.ts";

/** index 8 · what is said of it 1 · index of the entry that says it 8 */
const WIDTH = 17;
const KEY = 8;
const BY = 9;
/** In this order, so that an entry's own record comes before those of the lines that name it. */
const SAID = { usage: 0, report: 1, namedAsUsage: 2, namedAsReport: 3 } as const;
/** Entries are numbered without gaps: neighbours share a pile. */
const PILE_BITS = 16n;

export class Standing {
  readonly #piles: Piles;
  readonly #record = new Uint8Array(WIDTH);
  readonly #view = new DataView(this.#record.buffer);

  constructor(open: OpenPiles) {
    this.#piles = open(WIDTH);
  }

  /** Entry `index` holds a report, as usage or otherwise. */
  note(index: bigint, usage: boolean): void {
    this.#add(index, usage ? SAID.usage : SAID.report, index);
  }

  /** A line of entry `by` says that entry `index` stands: for a duplicate, as usage. */
  name(index: bigint, by: bigint, usage: boolean): void {
    this.#add(index, usage ? SAID.namedAsUsage : SAID.namedAsReport, by);
  }

  check(findings: Findings): void {
    for (const run of groups(this.#piles, WIDTH, KEY)) {
      const own = run[0]?.[KEY] ?? SAID.namedAsReport;
      for (const record of run) {
        const said = record[KEY];
        const wanted = said === SAID.namedAsUsage ? SAID.usage : SAID.report;
        if (own <= wanted) continue;
        const view = new DataView(record.buffer, record.byteOffset);
        const kind = said === SAID.namedAsUsage ? "usage" : "a report";
        const detail = `a line names entry ${view.getBigUint64(0)}, which is not ${kind}`;
        findings.add("line-index", { index: view.getBigUint64(BY) }, detail);
      }
    }
  }

  #add(index: bigint, said: number, by: bigint): void {
    this.#view.setBigUint64(0, index);
    this.#record[KEY] = said;
    this.#view.setBigUint64(BY, by);
    this.#piles.add(Number(index >> PILE_BITS), this.#record);
  }
}
