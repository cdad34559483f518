/** A rule of one kind of entry: what the entries before it must have said for it to stand. */
import type { Body, Kind } from "../../src/core/entry.ts";
import type { Hash } from "../../src/core/hash.ts";
import type { FindingCode, Findings, OpenCode } from "../finding.ts";
import type { State } from "./state.ts";

export interface Outcome {
  findings: Findings;
  open: Findings<OpenCode>;
}

/** The entry at hand, and where what is wrong with it is said. */
export class Turn {
  readonly index: bigint;
  readonly at: string;
  readonly leaf: Hash;
  readonly #outcome: Outcome;

  constructor(entry: { index: bigint; at: string }, leaf: Hash, outcome: Outcome) {
    this.index = entry.index;
    this.at = entry.at;
    this.leaf = leaf;
    this.#outcome = outcome;
  }

  expect(holds: boolean, code: FindingCode, detail: string): void {
    if (!holds) this.#outcome.findings.add(code, { index: this.index }, detail);
  }

  open(code: OpenCode, detail: string): void {
    this.#outcome.open.add(code, { index: this.index }, detail);
  }
}

/** Says what is wrong, and takes the entry into the state as it stands. */
export type Rule<K extends Kind> = (state: State, body: Body<K>, turn: Turn) => void;
export type Rules = { readonly [K in Kind]?: Rule<K> };

/** Only the first of its key may reach back: later ones would rate again what was rated. */
export function starts(turn: Turn, from: string, earlier: readonly unknown[] | undefined): void {
  const first = earlier === undefined || earlier.length === 0;
  turn.expect(first || from > turn.at, "starts-in-the-past", `from ${from}, written ${turn.at}`);
}
