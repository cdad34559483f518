/** Milliseconds from the decimal text of seconds, without a float on the way. */

const NUMBER = /^([0-9]+)(?:\.([0-9]+))?(?:[eE]([+-]?[0-9]+))?$/;
const INT64_MAX = 2n ** 63n - 1n;
const INT64_DIGITS = 19;
/** Seconds to milliseconds: the point moves by three. */
const MILLI_SHIFT = 3;

/**
 * Half up, from a JSON number without a sign (RFC 8259 §6), exponents of any size included.
 * Undefined for any other text, and
 * when the result passes 2^63−1.
 */
export function durationMs(seconds: string): bigint | undefined {
  const [, whole, fraction = "", exponent = "0"] = NUMBER.exec(seconds) ?? [];
  if (whole === undefined) return undefined;
  const digits = `${whole}${fraction}`.replace(/^0+/, "");
  if (digits === "") return 0n;
  // A number of digits and an exponent are compared first: nobody writes out 10^999999999.
  const point = digits.length - fraction.length + MILLI_SHIFT + Number(exponent);
  if (point > INT64_DIGITS) return undefined;
  if (point < 0) return 0n;
  const rounded =
    BigInt(digits.slice(0, point).padEnd(point, "0") || "0") +
    (digits.charAt(point) >= "5" ? 1n : 0n);
  return rounded <= INT64_MAX ? rounded : undefined;
}
