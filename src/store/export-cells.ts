/** Columns of a query as the cells of a file: texts that say the same in every session (core/export/tables.ts). */
import type { Cell, Column, Page } from "../core/export/tables.ts";
import type { Sql, Transaction } from "./connect.ts";
import { pagesOf } from "./pages.ts";

type Query = ReturnType<Sql["unsafe"]>;

/** Bounds what is in memory: a page. */
const PAGE_ROWS = 1_000;

/** Cells of rows whose alias is `row`, as a list for `select`. */
export function cellsOf(columns: readonly Column[]): string {
  return columns.map((column) => `(${textOf(column)})::text as "${column.name}"`).join(", ");
}

/** The same for COPY as CSV, where a text that a spreadsheet takes for a formula begins with an apostrophe. */
export function csvCellsOf(columns: readonly Column[]): string {
  return columns
    .map((column) => (column.type === "text" ? guarded(`row.${column.name}`) : textOf(column)))
    .join(", ");
}

function textOf({ name, type }: Column): string {
  const column = `row.${name}`;
  if (type === "text") return `nullif(${column}, '')`;
  if (type === "instant") return instantOf(column);
  return column;
}

/**
 * As JSON has it, which knows no style of a session. With a microsecond, of which ours have none, all six digits
 * are written, and three of them taken: half as long again takes `to_char`, the dearest of a row's cells.
 */
function instantOf(column: string): string {
  const precise = `(${column} + interval '1 microsecond') at time zone 'UTC'`;
  return `substr(to_json(${precise})::text, 2, 23) || 'Z'`;
}

/**
 * As `exportedCell` of format/csv.ts has it: tab, LF, CR, and `'`, `+`, `-`, `=`, `@`, or the full-width form of one of
 * these, unless it is a decimal. What begins with a letter, as most do, is known by the first comparison.
 */
function guarded(text: string): string {
  return `
    case
      when ascii(${text}) between 65 and 65290 then ${text}
      when ${text} = '' then null
      when ascii(${text}) in (9, 10, 13, 39, 43, 45, 61, 64, 65291, 65293, 65309, 65312)
        and ${text} !~ '^-?[0-9]+([.][0-9]+)?$'
      then '''' || ${text}
      else ${text}
    end`;
}

/** Rows of `cellsOf`, a page at a time, between which the transaction is free for other queries. */
export async function* cellPages(tx: Transaction, query: Query): AsyncGenerator<Page> {
  // All rows are wanted, and not the first ones soon, which is what a cursor is planned for.
  await tx`select set_config('cursor_tuple_fraction', '1', true)`;
  const pages = pagesOf<Record<string, Cell>>(tx, query, PAGE_ROWS);
  for await (const page of pages) yield page.map((row) => Object.values(row));
}

/** A text in a query that takes no parameters. */
export function literal(log: string): string {
  if (!/^[0-9a-f]{32}$/.test(log)) throw new Error("export: not the id of a log");
  return `'${log}'`;
}
