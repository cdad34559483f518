/** The files of closed months, which `month_closed` names by their hashes: made again, and held to it. */
import { sha256 } from "@noble/hashes/sha2.js";
import { type Row, TABLES, type TableName } from "../../src/core/export/tables.ts";
import { encodeBase64, encodeUtf8 } from "../../src/core/text.ts";
import type { Findings } from "../finding.ts";
import type { ClosedMonth, Money } from "../money/state.ts";
import type { MonthShare, Terms } from "../month/terms.ts";
import type { OpenPiles } from "../tally/piles.ts";
import { Allocations } from "./allocated.ts";
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

/** One month's files of which nothing has to wait until all namespaces have gone by. */
interface Told {
  month: ClosedMonth;
  allocation: Hashed;
  packs: Hashed;
}

/** Of all closed months, in their order. */
export class ClosingSets {
  readonly #open: OpenPiles;
  readonly #terms: Terms;
  readonly #told: readonly Told[];
  readonly #allocations: Allocations;

  constructor(open: OpenPiles, terms: Terms, closed: readonly ClosedMonth[]) {
    this.#open = open;
    this.#terms = terms;
    this.#allocations = new Allocations(open);
    this.#told = closed.map((month) => ({
      month,
      allocation: new Hashed("allocation"),
      packs: new Hashed("pack_rollforward"),
    }));
  }

  /** What the month at this place comes to for a namespace, in the order of their numbers. */
  share(namespace: string, share: MonthShare, place: number): void {
    this.#told[place]?.allocation.take(allocationRows(namespace, share));
    this.#told[place]?.packs.take(packRows(namespace, share, this.#terms));
    this.#allocations.add(place, namespace, share.allocations);
  }

  check(charges: Charges, accounts: Money["accounts"], findings: Findings): void {
    for (const [place, { allocation, month, packs }] of this.#told.entries()) {
      const { closing } = month;
      const [open, terms] = [this.#open, this.#terms];
      const portal = new Portal({ open, terms, closing });
      const allocated = this.#allocations.of(place);
      const posted = { charges, months: [closing.month] };
      const made = [
        ...[allocation, packs],
        new Hashed("account_map").take(accountRows(accounts, closing.index)),
        new Hashed("portal").take(portal.rows(charges, allocated)),
        ...MONTHLY.map((name) => new Hashed(name).take(monthlyRows(name, posted, open))),
      ];
      compare(
        month,
        made.map((file) => file.end()),
        findings,
      );
    }
  }
}

function compare({ body, index }: ClosedMonth, made: readonly Named[], findings: Findings): void {
  const named = body.exports.map(({ name }) => name).join(", ");
  const all = made
    .map(({ name }) => name)
    .sort()
    .join(", ");
  if (named !== all) {
    findings.add("export-differs", { index }, `the month's files are ${all}, not ${named}`);
  }
  for (const file of made) {
    const said = body.exports.find(({ name }) => name === file.name);
    if (said === undefined || (said.rows === file.rows && said.sha256 === file.sha256)) continue;
    const given = `${file.rows}, ${file.sha256}`;
    const detail = `${file.name}: ${said.rows} rows, ${said.sha256}; not ${given}`;
    findings.add("export-differs", { index }, detail);
  }
}
