/** DuckDB, a reader of files that is none of ours: every column as text. */
import { DuckDBInstance } from "@duckdb/node-api";
import type { Column, Row } from "../../../src/core/export/tables.ts";
import { importedCell } from "../../../src/format/csv.ts";

export interface Reader {
  /** Rows in the order of the file, their cells as core/export/tables.ts writes them. */
  parquet(path: string, columns: readonly Column[]): Promise<Row[]>;
  /** The same of CSV, an apostrophe taken away where there is one. */
  csv(path: string, columns: readonly Column[]): Promise<Row[]>;
  /** The sum of a column that is a decimal or an integer, added by DuckDB. */
  sum(from: string, column: Column): Promise<string>;
  close(): void;
}

export async function openReader(): Promise<Reader> {
  const instance = await DuckDBInstance.create(":memory:");
  const connection = await instance.connect();
  const rows = async (columns: readonly string[], from: string): Promise<Row[]> => {
    // Behind a point, because its client for Node takes a byte order mark for one at the beginning of any text.
    const texts = columns.map((column) => `'.' || ${column}`);
    const read = await connection.runAndReadAll(`select ${texts.join(", ")} from ${from}`);
    const cells = read.getRowsJson() as (string | null)[][];
    return cells.map((row) => row.map((cell) => cell?.slice(1) ?? null));
  };
  return {
    parquet: (path, columns) => rows(columns.map(textOf), `read_parquet('${path}')`),
    csv: async (path, columns) => {
      const read = await rows(columns.map(nameOf), csvFile(path, columns));
      return read.map((row) => row.map((cell) => cell && importedCell(cell)));
    },
    sum: async (from, { name }) => {
      const [row] = await rows([`sum("${name}"::decimal(38, 6))::varchar`], from);
      return row?.[0] ?? "";
    },
    close: () => {
      connection.closeSync();
      instance.closeSync();
    },
  };
}

/** Nothing is guessed: how a file is written is known. */
export function csvFile(path: string, columns: readonly Column[]): string {
  const form = `delim = ',', quote = '"', escape = '"', new_line = '\\r\\n', header = true`;
  const texts = columns.map(({ name }) => `'${name}': 'varchar'`).join(", ");
  return `read_csv('${path}', ${form}, columns = {${texts}}, auto_detect = false, parallel = false)`;
}

function textOf(column: Column): string {
  if (column.type !== "instant") return `${nameOf(column)}::varchar`;
  return `strftime(make_timestamp_ms(epoch_ms(${nameOf(column)})), '%Y-%m-%dT%H:%M:%S.%gZ')`;
}

function nameOf({ name }: Column): string {
  return `"${name}"`;
}
