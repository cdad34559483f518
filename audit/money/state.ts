/** Corrections and accounts as the entries so far have said them. */
import type { Body, EntryOf } from "../../src/core/entry.ts";
import type { Closing } from "../prefix/state.ts";
import { micro } from "../tally/record.ts";
import type { CreditRun } from "./credit-run.ts";
import type { Ledger } from "./ledger.ts";
import type { AdjustmentLines } from "./lines.ts";

export interface Money {
  /** By the index of their entry. */
  runs: Map<bigint, CreditRun>;
  /** By namespace the newest pack that a run gave or took back. */
  given: Map<string, bigint>;
  /** By namespace, `""` for all others: in the order of the log. */
  accounts: Map<string, (Body<"account"> & { index: bigint })[]>;
  /** The earliest month that any usage was posted to; `""` before the first. */
  firstPosted: string;
  /** Months that are closed, in the order of the log. */
  closed: ClosedMonth[];
  lines: AdjustmentLines;
  ledger: Ledger;
  /** Told of each line of an adjustment, by its place in its entry. */
  figure(figure: Figure, line: number): void;
}

export interface ClosedMonth {
  /** Of the `month_closed` entry. */
  index: bigint;
  closing: Closing;
  body: Body<"month_closed">;
}

/** A line of an adjustment as a figure. */
export interface Figure {
  index: bigint;
  billing_month: string;
  usage_month: string;
  namespace: string;
  project: string;
  /** Of the usage that it names, or `""`. */
  entry: string;
  amount: bigint;
}

/** Of each line of an adjustment, in their order. */
export function figuresOf({ body, index }: EntryOf<"adjustment">): Figure[] {
  const { billing_month, lines } = body;
  return lines.map(({ amount, entry, namespace_id, project_id, usage_month }) => ({
    ...{ index, billing_month, usage_month, entry },
    namespace: namespace_id,
    project: project_id,
    amount: micro(amount),
  }));
}

export function startMoney(parts: Pick<Money, "figure" | "ledger" | "lines">): Money {
  const [accounts, given, runs] = [new Map(), new Map(), new Map()];
  return { ...parts, accounts, closed: [], firstPosted: "", given, runs };
}
