import fc from "fast-check";
import { expect, test } from "vitest";
import {
  charge,
  computeMinutes,
  formatComputeMs,
  formatSignedComputeMs,
  parseComputeMs,
  signedComputeMinutes,
} from "../../src/core/charge.ts";
import type { Factor } from "../../src/core/factor.ts";
import { computeMs, milliseconds } from "../../src/core/unit.ts";

const duration = fc.bigInt({ min: 0n, max: 2n ** 63n - 1n });
const factor = fc.record({
  n: fc.bigInt({ min: 0n, max: 10n ** 9n }),
  d: fc.oneof(fc.bigInt({ min: 1n, max: 10n ** 9n }), fc.constantFrom(2n, 128n, 2_000_000n)),
});
const charged = (ms: bigint, by: Factor): string => formatComputeMs(charge(milliseconds(ms), by));

test("a charge is the nearest millionth, and of two equally near ones the even", () => {
  fc.assert(
    fc.property(duration, factor, (ms, { n, d }) => {
      // In units of 10⁻⁶/2d everything is whole: the exact value, and each candidate's distance.
      const exact = 2n * ms * n * 1_000_000n;
      const distance = (micro: bigint): bigint => {
        const apart = exact - 2n * d * micro;
        return apart < 0n ? -apart : apart;
      };
      const amount = charge(milliseconds(ms), { n, d });
      expect(distance(amount) <= d).toBe(true);
      expect(distance(amount) === d && amount % 2n === 1n).toBe(false);
    }),
  );
});

test.each([
  ["1", "0.007812"],
  ["3", "0.023438"],
  ["5", "0.039062"],
  ["7", "0.054688"],
])("the tie of %s ms at 1/128 goes to the even %s", (ms, amount) => {
  expect(charged(BigInt(ms), { n: 1n, d: 128n })).toBe(amount);
});

test("T29: 100,000 builds at 0.008 sum up the same forward and backward, to the exact figure", () => {
  const builds = Array.from({ length: 100_000 }, (_, i) => milliseconds(BigInt(i * 7 + 1)));
  const amounts = builds.map((ms) => charge(ms, { n: 1n, d: 125n }));
  const forward = amounts.reduce((sum, amount) => sum + amount, 0n);
  const backward = amounts.reduceRight((sum, amount) => sum + amount, 0n);
  expect(forward).toBe(backward);
  expect(forward).toBe(builds.reduce((sum, ms) => sum + ms, 0n) * 8_000n);
});

test("T32: a billion hours at factor 12 stay exact, far beyond 2^53", () => {
  const one = charge(milliseconds(3_600_000n), { n: 12n, d: 1n });
  const sum = computeMs(one * 1_000_000_000n);
  expect(formatComputeMs(sum)).toBe("43200000000000000.000000");
  expect(computeMinutes(sum)).toBe("720000000000.0000");
});

test("T33: no text but a plain decimal becomes an amount", () => {
  for (const text of ["NaN", "Infinity", "1e400", "-1.000000", "", "1.0000000", " 1"]) {
    expect(() => parseComputeMs(text)).toThrow();
  }
});

test("G34: many one-second jobs at 0.008 are not rounded away one by one", () => {
  const one = charge(milliseconds(1_000n), { n: 1n, d: 125n });
  expect(computeMinutes(computeMs(one * 7_500n))).toBe("1.0000");
});

test("the longest build at the highest factor of a card has its 28 digits before the point", () => {
  expect(charged(2n ** 63n - 1n, { n: 999_999_999n, d: 1n })).toBe(
    "9223372027631403770145224193.000000",
  );
});

test("an amount has six decimals, and reads back as itself", () => {
  expect(formatComputeMs(computeMs(0n))).toBe("0.000000");
  fc.assert(
    fc.property(fc.bigInt({ min: 0n, max: 10n ** 45n }), (micro) => {
      const text = formatComputeMs(computeMs(micro));
      expect(text).toMatch(/^[0-9]+\.[0-9]{6}$/);
      expect(parseComputeMs(text)).toBe(micro);
    }),
  );
});

test("the database's zero and shorter decimals read as amounts", () => {
  expect(parseComputeMs("0")).toBe(0n);
  expect(parseComputeMs("1.5")).toBe(1_500_000n);
});

test("compute minutes are half up from the exact sum", () => {
  fc.assert(
    fc.property(
      fc.bigInt({ min: 0n, max: 10n ** 30n }),
      fc.integer({ min: 1, max: 8 }),
      (micro, places) => {
        const shown = BigInt(computeMinutes(computeMs(micro), places).replace(".", ""));
        // shown − ½ ≤ exact < shown + ½, all times 2 × 60,000,000,000 of the last place
        const exact = 2n * micro * 10n ** BigInt(places);
        const unit = 60_000_000_000n;
        expect((2n * shown - 1n) * unit <= exact && exact < (2n * shown + 1n) * unit).toBe(true);
      },
    ),
  );
  expect(computeMinutes(computeMs(3_000_000n))).toBe("0.0001");
  expect(computeMinutes(computeMs(2_999_999n))).toBe("0.0000");
});

test("no charge is below zero", () => {
  expect(() => computeMs(-1n)).toThrow();
  expect(() => milliseconds(-1n)).toThrow();
  expect(() => milliseconds(2n ** 63n)).toThrow();
});

test("what is below zero is written as what is above, with a sign, and zero never has one", () => {
  fc.assert(
    fc.property(
      fc.bigInt({ min: 0n, max: 10n ** 45n }),
      fc.integer({ min: 1, max: 8 }),
      (n, places) => {
        const amount = computeMs(n);
        expect(formatSignedComputeMs(n)).toBe(formatComputeMs(amount));
        expect(signedComputeMinutes(n, places)).toBe(computeMinutes(amount, places));
        expect(formatSignedComputeMs(-n)).toBe(`${n === 0n ? "" : "-"}${formatComputeMs(amount)}`);
        const minutes = computeMinutes(amount, places);
        expect(signedComputeMinutes(-n, places)).toBe(
          BigInt(minutes.replace(".", "")) === 0n ? minutes : `-${minutes}`,
        );
      },
    ),
  );
  expect(signedComputeMinutes(-2_999_999n)).toBe("0.0000");
  expect(signedComputeMinutes(-3_000_000n)).toBe("-0.0001");
});
