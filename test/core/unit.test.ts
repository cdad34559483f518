import fc from "fast-check";
import { expect, test } from "vitest";
import {
  CHARGE_LIMIT,
  ChargeText,
  epochMs,
  InstantText,
  IntegerText,
  instantText,
  Kid,
  MonthText,
  monthOf,
  NonEmptyText,
  nextMonth,
  PositiveText,
  SaltText,
  SignedChargeText,
  SignedIntegerText,
  Text,
  Word,
} from "../../src/core/unit.ts";

const INT64_MAX = 2n ** 63n - 1n;

test("integers are those of a signed 64-bit column, in their one form", () => {
  fc.assert(
    fc.property(fc.bigInt({ min: 0n, max: 2n ** 65n }), (value) => {
      expect(IntegerText.safeParse(String(value)).success).toBe(value <= INT64_MAX);
      expect(SignedIntegerText.safeParse(String(-value)).success).toBe(value <= INT64_MAX);
    }),
  );
  for (const text of ["", "00", "01", "+1", "-0", "1.0", "1e3", " 1", "0x1", "１", "NaN"]) {
    expect(IntegerText.safeParse(text).success).toBe(false);
    expect(SignedIntegerText.safeParse(text).success).toBe(false);
  }
  expect(IntegerText.safeParse("-1").success).toBe(false);
  expect(PositiveText.safeParse("0").success).toBe(false);
});

test("hostile text is refused by every scalar and never thrown at the caller", () => {
  const scalars = [IntegerText, PositiveText, SignedIntegerText, InstantText, MonthText, Kid];
  fc.assert(
    fc.property(fc.string({ unit: "binary", maxLength: 40 }), (text) => {
      for (const scalar of scalars) expect(scalar.safeParse(`${text}x`).success).toBe(false);
    }),
  );
  expect(IntegerText.safeParse("x".repeat(20)).success).toBe(false);
});

test("an instant has milliseconds, ends in Z and exists", () => {
  const whole = fc.integer({ min: epochMs("0001-01-01T00:00:00.000Z"), max: 253_402_300_799_999 });
  fc.assert(
    fc.property(whole, (at) => {
      const text = instantText(at);
      expect(InstantText.safeParse(text).success).toBe(true);
      expect(epochMs(text)).toBe(at);
    }),
  );
  for (const text of [
    "2026-06-31T00:00:00.000Z",
    "2026-02-29T00:00:00.000Z",
    "2026-01-01T24:00:00.000Z",
    "2026-12-31T23:59:60.000Z",
    "2026-01-01T00:00:00Z",
    "2026-01-01T00:00:00.0000Z",
    "2026-01-01T00:00:00.000+00:00",
    "2026-13-01T00:00:00.000Z",
    "0000-06-01T00:00:00.000Z",
  ]) {
    expect(InstantText.safeParse(text).success).toBe(false);
  }
});

test("a day is in the calendar exactly if Date gives it back", () => {
  const two = (n: number): string => String(n).padStart(2, "0");
  for (const year of ["0001", "0004", "0100", "1900", "2000", "2026", "2028", "2100", "9999"]) {
    for (let month = 1; month <= 12; month += 1) {
      for (let day = 1; day <= 31; day += 1) {
        const text = `${year}-${two(month)}-${two(day)}T12:34:56.789Z`;
        const back = new Date(Date.parse(text)).toISOString();
        expect(InstantText.safeParse(text).success, text).toBe(back === text);
      }
    }
  }
});

test("the order of instants' texts is the order of time", () => {
  const at = fc.integer({ min: 0, max: 253_402_300_799_999 });
  fc.assert(
    fc.property(at, at, (a, b) => {
      expect(instantText(a) < instantText(b)).toBe(a < b);
    }),
  );
});

test("T22: the stroke of midnight belongs to the new month, a millisecond before to the old", () => {
  expect(monthOf("2026-02-01T00:00:00.000Z")).toBe("2026-02-01");
  expect(monthOf("2026-01-31T23:59:59.999Z")).toBe("2026-01-01");
});

test("T25: month after month skips none, from any day and over the year's end", () => {
  let month = monthOf("2026-01-31T12:00:00.000Z");
  const seen: string[] = [];
  for (let i = 0; i < 14; i += 1) {
    seen.push(month);
    expect(MonthText.safeParse(month).success).toBe(true);
    month = nextMonth(month);
  }
  expect(seen.slice(10)).toEqual(["2026-11-01", "2026-12-01", "2027-01-01", "2027-02-01"]);
  expect(nextMonth("0009-09-01")).toBe("0009-10-01");
});

test("a text is bounded in bytes and holds no control character and no lone surrogate", () => {
  expect(Text.safeParse("").success).toBe(true);
  expect(NonEmptyText.safeParse("").success).toBe(false);
  for (const text of ["é".repeat(127), "x".repeat(255), "ラベル", "😀".repeat(63)]) {
    expect(Text.safeParse(text).success).toBe(true);
  }
  for (const text of ["é".repeat(128), "x".repeat(256), "a\u0000", "\n", "\u007f", "\ud800"]) {
    expect(Text.safeParse(text).success).toBe(false);
    expect(Text.safeParse(`${"x".repeat(100)}${text}`).success).toBe(false);
  }
});

test("a failure reason that nobody knows yet is taken, other characters are not", () => {
  for (const word of ["", "runner_system_failure", "brand_new_reason_2030"]) {
    expect(Word.safeParse(word).success).toBe(true);
  }
  for (const word of ["A", "a b", "a-b", "x".repeat(65)]) {
    expect(Word.safeParse(word).success).toBe(false);
  }
});

test("a salt is 16 bytes and a kid 32, each in its one encoding", () => {
  expect(SaltText.safeParse("AAAAAAAAAAAAAAAAAAAAAA==").success).toBe(true);
  for (const salt of ["AAAAAAAAAAAAAAAAAAAAAB==", "AAAAAAAAAAAAAAAAAAAAAA", "AAAA"]) {
    expect(SaltText.safeParse(salt).success).toBe(false);
  }
  expect(Kid.safeParse("A".repeat(43)).success).toBe(true);
  expect(Kid.safeParse(`${"A".repeat(42)}B`).success).toBe(false);
});

test("of charges and lines as many as a log can hold have a sum that columns hold, and one fits a record", () => {
  const greatest = `${"9".repeat(21)}.999999`;
  expect(ChargeText.safeParse(greatest).success).toBe(true);
  expect(SignedChargeText.safeParse(`-${greatest}`).success).toBe(true);
  expect(BigInt(greatest.replace(".", ""))).toBe(CHARGE_LIMIT - 1n);
  expect(INT64_MAX * CHARGE_LIMIT).toBeLessThan(10n ** 46n);
  expect(CHARGE_LIMIT).toBeLessThan(2n ** 127n);
  for (const text of [`1${"0".repeat(21)}.000000`, `${"9".repeat(40)}.000000`]) {
    expect(ChargeText.safeParse(text).success).toBe(false);
    expect(SignedChargeText.safeParse(text).success).toBe(false);
    expect(SignedChargeText.safeParse(`-${text}`).success).toBe(false);
  }
  expect(ChargeText.safeParse("-1.000000").success).toBe(false);
  expect(SignedChargeText.safeParse("-0.000000").success).toBe(false);
});
