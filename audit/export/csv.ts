/**
 * CSV as the service writes it (docs/exports.md): RFC 4180 with CRLF, quotes only where they are needed, and
 * an apostrophe before what a spreadsheet would run, wide characters among it. Written a second time, so that a file's hash can be told
 * from the log alone.
 */
import type { Cell, Row } from "../../src/core/export/tables.ts";

const FORMULA = new Set(["=", "+", "-", "@", "＝", "＋", "－", "＠", "\t", "\n", "\r", "'"]);
const NUMBER = /^-?[0-9]+(?:\.[0-9]+)?$/;

/** With its CRLF. */
export function csvLine(row: Row): string {
  return `${row.map(written).join(",")}\r\n`;
}

function written(cell: Cell): string {
  if (cell === null || cell === "") return "";
  const guarded = FORMULA.has(cell.charAt(0)) && !NUMBER.test(cell) ? `'${cell}` : cell;
  return /[",\r\n]/.test(guarded) ? `"${guarded.replaceAll('"', '""')}"` : guarded;
}

/** What was written as this cell: nothing for an empty one, and without its guard. */
export function readCell(text: string): Cell {
  if (text === "") return null;
  return text.startsWith("'") ? text.slice(1) : text;
}
