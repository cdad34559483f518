import fc from "fast-check";
import { expect, test } from "vitest";
import { MINUTE, signedComputeMinutes } from "../../../src/core/charge.ts";
import { shownParts } from "../../../src/core/month/rounding.ts";

const HUNDREDTH = MINUTE / 100n;
const part = fc.bigInt({ min: -(10n ** 30n), max: 10n ** 30n });

/** Hundredths of a minute that a text of two decimals says. */
function hundredths(text: string): bigint {
  return BigInt(text.replace(".", ""));
}

test("T31: parts that are shown with two decimals add up to the sum as it is shown", () => {
  fc.assert(
    fc.property(fc.array(part, { minLength: 1, maxLength: 12 }), (parts) => {
      const shown = shownParts(parts);
      const sum = parts.reduce((total, each) => total + each, 0n);
      const added = shown.reduce((total, text) => total + hundredths(text), 0n);
      expect(added).toBe(hundredths(signedComputeMinutes(sum, 2)));
      for (const [at, text] of shown.entries()) {
        const difference = hundredths(text) * HUNDREDTH - (parts[at] ?? 0n);
        expect(difference > -HUNDREDTH && difference < HUNDREDTH).toBe(true);
      }
    }),
    { numRuns: 2_000 },
  );
});

test("T31: 1.25, 1.13 and 0.13 halves go to the largest remainders, and to the first among equals", () => {
  const halves = [125n, 113n, 13n].map((half) => (half * HUNDREDTH) / 2n);
  expect(shownParts(halves)).toEqual(["0.63", "0.57", "0.06"]);
  expect(shownParts([])).toEqual([]);
});
