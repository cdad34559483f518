/**
 * CSV (RFC 4180: CRLF, quotes only where needed, quotes doubled) that a spreadsheet cannot take for
 * formulas, and that gives the same cells when it is read again.
 *
 * A cell that begins with `=`, `+`, `-`, `@`, the full-width form of one of them, tab or a line break would be
 * run as a formula by common spreadsheets. Such a cell, and one that begins with an apostrophe itself, is written with one
 * apostrophe before it; whoever reads the file back takes one leading apostrophe away (`importedCell`).
 * Whoever has it read as cells between semicolons has other cells, of which this says nothing.
 * A decimal number is no formula and stays as it is, with its sign.
 */
import { stringify } from "csv-stringify/sync";
import type { Column, Page } from "../core/export/tables.ts";

const RISKY = /^[=+\-@＝＋－＠\t\n\r']/;
const DECIMAL = /^-?[0-9]+(?:\.[0-9]+)?$/;

/** Lines of cells, the header's among them if there is to be one; each ends in CRLF. */
export function csv(lines: readonly (readonly string[])[]): string {
  return stringify(
    lines.map((line) => line.map(exportedCell)),
    { record_delimiter: "windows", quoted_match: /[\r\n]/ },
  );
}

/** The names of the columns, then the rows; nothing is an empty cell. */
export async function* writeCsv(
  columns: readonly Column[],
  pages: AsyncIterable<Page>,
): AsyncGenerator<Uint8Array> {
  yield csvHeader(columns);
  for await (const page of pages) {
    yield Buffer.from(csv(page.map((row) => row.map((cell) => cell ?? ""))));
  }
}

export function csvHeader(columns: readonly Column[]): Uint8Array {
  return Buffer.from(csv([columns.map(({ name }) => name)]));
}

/** Whole lines that end in LF, ended in CRLF; a line break between quotes is the cell's own. */
export function crlf(lines: Buffer): Buffer {
  // A character for each byte: no byte of UTF-8 but a quote is a quote.
  const parts = lines.toString("latin1").split('"');
  const ended = parts.map((part, at) => (at % 2 === 0 ? part.replaceAll("\n", "\r\n") : part));
  return Buffer.from(ended.join('"'), "latin1");
}

export function exportedCell(cell: string): string {
  return RISKY.test(cell) && !DECIMAL.test(cell) ? `'${cell}` : cell;
}

/** What `exportedCell` was given. */
export function importedCell(cell: string): string {
  return cell.startsWith("'") ? cell.slice(1) : cell;
}
