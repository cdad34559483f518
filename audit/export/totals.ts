/** What a manifest counts and sums of a file, counted and summed of the rows that the log gives. */
import type { Manifest } from "../../src/core/export/manifest.ts";
import { type Column, placesOf, type Row } from "../../src/core/export/tables.ts";
import type { Findings } from "../finding.ts";
import { micro, writeDecimal } from "../tally/record.ts";

export class Totals {
  readonly #summed: readonly { name: string; at: number; places: number }[];
  readonly #sums = new Map<string, bigint>();
  #rows = 0n;

  constructor(columns: readonly Column[]) {
    this.#summed = columns.flatMap((column, at) => {
      return column.summed ? [{ name: column.name, at, places: placesOf(column) }] : [];
    });
  }

  add(row: Row): void {
    this.#rows += 1n;
    for (const { at, name } of this.#summed) {
      this.#sums.set(name, (this.#sums.get(name) ?? 0n) + micro(row[at] ?? "0"));
    }
  }

  check({ rows, totals }: Manifest, findings: Findings): void {
    const given = new Map(
      this.#summed.map(({ name, places }) => [name, this.#written(name, places)]),
    );
    const names = new Set([...given.keys(), ...Object.keys(totals)]);
    const wrong = [...names].filter((name) => totals[name] !== given.get(name));
    const said = wrong.map((name) => `${name} ${totals[name]}, not ${given.get(name)}`);
    if (rows !== String(this.#rows)) said.unshift(`${rows} rows, not ${this.#rows}`);
    for (const detail of said) findings.add("export-totals", {}, detail);
  }

  #written(name: string, places: number): string {
    const sum = this.#sums.get(name) ?? 0n;
    return places === 0 ? String(sum) : writeDecimal(sum, places);
  }
}
