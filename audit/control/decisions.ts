/** What two persons decided, for whoever reads the outcome. Persons are opaque ids. */
import { DayText } from "../../src/core/body.ts";
import type { Action } from "../../src/core/control.ts";
import { CannotLook } from "../finding.ts";

/** How a proposal came to its end. */
export interface Decision {
  /** Of the entry that was let in, or that says the end. */
  index: bigint;
  at: string;
  action: Action;
  outcome: "approved" | "refused" | "withdrawn" | "expired";
  proposal: string;
  proposer: string;
  /** Who approved, refused or withdrew. */
  decider: string;
  reason: string;
  ticket: string;
}

/** Days, `YYYY-MM-DD`, half-open. */
export interface Period {
  from: string;
  to: string;
}

/** `2026-01-01..2027-01-01`. */
export function readPeriod(text: string): Period {
  const [from = "", to = "", ...more] = text.split("..");
  if (more.length === 0 && DayText.safeParse(from).success && DayText.safeParse(to).success) {
    return { from, to };
  }
  throw new CannotLook(`${text} is no period, as 2026-01-01..2027-01-01`);
}

export function isWithin({ from, to }: Period, at: string): boolean {
  return from <= at && at < to;
}

export interface Decisions {
  /** Of the period. */
  count: number;
  /** The last of them. */
  listed: readonly Decision[];
}

const LISTED_MAX = 10_000;

export class DecisionList {
  readonly #period: Period | undefined;
  readonly #listed: Decision[] = [];
  #count = 0;

  constructor(period: Period | undefined) {
    this.#period = period;
  }

  take(decision: Decision): void {
    if (this.#period !== undefined && !isWithin(this.#period, decision.at)) return;
    this.#count += 1;
    this.#listed.push(decision);
    if (this.#listed.length > LISTED_MAX) this.#listed.shift();
  }

  all(): Decisions {
    return { count: this.#count, listed: this.#listed };
  }
}
