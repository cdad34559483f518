/** A Parquet file may say in a few bytes that it has more rows than memory. */
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { ByteWriter, ParquetWriter } from "hyparquet-writer";
import { expect, onTestFinished, test } from "vitest";
import { readParquet } from "../../../../audit/export/file/parquet.ts";
import { Unreadable } from "../../../../audit/export/unreadable.ts";
import type { Column } from "../../../../src/core/export/tables.ts";

const COLUMNS: readonly Column[] = [{ name: "n", type: "integer" }];

/** So many rows of one number, all in one group. */
async function oneGroup(rows: number): Promise<Uint8Array> {
  const sink = new ByteWriter();
  const schema = [
    { name: "root", num_children: 1 },
    { name: "n", type: "INT64", repetition_type: "REQUIRED" } as const,
  ];
  const file = new ParquetWriter({ writer: sink, schema });
  const data = new Array(rows).fill(7n);
  await file.write({ columnData: [{ name: "n", data }], rowGroupSize: rows });
  await file.finish();
  return sink.getBytes();
}

async function rowsRead(bytes: Uint8Array): Promise<number> {
  const folder = mkdtempSync(join(tmpdir(), "minutebook-parquet-"));
  onTestFinished(() => rmSync(folder, { recursive: true }));
  writeFileSync(join(folder, "file"), bytes);
  let rows = 0;
  for await (const row of readParquet(join(folder, "file"), COLUMNS)) rows += row.length;
  return rows;
}

test("a group of more rows than the service writes is not read, however few bytes it has", async () => {
  expect(await rowsRead(await oneGroup(10_000))).toBe(10_000);
  const large = await oneGroup(1_000_000);
  expect(large.length).toBeLessThan(10_000);
  const before = process.memoryUsage().heapUsed;
  await expect(rowsRead(large)).rejects.toThrow(Unreadable);
  expect(process.memoryUsage().heapUsed - before).toBeLessThan(16 * 1024 * 1024);
});
