import { parquetMetadata } from "hyparquet";
import { expect, test } from "vitest";
import type { Column, Page, Row } from "../../src/core/export/tables.ts";
import { writeParquet } from "../../src/format/parquet.ts";
import { bytesOf, pagesFrom } from "./sheet.ts";

const NUMBERS: readonly Column[] = [
  { name: "n", type: "integer" },
  { name: "d", type: "decimal" },
];

const file = async (columns: readonly Column[], rows: readonly Row[]): Promise<Buffer> =>
  await bytesOf(writeParquet(columns, pagesFrom(rows)));

test("a figure that its type cannot hold is refused, never rounded", async () => {
  const most = "99999999999999999999999999999999.999999";
  const [largest, decimal] = [String(2n ** 63n - 1n), "0.000000"];
  await expect(file(NUMBERS, [[largest, most]])).resolves.toBeInstanceOf(Buffer);
  await expect(file(NUMBERS, [[`-${largest}`, `-${most}`]])).resolves.toBeInstanceOf(Buffer);
  await expect(file(NUMBERS, [[String(2n ** 63n), decimal]])).rejects.toThrow(RangeError);
  const more = "100000000000000000000000000000000.000000";
  await expect(file(NUMBERS, [["0", more]])).rejects.toThrow(RangeError);
});

test("nothing where there has to be something is refused", async () => {
  await expect(file(NUMBERS, [["1", null]])).rejects.toThrow("d is nothing");
});

test("rows are written a group at a time, as they come, and the same rows are the same bytes", async () => {
  const page = Array.from({ length: 1_000 }, (_, i): Row => [String(i), "0.000001"]);
  let asked = 0;
  async function* pages(): AsyncGenerator<Page> {
    for (; asked < 45; asked += 1) yield page;
  }
  const writing = writeParquet(NUMBERS, pages());
  const first = await writing.next();
  expect(asked).toBeLessThan(15);
  const rest = await bytesOf(writing);
  const bytes = Buffer.concat([first.value ?? new Uint8Array(), rest]);
  const { num_rows, row_groups } = parquetMetadata(new Uint8Array(bytes).buffer);
  expect(num_rows).toBe(45_000n);
  expect(row_groups.map((group) => group.num_rows)).toEqual([
    10_000n,
    10_000n,
    10_000n,
    10_000n,
    5_000n,
  ]);
  asked = 0;
  expect((await bytesOf(writeParquet(NUMBERS, pages()))).equals(bytes)).toBe(true);
});

test("of many columns a group has fewer rows: memory knows at most as many cells", async () => {
  const columns = Array.from({ length: 100 }, (_, at): Column => ({ name: `c${at}`, type: "day" }));
  const rows = Array.from({ length: 4_500 }, (): Row => columns.map(() => "2026-11-01"));
  const bytes = await file(columns, rows);
  const { row_groups } = parquetMetadata(new Uint8Array(bytes).buffer);
  expect(row_groups.map((group) => group.num_rows)).toEqual([2_000n, 2_000n, 500n]);
});
