import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, expect, test } from "vitest";
import { exportsOf } from "../src/config-exports.ts";
import { PRICE_LIST, prices } from "./format/focus/sample.ts";

const folder = mkdtempSync(join(tmpdir(), "minutebook-prices-"));
afterAll(() => rmSync(folder, { recursive: true }));

function withPrices(text: string) {
  const file = join(folder, "prices.json");
  writeFileSync(file, text);
  return exportsOf({ EXPORT_DAYS: 90, PRICE_LIST_FILE: file });
}

test("a price list is read whole, and known by the hash of its file", () => {
  const { prices: read } = withPrices(JSON.stringify(PRICE_LIST));
  expect(read?.sha256).toBe(prices().sha256);
  expect(read?.listed("runner/any", "2026-11-01")).toBe(100_000_000n);
});

test("without a price list there is none", () => {
  expect(exportsOf({ EXPORT_DAYS: 90 }).prices).toBeUndefined();
});

test.each([
  ["no JSON", "{"],
  ["a shape of its own", JSON.stringify({ ...PRICE_LIST, list: [] })],
  ["a currency that no country has", JSON.stringify({ ...PRICE_LIST, currency: "ZZZ" })],
])("a price list with %s is refused by its file's name", (_, text) => {
  expect(() => withPrices(text)).toThrow(/prices\.json: /);
});
