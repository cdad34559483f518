/** Control totals of a file: how many rows it has, and the exact sum of each column that is summed. */
import { type Column, type Page, placesOf } from "./tables.ts";

export interface Figures {
  rows: bigint;
  /** By column, written as its cells are. */
  totals: Record<string, string>;
}

export class Totals {
  readonly #summed: readonly { name: string; at: number; places: number }[];
  readonly #sums: bigint[];
  #rows = 0n;

  constructor(columns: readonly Column[]) {
    this.#summed = columns.flatMap((column, at) =>
      column.summed ? [{ name: column.name, at, places: placesOf(column) }] : [],
    );
    this.#sums = this.#summed.map(() => 0n);
  }

  add(page: Page): void {
    this.#rows += BigInt(page.length);
    for (const [i, { at }] of this.#summed.entries()) {
      let sum = this.#sums[i] ?? 0n;
      for (const row of page) sum += unscaled(row[at] ?? "0");
      this.#sums[i] = sum;
    }
  }

  get figures(): Figures {
    const totals = this.#summed.map(({ name, places }, i) => [
      name,
      scaled(this.#sums[i] ?? 0n, places),
    ]);
    return { rows: this.#rows, totals: Object.fromEntries(totals) };
  }
}

/** A number's digits without its point: cells of one column have the same places. */
export function unscaled(cell: string): bigint {
  return BigInt(cell.replace(".", ""));
}

/** The number whose `unscaled` this is. */
export function scaled(digits: bigint, places: number): string {
  if (places === 0) return String(digits);
  const text = String(digits < 0n ? -digits : digits).padStart(places + 1, "0");
  return `${digits < 0n ? "-" : ""}${text.slice(0, -places)}.${text.slice(-places)}`;
}
