import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { durationMs } from "../../src/core/duration.ts";

describe("durationMs", () => {
  test.each([
    ["0", 0n],
    ["0.0", 0n],
    ["0e999999999999999999999999", 0n],
    ["2.5e-7", 0n],
    ["0.0004999999", 0n],
    ["0.0005", 1n],
    ["5e-4", 1n],
    ["0.5005", 501n],
    ["1.0594999999999999", 1_059n],
    ["1E3", 1_000_000n],
    ["1e+3", 1_000_000n],
    ["599.999999999", 600_000n],
    ["9223372036854775.807", 2n ** 63n - 1n],
    ["9223372036854775.8074999", 2n ** 63n - 1n],
    ["1e-400", 0n],
    [`0.${"0".repeat(5000)}1e5001`, 1_000n],
  ])("%s seconds", (seconds, ms) => {
    expect(durationMs(seconds)).toBe(ms);
  });

  test.each([
    "1e400",
    "9223372036854775.8075",
    "1e999999999999999",
    "-1",
    "1.",
    ".5",
    "NaN",
    "",
    " 1",
  ])("%j is no duration", (seconds) => {
    expect(durationMs(seconds)).toBeUndefined();
  });

  test("is the exact fraction, rounded half up, for whatever digits and exponent", () => {
    const digits = fc.stringMatching(/^[0-9]{1,12}$/);
    fc.assert(
      fc.property(digits, digits, fc.integer({ min: -20, max: 6 }), (whole, fraction, exponent) => {
        // milliseconds = numerator / 10^scale, all of it in whole numbers
        const scale = 40n;
        const power = scale + BigInt(3 + exponent - fraction.length);
        const numerator = BigInt(whole + fraction) * 10n ** power;
        const expected = (2n * numerator + 10n ** scale) / (2n * 10n ** scale);
        expect(durationMs(`${whole}.${fraction}e${exponent}`)).toBe(
          expected < 2n ** 63n ? expected : undefined,
        );
      }),
    );
  });
});
