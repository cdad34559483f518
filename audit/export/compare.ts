/** A file's rows beside those that the log gives: both are in one order, so that neither is kept. */
import type { Cell, Column, Row } from "../../src/core/export/tables.ts";
import { encodeUtf8 } from "../../src/core/text.ts";
import { compareBytes } from "../tally/piles.ts";

/** What is not as the log has it. `row` counts from 1, without a header. */
export interface Difference {
  row: bigint;
  detail: string;
}

export interface Comparing {
  columns: readonly Column[];
  /** Columns by which rows are sorted and told apart. */
  order: readonly string[];
  /** Columns of which the log says nothing. */
  beside: ReadonlySet<string>;
}

type Rows = AsyncIterable<Row>;

/** Behind a row that is missing, or one too many, both meet again at the next that both have. */
export async function* compareRows(
  file: Rows,
  log: Rows,
  comparing: Comparing,
): AsyncGenerator<Difference> {
  const sorting = sortingOf(comparing);
  const [theirs, ours] = [new Cursor(file), new Cursor(log)];
  await Promise.all([theirs.next(), ours.next()]);
  while (theirs.row !== undefined || ours.row !== undefined) {
    const side = compareKeys(theirs.row, ours.row, sorting);
    const row = theirs.number;
    if (side < 0 && theirs.row !== undefined) {
      yield { row, detail: `the log gives no such row here: ${nameOf(theirs.row, sorting)}` };
    } else if (side > 0 && ours.row !== undefined) {
      yield { row, detail: `a row is missing before it: ${nameOf(ours.row, sorting)}` };
    } else if (theirs.row !== undefined && ours.row !== undefined) {
      const wrong = differing(theirs.row, ours.row, comparing);
      if (wrong !== "") yield { row, detail: wrong };
    }
    if (side <= 0) await theirs.next();
    if (side >= 0) await ours.next();
  }
}

class Cursor {
  readonly #rows: AsyncIterator<Row>;
  row: Row | undefined;
  /** Of the row; of the next to come, where there is none. */
  number = 0n;

  constructor(rows: Rows) {
    this.#rows = rows[Symbol.asyncIterator]();
  }

  async next(): Promise<void> {
    const { done, value } = await this.#rows.next();
    this.row = done ? undefined : value;
    this.number += 1n;
  }
}

export interface SortedBy {
  at: number;
  column: Column;
}

export function sortingOf({ columns, order }: Comparing): SortedBy[] {
  return order.flatMap((name) => {
    const at = columns.findIndex((column) => column.name === name);
    const column = columns[at];
    return column === undefined ? [] : [{ at, column }];
  });
}

/** Where one side has ended, what the other still has is before it. */
function compareKeys(a: Row | undefined, b: Row | undefined, sorting: readonly SortedBy[]): number {
  if (a === undefined || b === undefined) return a === undefined ? 1 : -1;
  for (const { at, column } of sorting) {
    const order = compareCells(a[at] ?? null, b[at] ?? null, column);
    if (order !== 0) return order;
  }
  return 0;
}

const INTEGER = /^(?:0|[1-9][0-9]{0,18})$/;

function compareCells(a: Cell, b: Cell, { nothingLast, type }: Column): number {
  if (a === b) return 0;
  if (a === null || b === null) return (a === null) === (nothingLast ?? false) ? 1 : -1;
  if (type === "integer" && INTEGER.test(a) && INTEGER.test(b)) {
    return BigInt(a) < BigInt(b) ? -1 : 1;
  }
  return compareBytes(encodeUtf8(a), encodeUtf8(b));
}

export function nameOf(row: Row, sorting: readonly SortedBy[]): string {
  return sorting.map(({ at, column }) => `${column.name} ${shown(row[at])}`).join(", ");
}

export function differing(theirs: Row, ours: Row, { beside, columns }: Comparing): string {
  const wrong = columns.flatMap(({ name }, at) => {
    if (beside.has(name) || theirs[at] === ours[at]) return [];
    return [`${name} ${shown(theirs[at])}, not ${shown(ours[at])}`];
  });
  return wrong.join("; ");
}

function shown(cell: Cell | undefined): string {
  return cell ?? "(nothing)";
}
