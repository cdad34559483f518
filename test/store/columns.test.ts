import fc from "fast-check";
import { afterAll, beforeAll, expect, test } from "vitest";
import { bytesColumn, plainColumn, textColumn } from "../../src/store/columns.ts";
import { type FreshDatabase, freshDatabase } from "../postgres.ts";

let database: FreshDatabase;
beforeAll(async () => {
  database = await freshDatabase();
});
afterAll(() => database.drop());

/** What PostgreSQL can hold at all: well-formed, without NUL. */
const text = fc
  .string({ unit: "grapheme", maxLength: 12 })
  .filter((value) => !value.includes("\0"));

test("any text comes out of the array as it went in, also empty, null, quotes and braces", async () => {
  const awkward = fc.constantFrom(
    "",
    "null",
    "NULL",
    '"',
    "\\",
    "{}",
    ",",
    " a ",
    "é\n",
    undefined,
  );
  await fc.assert(
    fc.asyncProperty(fc.array(fc.oneof(text, awkward)), async (values) => {
      const rows = await database.reader<{ value: string | null }[]>`
        select value from unnest(${textColumn(values)}::text::text[]) with ordinality as t (value, n)
        order by n`;
      expect(rows.map(({ value }) => value ?? undefined)).toEqual(values);
    }),
    { numRuns: 50 },
  );
});

test("integers to the last of 64 bits, and their absence, come out as they went in", async () => {
  const values = [0n, 9_007_199_254_740_993n, 2n ** 63n - 1n, -(2n ** 63n), undefined];
  const rows = await database.reader<{ value: bigint | null }[]>`
    select value from unnest(${plainColumn(values)}::text::bigint[]) as t (value)`;
  expect(rows.map(({ value }) => value ?? undefined)).toEqual(values);
});

test("bytes come out as they went in, also those of a part of a larger buffer", async () => {
  const part = fc.uint8Array({ minLength: 1, maxLength: 80 }).map((bytes) => {
    const whole = new Uint8Array(bytes.length + 7);
    whole.set(bytes, 3);
    return whole.subarray(3, 3 + bytes.length);
  });
  await fc.assert(
    fc.asyncProperty(fc.array(part), async (values) => {
      const rows = await database.reader<{ value: Uint8Array }[]>`
        select decode(value, 'base64') as value
        from unnest(${bytesColumn(values)}::text::text[]) with ordinality as t (value, n)
        order by n`;
      expect(rows.map(({ value }) => [...value])).toEqual(values.map((value) => [...value]));
    }),
    { numRuns: 50 },
  );
});
