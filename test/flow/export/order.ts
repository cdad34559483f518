/** Whether rows are in the order that core/export/tables.ts says, compared one by one. */
import { expect } from "vitest";
import {
  type Cell,
  type Column,
  ORDER,
  type Row,
  TABLES,
  type TableName,
} from "../../../src/core/export/tables.ts";

/** Strictly: no two are the same in what they are ordered by. */
export function expectInOrder(name: TableName, rows: readonly Row[]): void {
  for (const [i, row] of rows.entries()) {
    const before = rows[i - 1];
    if (before !== undefined) expect(compareRows(name, before, row)).toBe(-1);
  }
}

export function compareRows(name: TableName, a: Row, b: Row): number {
  for (const key of ORDER[name]) {
    const at = TABLES[name].findIndex((column) => column.name === key);
    const column = TABLES[name][at];
    if (column === undefined) throw new Error(`${name} has no ${key}`);
    const order = compareCells(column, a[at] ?? null, b[at] ?? null);
    if (order !== 0) return order;
  }
  return 0;
}

function compareCells({ name, type }: Column, a: Cell, b: Cell): number {
  if (a === b) return 0;
  if (a === null || b === null) return (a === null) === (name === "day") ? 1 : -1;
  if (type === "integer") return BigInt(a) < BigInt(b) ? -1 : 1;
  return Math.sign(Buffer.compare(Buffer.from(a), Buffer.from(b)));
}
