/**
 * Parquet: columns with types, a group of rows at a time, so that memory knows one group. What a file of
 * many groups adds to memory is their footer, some kilobytes a group.
 *
 * Integers are INT64, decimals DECIMAL(38, places) in 16 bytes: the widest that common readers (Arrow, DuckDB,
 * Spark) take as exact. A figure beyond either is refused, never rounded. Instants are TIMESTAMP in milliseconds
 * of UTC, days DATE; JSON stands as its text, whose bytes are canonical.
 */
import type { SchemaElement } from "hyparquet";
import { ByteWriter, ParquetWriter } from "hyparquet-writer";
import { type Cell, type Column, type Page, placesOf } from "../core/export/tables.ts";
import { unscaled } from "../core/export/totals.ts";

const GROUP_ROWS_MAX = 10_000;
/** What memory holds is cells: of the sixty columns of FOCUS, groups of all the rows above took 300 MB. */
const GROUP_CELLS_MAX = 200_000;
const DECIMAL_DIGITS = 38;
const DECIMAL_BYTES = 16;
const DECIMAL_END = 10n ** BigInt(DECIMAL_DIGITS);
const INTEGER_END = 2n ** 63n;
const DAY_MS = 86_400_000;

type Value = bigint | boolean | number | string | null;
/** Values of some rows, a column each. */
type Group = readonly Value[][];

export async function* writeParquet(
  columns: readonly Column[],
  pages: AsyncIterable<Page>,
): AsyncGenerator<Uint8Array> {
  const sink = new ByteWriter();
  // No version in it: the same export is the same bytes, whichever version makes it anew.
  const schema = [{ name: "root", num_children: columns.length }, ...columns.map(elementOf)];
  const file = new ParquetWriter({ writer: sink, schema, createdBy: "minutebook" });
  const rowGroupSize = Math.min(GROUP_ROWS_MAX, Math.ceil(GROUP_CELLS_MAX / columns.length));
  for await (const group of groups(columns, pages, rowGroupSize)) {
    const columnData = columns.map(({ name }, at) => ({ name, data: group[at] ?? [] }));
    await file.write({ columnData, rowGroupSize });
    yield take(sink);
  }
  await file.finish();
  yield take(sink);
}

/** What was written since the last time. */
function take(sink: ByteWriter): Uint8Array {
  const bytes = sink.getBytes().slice();
  sink.index = 0;
  return bytes;
}

async function* groups(
  columns: readonly Column[],
  pages: AsyncIterable<Page>,
  groupRows: number,
): AsyncGenerator<Group> {
  let group = columns.map((): Value[] => []);
  let rows = 0;
  for await (const page of pages) {
    for (const row of page) {
      for (const [at, column] of columns.entries())
        group[at]?.push(storedAs(column, row[at] ?? null));
      rows += 1;
      if (rows < groupRows) continue;
      yield group;
      group = columns.map((): Value[] => []);
      rows = 0;
    }
  }
  if (rows > 0) yield group;
}

function elementOf(column: Column): SchemaElement {
  const { name, nullable } = column;
  return { name, repetition_type: nullable ? "OPTIONAL" : "REQUIRED", ...typeOf(column) };
}

function typeOf(column: Column): Pick<SchemaElement, "type" | "converted_type" | "logical_type"> {
  switch (column.type) {
    case "boolean":
      return { type: "BOOLEAN" };
    case "day":
      return { type: "INT32", converted_type: "DATE", logical_type: { type: "DATE" } };
    case "decimal":
      return decimalOf(placesOf(column));
    case "instant":
      return {
        type: "INT64",
        converted_type: "TIMESTAMP_MILLIS",
        logical_type: { type: "TIMESTAMP", isAdjustedToUTC: true, unit: "MILLIS" },
      };
    case "integer":
      return { type: "INT64" };
    case "json":
    case "text":
      return { type: "BYTE_ARRAY", converted_type: "UTF8", logical_type: { type: "STRING" } };
  }
}

function decimalOf(scale: number) {
  const precision = DECIMAL_DIGITS;
  return {
    ...({ type: "FIXED_LEN_BYTE_ARRAY", type_length: DECIMAL_BYTES, scale, precision } as const),
    converted_type: "DECIMAL",
    logical_type: { type: "DECIMAL", scale, precision },
  } as const;
}

/** @throws Error on nothing where something has to be, and RangeError on a figure that its type cannot hold */
function storedAs({ name, nullable, type }: Column, cell: Cell): Value {
  if (cell === null) {
    if (nullable) return null;
    throw new Error(`parquet: ${name} is nothing`);
  }
  switch (type) {
    case "boolean":
      return cell === "true";
    case "day":
      return Date.parse(cell) / DAY_MS;
    case "decimal":
      return bounded(unscaled(cell), DECIMAL_END);
    case "instant":
      return BigInt(Date.parse(cell));
    case "integer":
      return bounded(BigInt(cell), INTEGER_END);
    case "json":
    case "text":
      return cell;
  }
}

function bounded(value: bigint, end: bigint): bigint {
  if (value >= end || value <= -end) throw new RangeError("parquet: a figure is too large");
  return value;
}
