/** Rows against rows, column by column. */
import { encodeHex, equal } from "../../core/text.ts";
import type { Finding } from "./event.ts";

type Value = string | bigint | Uint8Array | null;
type Columns = { readonly [column: string]: Value };

/** Where a row stands. */
export interface Place {
  log: string;
  table: string;
  index: bigint;
}

export function finding(place: Place, column: string, expected: Value, found: Value): Finding {
  const { log, table, index } = place;
  return {
    kind: "finding",
    log,
    index: String(index),
    table,
    column,
    expected: shown(expected),
    found: shown(found),
  };
}

/** A finding for each column of `expected` that `found` has otherwise. */
export function* differences<Row extends { [C in keyof Row]: Value }>(
  place: Place,
  expected: Row,
  found: { [C in keyof Row]: Value },
): Generator<Finding> {
  for (const column in expected) {
    if (!same(expected[column], found[column])) {
      yield finding(place, column, expected[column], found[column]);
    }
  }
}

/** How many columns differ. */
export function distance(expected: Columns, found: Columns): number {
  return Object.keys(expected).filter((name) => !same(expected[name] ?? null, found[name] ?? null))
    .length;
}

function same(a: Value, b: Value): boolean {
  if (a instanceof Uint8Array) return b instanceof Uint8Array && equal(a, b);
  return a === b;
}

const NONE = "none";

function shown(value: Value): string {
  if (value === null) return NONE;
  return value instanceof Uint8Array ? encodeHex(value) : String(value);
}
