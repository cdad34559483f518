/** One usage entry for each job of a tracking, and every other statement about the job measured by it. */
import { equal } from "../../src/core/text.ts";
import type { Tracking } from "../../src/core/unit.ts";
import type { Findings } from "../finding.ts";
import { type OpenPiles, pileOfNumber, SortedPiles } from "./piles.ts";

export const STATED = { usage: 0, conflict: 1, hold: 2 } as const;

export interface Statement {
  tracking: Tracking;
  job: bigint;
  index: bigint;
  as: (typeof STATED)[keyof typeof STATED];
  /** 32 bytes. */
  fact: Uint8Array;
  /** Of a conflict: the entry that it names. */
  stands?: bigint;
}

/** tracking 1 · job 8 · index 8 · kind 1 · fact 32 · stands 8 */
const WIDTH = 58;
const KEY = 9;
const INDEX = 9;
const AS = 17;
const FACT = 18;
const STANDS = 50;

export class Jobs {
  readonly #piles: SortedPiles;
  readonly #record = new Uint8Array(WIDTH);
  readonly #view = new DataView(this.#record.buffer);

  constructor(open: OpenPiles) {
    this.#piles = new SortedPiles(open, { width: WIDTH, keyWidth: KEY });
  }

  note({ tracking, job, index, as, fact, stands = 0n }: Statement): void {
    this.#record[0] = tracking === "hosted" ? 0 : 1;
    this.#view.setBigUint64(1, job);
    this.#view.setBigUint64(INDEX, index);
    this.#record[AS] = as;
    this.#record.set(fact, FACT);
    this.#view.setBigUint64(STANDS, stands);
    this.#piles.add(pileOfNumber(job), this.#record);
  }

  /** The statements about each job, in the order of the log. */
  check(findings: Findings): void {
    let standing: Standing | undefined;
    for (const { record, first } of this.#piles.records()) {
      if (first) standing = undefined;
      standing = checkStatement(record, standing, findings);
    }
  }
}

/** The job's usage entry. */
interface Standing {
  index: bigint;
  fact: Uint8Array;
}

/** `standing` is what stands before it; what stands after it is given back. */
function checkStatement(
  record: Uint8Array,
  standing: Standing | undefined,
  findings: Findings,
): Standing | undefined {
  const view = new DataView(record.buffer, record.byteOffset);
  const index = view.getBigUint64(INDEX);
  const fact = record.subarray(FACT, STANDS);
  const as = record[AS];
  if (standing !== undefined && equal(standing.fact, fact)) {
    const detail = `entry ${standing.index} stands with the same job and fact`;
    findings.add("duplicate-written", { index }, detail);
  } else if (as === STATED.usage) {
    const detail = `entry ${standing?.index} is the job's`;
    if (standing !== undefined) findings.add("usage-twice", { index }, detail);
    return standing ?? { index, fact };
  } else if (as === STATED.conflict && view.getBigUint64(STANDS) !== standing?.index) {
    const detail = `it names entry ${view.getBigUint64(STANDS)}, ${standing?.index ?? "none"} stands`;
    findings.add("conflict-unfounded", { index }, detail);
  }
  return standing;
}
