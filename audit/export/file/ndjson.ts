/** Rows of an NDJSON file: an object a line, its members in the order of the columns, strings and null alone. */
import { createReadStream } from "node:fs";
import type { Cell, Column, Row } from "../../../src/core/export/tables.ts";
import { decodeUtf8 } from "../../../src/core/text.ts";
import { Unreadable } from "../unreadable.ts";

const NEWLINE = 0x0a;
/** Far above any row of ours. */
const LINE_BYTES_MAX = 4 * 1024 * 1024;

/** @throws Unreadable */
export async function* readNdjson(path: string, columns: readonly Column[]): AsyncGenerator<Row> {
  let line = 0;
  for await (const bytes of linesOf(path)) {
    line += 1;
    yield rowOf(bytes, columns) ?? refuse(`line ${line} is no object of the file's columns`);
  }
}

/** Undefined unless writing it again gives the same text. */
function rowOf(bytes: Uint8Array, columns: readonly Column[]): Row | undefined {
  const text = decodeUtf8(bytes) ?? "";
  const value = parse(text);
  if (typeof value !== "object" || value === null || JSON.stringify(value) !== text) {
    return undefined;
  }
  const cells = Object.entries(value);
  const fits =
    cells.length === columns.length &&
    cells.every(([name, cell], at) => name === columns[at]?.name && isCell(cell));
  return fits ? cells.map(([, cell]) => cell) : undefined;
}

async function* linesOf(path: string): AsyncGenerator<Uint8Array> {
  let rest = Buffer.alloc(0);
  for await (const chunk of createReadStream(path)) {
    const bytes = Buffer.concat([rest, chunk]);
    let start = 0;
    for (let end = bytes.indexOf(NEWLINE); end >= 0; end = bytes.indexOf(NEWLINE, start)) {
      yield bytes.subarray(start, end);
      start = end + 1;
    }
    rest = bytes.subarray(start);
    if (rest.length > LINE_BYTES_MAX) refuse("a line has no end");
  }
  if (rest.length > 0) refuse("its last line has no end");
}

function parse(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return undefined; // not JSON, so no row
  }
}

function isCell(value: unknown): value is Cell {
  return value === null || typeof value === "string";
}

function refuse(reason: string): never {
  throw new Unreadable(reason);
}
