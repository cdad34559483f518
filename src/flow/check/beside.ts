/**
 * A table beside the log, merged with what the entries derive: both in the order of the entries, so
 * that no more than a page of either is in memory. None too many, none too few.
 */
import type { Positioned, Stream } from "../../store/snapshots.ts";
import { differences, distance, finding, type Place } from "./compare.ts";
import type { Finding } from "./event.ts";

type Value = string | bigint | Uint8Array | null;
type Row = Positioned & { [column: string]: Value };

export class Beside<R extends Positioned & { [C in keyof R]: Value }> {
  readonly #place: Omit<Place, "index">;
  /** The column that says which entry a row belongs to. */
  readonly #order: string;
  readonly #stream: Stream<R>;
  readonly #rows = new Map<bigint, R[]>();

  constructor(place: Omit<Place, "index">, order: string, stream: Stream<R>) {
    this.#place = place;
    this.#order = order;
    this.#stream = stream;
  }

  /** Reads the rows of entries below the bound. */
  async read(bound: bigint): Promise<void> {
    for (const row of await this.#stream.below(bound)) {
      const rows = this.#rows.get(row.position);
      if (rows === undefined) this.#rows.set(row.position, [row]);
      else rows.push(row);
    }
  }

  /** Compares the rows of one entry with those that it derives. */
  *compare(index: bigint, expected: readonly R[]): Generator<Finding> {
    const found = this.#rows.get(index) ?? [];
    this.#rows.delete(index);
    const place = { ...this.#place, index };
    for (const row of expected) {
      const at = nearest(row, found);
      if (at < 0) yield finding(place, this.#order, index, null);
      else yield* differences(place, row, found.splice(at, 1)[0] ?? row);
    }
    for (const row of found) yield this.#surplus(row);
  }

  /** Rows that were read and that no entry has asked for. */
  *unclaimed(): Generator<Finding> {
    for (const rows of this.#rows.values()) for (const row of rows) yield this.#surplus(row);
    this.#rows.clear();
  }

  /** Rows behind the last entry. */
  async *rest(): AsyncGenerator<Finding> {
    for (let page = await this.#stream.page(); page.length > 0; page = await this.#stream.page()) {
      for (const row of page) yield this.#surplus(row);
    }
    await this.#stream.close();
  }

  #surplus({ position }: R): Finding {
    return finding({ ...this.#place, index: position }, this.#order, null, position);
  }
}

/** The row that differs least: a changed column is named as that, and not as two rows. */
function nearest(row: Row, rows: readonly Row[]): number {
  const distances = rows.map((other) => distance(row, other));
  return distances.indexOf(Math.min(...distances));
}
