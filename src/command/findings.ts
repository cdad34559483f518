/** Findings as they are listed: so many of each table, so that one cause hides no other, and how many there are. */
import type { Finding } from "../flow/check/event.ts";

/** Of each table; the count goes on. */
const LISTED_MAX = 20;

export class Findings {
  readonly listed: Finding[] = [];
  readonly #counts = new Map<string, number>();

  add(finding: Finding): void {
    const { table } = finding;
    const count = (this.#counts.get(table) ?? 0) + 1;
    this.#counts.set(table, count);
    if (count <= LISTED_MAX) this.listed.push(finding);
  }

  /** By table, in the order in which they came. */
  get tables(): Record<string, number> {
    return Object.fromEntries(this.#counts);
  }

  lines(): string[] {
    const listed = this.listed.map(
      ({ log, index, table, column, expected, found }) =>
        `log ${log}, entry ${index}: ${table}.${column} is ${found}; the bytes give ${expected}`,
    );
    const more = Array.from(this.#counts)
      .filter(([, count]) => count > LISTED_MAX)
      .map(([table, count]) => `and ${count - LISTED_MAX} more of ${table}`);
    return [...listed, ...more];
  }
}
