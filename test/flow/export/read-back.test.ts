/** T54: what was exported, read by a program that is none of ours. */
import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import fc from "fast-check";
import { afterAll, beforeAll, expect, test } from "vitest";
import type { Column, Row } from "../../../src/core/export/tables.ts";
import { entries } from "../../../src/flow/export/entries.ts";
import { writeCsv } from "../../../src/format/csv.ts";
import { writeParquet } from "../../../src/format/parquet.ts";
import { bytesOf, HOSTILE, hostile, pagesFrom } from "../../format/sheet.ts";
import { type FreshDatabase, freshDatabase } from "../../postgres.ts";
import { csvFile, openReader, type Reader } from "./duckdb.ts";
import { inSnapshot, insertLines, insertUsages, made, rowsOf } from "./usages.ts";

let db: FreshDatabase;
let folder: string;
let reader: Reader;

beforeAll(async () => {
  db = await freshDatabase();
  folder = await mkdtemp(join(tmpdir(), "minutebook-read-back-"));
  reader = await openReader();
});
afterAll(async () => {
  reader.close();
  await rm(folder, { recursive: true });
  await db.drop();
});

const COLUMNS: readonly Column[] = [
  { name: "id", type: "integer" },
  { name: "name", type: "text", nullable: true },
  { name: "amount", type: "decimal", nullable: true },
  { name: "credits", type: "decimal", places: 10 },
  { name: "at", type: "instant" },
  { name: "day", type: "day", nullable: true },
  { name: "sealed", type: "boolean" },
  { name: "packs", type: "json" },
];

function decimal(digits: bigint, places: number): string {
  const text = String(digits < 0n ? -digits : digits).padStart(places + 1, "0");
  return `${digits < 0n ? "-" : ""}${text.slice(0, -places)}.${text.slice(-places)}`;
}

const instant = fc
  .date({ min: new Date("1970-01-01Z"), max: new Date("9999-12-31Z"), noInvalidDate: true })
  .map((date) => date.toISOString());
const digits = fc.bigInt({ min: -(10n ** 38n) + 1n, max: 10n ** 38n - 1n });
const row = fc.tuple(
  fc.bigInt({ min: 0n, max: 2n ** 63n - 1n }).map(String),
  fc.option(hostile),
  fc.option(digits.map((each) => decimal(each, 6))),
  digits.map((each) => decimal(each, 10)),
  instant,
  fc.option(instant.map((text) => text.slice(0, 10))),
  fc.boolean().map(String),
  hostile.map((text) => JSON.stringify([{ drawn: "1.000000", pack: text }])),
);

test("names, large numbers and instants of every kind survive CSV and Parquet", async () => {
  const rows = [
    ...fc.sample(row, 400),
    ...HOSTILE.map(
      (name): Row => [
        ...["1", name, null, "0.0000000000", "2026-11-01T00:00:00.000Z", null, "true", "[]"],
      ],
    ),
  ];
  const [csv, parquet] = [join(folder, "any.csv"), join(folder, "any.parquet")];
  await writeFile(csv, await bytesOf(writeCsv(COLUMNS, pagesFrom(rows))));
  await writeFile(parquet, await bytesOf(writeParquet(COLUMNS, pagesFrom(rows))));
  expect(await reader.csv(csv, COLUMNS)).toEqual(rows);
  expect(await reader.parquet(parquet, COLUMNS)).toEqual(rows);
});

test("a sheet without rows is a file that has its columns", async () => {
  const [csv, parquet] = [join(folder, "none.csv"), join(folder, "none.parquet")];
  await writeFile(csv, await bytesOf(writeCsv(COLUMNS, pagesFrom([]))));
  await writeFile(parquet, await bytesOf(writeParquet(COLUMNS, pagesFrom([]))));
  expect(await reader.csv(csv, COLUMNS)).toEqual([]);
  expect(await reader.parquet(parquet, COLUMNS)).toEqual([]);
});

test("an export of entries is read back row by row, and to the totals that were counted", async () => {
  const origin = { log: "f".repeat(32), asOf: 2_000n, parameters: {} };
  await insertUsages(db.owner, origin.log, { from: 0, to: 2_100 }, HOSTILE);
  await insertLines(db.owner, origin.log, 1_500, 40);
  const { columns, rows } = await inSnapshot(db.reader, async (tx) => {
    const sheet = entries({ tx, ...origin });
    return { columns: sheet.columns, rows: await rowsOf(sheet) };
  });
  for (const format of ["csv", "parquet"] as const) {
    const path = join(folder, `entries.${format}`);
    const { bytes, totals, ...counted } = await made(db.reader, entries, origin, format);
    await writeFile(path, bytes);
    expect(counted.rows).toBe(2_040n);
    expect(await reader[format](path, columns)).toEqual(rows);
    const from = format === "csv" ? csvFile(path, columns) : `read_parquet('${path}')`;
    for (const column of columns.filter(({ summed }) => summed)) {
      const places = column.type === "decimal" ? "" : ".000000";
      expect(await reader.sum(from, column)).toBe(`${totals[column.name]}${places}`);
    }
  }
});
