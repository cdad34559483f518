/** The files of closed months, which `month_closed` names by their hashes: made again, and held to it. */
import { sha256 } from "@noble/hashes/sha2.js";
import { type Row, TABLES, type TableName } from "../../src/core/export/tables.ts";
import { encodeBase64, encodeUtf8 } from "../../src/core/text.ts";
import type { Findings } from "../finding.ts";
import type { ClosedMonth, Money } from "../money/state.ts";
import type { MonthShare, Terms } from "../month/terms.ts";
import type { OpenPiles } from "../tally/piles.ts";
import type { Charges } from "./charges.ts";
import { csvLine } from "./csv.ts";
import { MONTHLY, monthlyRows } from "./monthly.ts";
import { accountRows, allocationRows, packRows } from "./owed.ts";
import { Portal } from "./portal.ts";

/** What `month_closed` says of one file. */
interface Named {
  name: string;
  rows: string;
  sha256: string;
}

/** A CSV file of which nothing is kept but what tells it from others. */
class Hashed {
  readonly #name: TableName;
  readonly #hash = sha256.create();
  #rows = 0n;

  constructor(name: TableName) {
    this.#name = name;
    this.#hash.update(encodeUtf8(csvLine(TABLES[name].map((column) => column.name))));
  }

  take(rows: Iterable<Row>): this {
    for (const row of rows) {
      this.#hash.update(encodeUtf8(csvLine(row)));
      this.#rows += 1n;
    }
    return this;
  }

  end(): Named {
    const name = this.#name;
    return { name, rows: String(this.#rows), sha256: encodeBase64(this.#hash.digest()) };
  }
}

/** One month's, while namespaces go by. */
class ClosingSet {
  readonly #open: OpenPiles;
  readonly #terms: Terms;
  readonly #month: ClosedMonth;
  readonly #allocation = new Hashed("allocation");
  readonly #packs = new Hashed("pack_rollforward");
  readonly #portal: Portal;

  constructor(open: OpenPiles, terms: Terms, month: ClosedMonth) {
    this.#open = open;
    this.#terms = terms;
    this.#month = month;
    this.#portal = new Portal(open, terms, month.closing);
  }

  share(namespace: string, share: MonthShare): void {
    this.#allocation.take(allocationRows(namespace, share));
    this.#packs.take(packRows(namespace, share, this.#terms));
    this.#portal.share(namespace, share);
  }

  check(charges: Charges, accounts: Money["accounts"], findings: Findings): void {
    const { body, closing, index } = this.#month;
    const posted = { charges, months: [closing.month] };
    const made = [
      this.#allocation,
      this.#packs,
      new Hashed("account_map").take(accountRows(accounts, closing.index)),
      new Hashed("portal").take(this.#portal.rows(charges)),
      ...MONTHLY.map((name) => new Hashed(name).take(monthlyRows(name, posted, this.#open))),
    ].map((file) => file.end());
    const named = body.exports.map(({ name }) => name).join(", ");
    const all = made.map(({ name }) => name).sort();
    if (named !== all.join(", ")) {
      findings.add(
        "export-differs",
        { index },
        `the month's files are ${all.join(", ")}, not ${named}`,
      );
    }
    for (const file of made) {
      const said = body.exports.find(({ name }) => name === file.name);
      if (said === undefined || (said.rows === file.rows && said.sha256 === file.sha256)) continue;
      const detail = `${file.name}: ${said.rows} rows, ${said.sha256}; not ${file.rows}, ${file.sha256}`;
      findings.add("export-differs", { index }, detail);
    }
  }
}

/** Of all closed months, in their order. */
export class ClosingSets {
  readonly #sets: readonly ClosingSet[];

  constructor(open: OpenPiles, terms: Terms, closed: readonly ClosedMonth[]) {
    this.#sets = closed.map((month) => new ClosingSet(open, terms, month));
  }

  /** What the month at this place comes to for a namespace, in the order of their numbers. */
  share(namespace: string, share: MonthShare, place: number): void {
    this.#sets[place]?.share(namespace, share);
  }

  check(charges: Charges, accounts: Money["accounts"], findings: Findings): void {
    for (const set of this.#sets) set.check(charges, accounts, findings);
  }
}
