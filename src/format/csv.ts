/**
 * CSV (RFC 4180: CRLF, quotes only where needed, quotes doubled) that a spreadsheet cannot take for
 * formulas, and that gives the same cells when it is read again.
 *
 * A cell that begins with `=`, `+`, `-`, `@`, tab or carriage return would be run as a formula by
 * common spreadsheets. Such a cell, and one that begins with an apostrophe itself, is written with one
 * apostrophe before it; whoever reads the file back takes one leading apostrophe away (`importedCell`).
 * A decimal number is no formula and stays as it is, with its sign.
 */
import { stringify } from "csv-stringify/sync";

const RISKY = /^[=+\-@\t\r']/;
const DECIMAL = /^-?[0-9]+(?:\.[0-9]+)?$/;

/** Lines of cells, the header's among them if there is to be one; each ends in CRLF. */
export function csv(lines: readonly (readonly string[])[]): string {
  return stringify(
    lines.map((line) => line.map(exportedCell)),
    { record_delimiter: "windows", quoted_match: /[\r\n]/ },
  );
}

export function exportedCell(cell: string): string {
  return RISKY.test(cell) && !DECIMAL.test(cell) ? `'${cell}` : cell;
}

/** What `exportedCell` was given. */
export function importedCell(cell: string): string {
  return cell.startsWith("'") ? cell.slice(1) : cell;
}
