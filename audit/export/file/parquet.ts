/** Rows of a Parquet file, a row group at a time; every cell as the text that the other formats have. */
import {
  asyncBufferFromFile,
  type FileMetaData,
  parquetMetadataAsync,
  parquetRead,
  type SchemaElement,
} from "hyparquet";
import type { Cell, Column, Row } from "../../../src/core/export/tables.ts";
import { Unreadable } from "../unreadable.ts";

const DAY_MS = 86_400_000;
/** The service writes no more rows in a group (src/format/parquet.ts); a few bytes can say of a million what they are. */
const GROUP_ROWS_MAX = 10_000n;
/** Uncompressed; far above what so many rows of ours come to. */
const GROUP_BYTES_MAX = 256n * 1024n * 1024n;

/** @throws Unreadable */
export async function* readParquet(path: string, columns: readonly Column[]): AsyncGenerator<Row> {
  const file = await asyncBufferFromFile(path);
  const metadata = exact(await understood(parquetMetadataAsync(file)), columns);
  let rowStart = 0;
  for (const group of metadata.row_groups) {
    if (group.num_rows > GROUP_ROWS_MAX || group.total_byte_size > GROUP_BYTES_MAX) {
      throw new Unreadable(`a group of ${group.num_rows} rows is more than any that is written`);
    }
    const rowEnd = rowStart + Number(group.num_rows);
    let rows: unknown[][] = [];
    const onComplete = (read: unknown[][]): void => {
      rows = read;
    };
    await understood(parquetRead({ file, metadata, rowStart, rowEnd, parsers: TEXTS, onComplete }));
    for (const row of rows) yield columns.map((column, at) => cellOf(column, row[at]));
    rowStart = rowEnd;
  }
}

/** Of instants and days, as what they are written in. */
const TEXTS = {
  timestampFromMilliseconds: (ms: bigint) => new Date(Number(ms)).toISOString(),
  dateFromDays: (days: number) => new Date(days * DAY_MS).toISOString().slice(0, 10),
};

/**
 * Whoever reads a decimal as what it is said to be gets a binary float of it: it is read as the bytes that it
 * is, once its column has been seen to say of them what they are.
 */
function exact(metadata: FileMetaData, columns: readonly Column[]): FileMetaData {
  const [root, ...elements] = metadata.schema;
  const fits =
    root !== undefined &&
    elements.length === columns.length &&
    columns.every((column, at) => isColumn(elements[at], column));
  if (!fits) {
    throw new Unreadable(`its columns are ${elements.map(({ name }) => name).join(", ")}`);
  }
  const schema = elements.map(({ converted_type, logical_type, ...element }) => {
    if (converted_type === "DECIMAL") return element;
    return {
      ...element,
      ...(converted_type && { converted_type }),
      ...(logical_type && { logical_type }),
    };
  });
  return { ...metadata, schema: [root, ...schema] };
}

function isColumn(element: SchemaElement | undefined, column: Column): boolean {
  if (element?.name !== column.name) return false;
  const { converted_type, scale, type } = element;
  switch (column.type) {
    case "boolean":
      return type === "BOOLEAN";
    case "day":
      return converted_type === "DATE";
    case "decimal":
      return (
        converted_type === "DECIMAL" &&
        type === "FIXED_LEN_BYTE_ARRAY" &&
        scale === (column.places ?? 6)
      );
    case "instant":
      return converted_type === "TIMESTAMP_MILLIS";
    case "integer":
      return type === "INT64" && converted_type === undefined;
    case "json":
    case "text":
      return converted_type === "UTF8";
  }
}

function cellOf({ places = 6, type }: Column, value: unknown): Cell {
  if (value === null || value === undefined) return null;
  return type === "decimal" && value instanceof Uint8Array ? decimal(value, places) : String(value);
}

/** Two's complement, big-endian. */
function decimal(bytes: Uint8Array, places: number): string {
  const digits = bytes.reduce((value, byte) => (value << 8n) | BigInt(byte), 0n);
  const amount = BigInt.asIntN(8 * bytes.length, digits);
  const text = String(amount < 0n ? -amount : amount).padStart(places + 1, "0");
  return `${amount < 0n ? "-" : ""}${text.slice(0, -places)}.${text.slice(-places)}`;
}

/** What the reader cannot make sense of, whatever it throws for it. */
async function understood<T>(reading: Promise<T>): Promise<T> {
  try {
    return await reading;
  } catch (error) {
    throw new Unreadable(`it is not Parquet that can be read: ${String(error)}`);
  }
}
