/** Entries, kept for the files that are made of all of them, as of the last that was taken. */
import type { Entry } from "../../src/core/entry.ts";
import type { Row, TableName } from "../../src/core/export/tables.ts";
import { Findings } from "../finding.ts";
import { AdjustedUsage, adjustedMonth } from "../money/adjusted.ts";
import { Ledger } from "../money/ledger.ts";
import { type Figure, figuresOf } from "../money/state.ts";
import { type MonthShare, Terms } from "../month/terms.ts";
import { Telling } from "../month/told.ts";
import type { Closing } from "../prefix/state.ts";
import { chargeOf } from "../tally/charge.ts";
import type { OpenPiles } from "../tally/piles.ts";
import type { Charge } from "../tally/usage.ts";
import { Allocations } from "./allocated.ts";
import { Charges } from "./charges.ts";
import { monthlyRows } from "./monthly.ts";
import { accountRows, allocationRows, packRows } from "./owed.ts";
import { Portal } from "./portal.ts";
import type { Built } from "./rated.ts";

/** Those that are told of all entries together, and not one by one. */
export type BookName = Exclude<TableName, "entries">;

/** Told, before the rows of a month, what it comes to for each namespace. */
export type TellShare = (namespace: string, share: MonthShare, terms: Terms) => void;

export interface ForFocus {
  tell: TellShare;
  /** In `portal`, what came late for an earlier month and what corrects it are two rows. */
  apart: boolean;
}

export class Book {
  readonly #open: OpenPiles;
  readonly #told = new Telling();
  readonly #ledger: Ledger;
  readonly #adjusted: AdjustedUsage;
  readonly #charges: Charges;
  readonly #closings: Closing[] = [];
  #size = 0n;

  constructor(open: OpenPiles) {
    this.#open = open;
    this.#ledger = new Ledger(open);
    this.#adjusted = new AdjustedUsage(open);
    this.#charges = new Charges(open);
  }

  take(entry: Entry, built: Built | undefined): void {
    this.#size = entry.index + 1n;
    this.#told.take(entry);
    switch (entry.kind) {
      case "usage":
        if (built !== undefined) this.#charge(chargeOf(entry, built.report, built));
        break;
      case "adjustment":
        for (const [line, figure] of figuresOf(entry).entries()) this.#adjust(figure, line);
        break;
      case "pack":
        this.#ledger.mention(BigInt(entry.body.namespace_id));
        break;
      case "month_closing":
        this.#closings.push({ ...entry, month: entry.body.month, closed: false });
        break;
      case "month_closing_withdrawn":
        this.#closings.pop();
        break;
      default:
    }
  }

  /** Of a billing month as of its cut-off, where it has one, and else as if it were cut off now. Once. */
  *rows(name: BookName, month: string | undefined, focus?: ForFocus): Generator<Row> {
    this.#adjusted.check(new Findings(), (adjusted) => this.#charges.adjust(adjusted));
    const charges = this.#charges;
    switch (name) {
      case "account_map":
        yield* accountRows(this.#told.accounts, this.#size);
        break;
      case "allocation":
      case "pack_rollforward":
      case "portal":
        yield* this.#rowsOfMonth(name, month ?? "", focus);
        break;
      default:
        yield* monthlyRows(
          name,
          { charges, months: month === undefined ? charges.months : [month] },
          this.#open,
        );
    }
  }

  *#rowsOfMonth(
    name: "allocation" | "pack_rollforward" | "portal",
    month: string,
    focus?: ForFocus,
  ): Generator<Row> {
    const closings = this.#closingsTo(month);
    const closing = closings.at(-1);
    if (closing === undefined) return;
    const terms = new Terms(this.#told);
    const allocations = new Allocations(this.#open);
    for (const [namespace, postings] of this.#ledger.namespaces(new Findings())) {
      const share = [...terms.months(namespace, postings, closings)].at(-1);
      if (share === undefined) continue;
      focus?.tell(namespace, share, terms);
      if (name === "allocation") yield* allocationRows(namespace, share);
      else if (name === "pack_rollforward") yield* packRows(namespace, share, terms);
      else allocations.add(0, namespace, share.allocations);
    }
    if (name !== "portal") return;
    const portal = new Portal({ open: this.#open, terms, closing });
    yield* portal.rows(this.#charges, allocations.of(0), focus?.apart);
  }

  /** In the order of months, the month's own last. */
  #closingsTo(month: string): Closing[] {
    const before = this.#closings.filter((closing) => closing.month < month);
    const own = this.#closings.find((closing) => closing.month === month);
    return [...before, own ?? { index: this.#size, at: "", month, closed: false }];
  }

  #charge(charge: Charge): void {
    this.#ledger.charge(charge);
    this.#adjusted.charge(charge);
    this.#charges.charge(charge);
  }

  #adjust(figure: Figure, line: number): void {
    this.#ledger.adjust(figure, line);
    if (figure.entry === "") this.#charges.adjust(adjustedMonth(figure));
    else this.#adjusted.adjust(figure, line);
  }
}
