import fc from "fast-check";
import { expect, test } from "vitest";
import { charge } from "../../src/core/charge.ts";
import { formatFactor, lower, MONTHLY_SHARE, parseFactor } from "../../src/core/factor.ts";
import { milliseconds } from "../../src/core/unit.ts";

const natural = fc.bigInt({ min: 0n, max: 10n ** 9n - 1n });
const positive = fc.bigInt({ min: 1n, max: 10n ** 9n - 1n });

test.each([
  ["0", "0/1"],
  ["0.000", "0/1"],
  ["0/7", "0/1"],
  ["1", "1/1"],
  ["12", "12/1"],
  ["0.5", "1/2"],
  ["0.008", "1/125"],
  ["007", "7/1"],
  ["1/128", "1/128"],
  ["6/4", "3/2"],
  ["0.333333333", "333333333/1000000000"],
])("the factor %s is exactly %s", (text, fraction) => {
  const factor = parseFactor(text);
  expect(factor && formatFactor(factor)).toBe(fraction);
});

test.each(["", "1.", ".5", "-1", "+1", "1e3", "1/0", "0/0", "1/2/3", "1.5/2", " 1", "NaN", "0x1"])(
  "%j is no factor",
  (text) => {
    expect(parseFactor(text)).toBeUndefined();
  },
);

test("a fraction is reduced and keeps its value", () => {
  fc.assert(
    fc.property(natural, positive, (a, b) => {
      const { n, d } = parseFactor(`${a}/${b}`) ?? { n: -1n, d: 1n };
      expect(n * b).toBe(a * d);
      for (const prime of [2n, 3n, 5n, 7n, 11n, 13n]) {
        expect(n % prime === 0n && d % prime === 0n).toBe(false);
      }
    }),
  );
});

test("what an entry says of a factor reads back as the same factor", () => {
  fc.assert(
    fc.property(natural, positive, (a, b) => {
      const factor = parseFactor(`${a}/${b}`) ?? { n: -1n, d: 1n };
      expect(parseFactor(formatFactor(factor))).toEqual(factor);
    }),
  );
});

test("the lower of two factors is one of them and not above the other", () => {
  fc.assert(
    fc.property(natural, positive, natural, positive, (an, ad, bn, bd) => {
      const a = { n: an, d: ad };
      const b = { n: bn, d: bd };
      const least = lower(a, b);
      expect([a, b]).toContain(least);
      expect(least.n * ad <= an * least.d && least.n * bd <= bn * least.d).toBe(true);
    }),
  );
});

test("T30: 300,000 minutes at 10,000/300,000 are exactly 10,000 minutes", () => {
  const factor = parseFactor(MONTHLY_SHARE, 10_000n);
  expect(factor).toEqual({ n: 1n, d: 30n });
  const amount = factor && charge(milliseconds(300_000n * 60_000n), factor);
  expect(amount).toBe(10_000n * 60_000n * 1_000_000n);
});

test("a share of unlimited or unknown minutes says nothing", () => {
  expect(parseFactor(MONTHLY_SHARE, 0n)).toBeUndefined();
  expect(parseFactor(MONTHLY_SHARE)).toBeUndefined();
});
