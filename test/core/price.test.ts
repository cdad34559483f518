import { expect, test } from "vitest";
import { Prices } from "../../src/core/price.ts";

const LIST = {
  v: "1",
  currency: "EUR",
  provider: "GitLab",
  accounts: { "A-1": { name: "Acme" } },
  list: [
    { sku: "runner/*", effective_from: "2026-01-01", unit_price: "0.01" },
    { sku: "runner/*", effective_from: "2026-11-15", unit_price: "0.02" },
    { sku: "runner/macos", effective_from: "2026-01-01", unit_price: "0.0000000001" },
  ],
  contracted: [
    { sku: "runner/*", effective_from: "2026-06-01", unit_price: "0.009" },
    { sku: "runner/*", effective_from: "2026-06-01", account_id: "A-1", unit_price: "7" },
  ],
};

function pricesOf(change: object): Prices {
  return new Prices(JSON.stringify({ ...LIST, ...change }));
}

test("a price holds from the first instant of its day until the next one of the same", () => {
  const prices = pricesOf({});
  expect(prices.listed("runner/linux", "2026-11-14")).toBe(100_000_000n);
  expect(prices.listed("runner/linux", "2026-11-15")).toBe(200_000_000n);
});

test("what has a price of its own does not cost what all others do", () => {
  expect(pricesOf({}).listed("runner/macos", "2026-11-15")).toBe(1n);
});

test("an account pays by its contract, else as all that have none, else as listed", () => {
  const prices = pricesOf({});
  expect(prices.contracted("runner/linux", "2026-06-01", "A-1")).toBe(70_000_000_000n);
  expect(prices.contracted("runner/linux", "2026-06-01", "A-2")).toBe(90_000_000n);
  expect(prices.contracted("runner/linux", "2026-05-31", "A-1")).toBe(100_000_000n);
});

test("what has no price is no-price, and what all runners cost is no price of a pack", () => {
  const prices = pricesOf({});
  expect(() => prices.listed("runner/linux", "2025-12-31")).toThrow("no-price");
  expect(() => prices.contracted("pack", "2026-11-01", "A-1")).toThrow("no-price");
});

test.each([
  ["a price that is no decimal of ten places", { list: [{ ...LIST.list[0], unit_price: "1e-2" }] }],
  ["more places than are kept", { list: [{ ...LIST.list[0], unit_price: "0.00000000001" }] }],
  ["a price below zero", { list: [{ ...LIST.list[0], unit_price: "-1" }] }],
  ["two prices of one thing from one day on", { list: [LIST.list[0], LIST.list[0]] }],
  ["two contracts of one account", { contracted: [LIST.contracted[1], LIST.contracted[1]] }],
  ["a day that does not exist", { list: [{ ...LIST.list[0], effective_from: "2026-02-30" }] }],
  ["what is neither a runner nor a pack", { list: [{ ...LIST.list[0], sku: "linux" }] }],
  ["a member that nobody knows", { discount: "0.1" }],
])("a price list with %s is refused", (_, change) => {
  expect(() => pricesOf(change)).toThrow();
});

test("an account is called what the list says, and one that it does not name is not called anything", () => {
  const prices = pricesOf({});
  expect(prices.nameOf("A-1")).toBe("Acme");
  expect(prices.nameOf("constructor")).toBeUndefined();
});

test("the hash is of the file's bytes, so that two that say the same in other words are two", () => {
  const text = JSON.stringify(LIST);
  expect(new Prices(text).sha256).not.toBe(new Prices(`${text}\n`).sha256);
});
