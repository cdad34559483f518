/** Rows in their order, and as CSV. */
import {
  type Cell,
  type Column,
  ORDER,
  type Row,
  TABLES,
  type TableName,
} from "../../../src/core/export/tables.ts";
import { csv } from "../../../src/format/csv.ts";

export type Cells = Record<string, Cell>;

export function rowsOf(name: TableName, cells: readonly Cells[]): Row[] {
  return sorted(name, cells).map((row) => TABLES[name].map((column) => row[column.name] || null));
}

/** By `ORDER`: as numbers where all digits are, and else as bytes; nothing first, but for a day. */
export function sorted(name: TableName, rows: readonly Cells[]): Cells[] {
  return rows.toSorted((a, b) => {
    for (const column of ORDER[name]) {
      const [left, right] = [a[column] || null, b[column] || null];
      if (left === right) continue;
      if (left === null || right === null) return (left === null) === (column === "day") ? 1 : -1;
      const type = TABLES[name].find((each) => each.name === column)?.type;
      if (type === "integer") return BigInt(left) < BigInt(right) ? -1 : 1;
      return Buffer.compare(Buffer.from(left), Buffer.from(right));
    }
    return 0;
  });
}

export function csvOf(columns: readonly Column[], rows: readonly Row[]): string {
  return csv([
    columns.map(({ name }) => name),
    ...rows.map((row) => row.map((cell) => cell ?? "")),
  ]);
}
