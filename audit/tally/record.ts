/** Fixed-width fields of set-aside records. */

/** Below it an amount fits into the lower half of its field, as nearly all do. */
const LOW_END = 2n ** 64n;

/**
 * In 16 bytes: charges and lines of less than 10^27 by their shape, and never a sum of them.
 * @throws Error outside −2^127 … 2^127−1, which would come back as another amount
 */
export function setAmount(view: DataView, at: number, amount: bigint): void {
  if (amount >= 0n && amount < LOW_END) {
    view.setBigUint64(at, 0n);
    view.setBigUint64(at + 8, amount);
    return;
  }
  if (BigInt.asIntN(128, amount) !== amount) throw new Error("record: an amount beyond 128 bits");
  view.setBigInt64(at, BigInt.asIntN(64, amount >> 64n));
  view.setBigUint64(at + 8, BigInt.asUintN(64, amount));
}

export function getAmount(view: DataView, at: number): bigint {
  return (view.getBigInt64(at) << 64n) | view.getBigUint64(at + 8);
}

/** Entries name the same few days and months, and reading one costs more than all that is done with it. */
const KNOWN_MAX = 1_000;

function knowing(read: (text: string) => number): (text: string) => number {
  const known = new Map<string, number>();
  return (text) => {
    const before = known.get(text);
    if (before !== undefined) return before;
    if (known.size >= KNOWN_MAX) known.clear();
    const number = read(text);
    known.set(text, number);
    return number;
  };
}

/** A month as a number of its order, in 4 bytes. */
export const monthNumber = knowing(
  (month) => Number(month.slice(0, 4)) * 12 + Number(month.slice(5, 7)) - 1,
);

export function monthOfNumber(number: number): string {
  const year = String(Math.floor(number / 12)).padStart(4, "0");
  return `${year}-${String((number % 12) + 1).padStart(2, "0")}-01`;
}

const DAY_MS = 86_400_000;
const FIRST_DAY_MS = Date.parse("0000-01-01");

/** A day, of the years 0000 … 9999, as a number of its order from 1, in 4 bytes; 0 for `""`. */
export const dayNumber = knowing((day) =>
  day === "" ? 0 : (Date.parse(day) - FIRST_DAY_MS) / DAY_MS + 1,
);

export function dayOfNumber(number: number): string {
  if (number === 0) return "";
  return new Date(FIRST_DAY_MS + (number - 1) * DAY_MS).toISOString().slice(0, 10);
}

/** Of a text with six decimals, in 10⁻⁶. */
export function micro(text: string): bigint {
  return BigInt(text.replace(".", ""));
}

/** As entries write it: six decimals, and a sign only below zero. */
export function writeMicro(amount: bigint): string {
  return writeDecimal(amount, 6);
}

/** Digits with a point before the last so many of them: at least one. */
export function writeDecimal(amount: bigint, places: number): string {
  const digits = String(amount < 0n ? -amount : amount).padStart(places + 1, "0");
  return `${amount < 0n ? "-" : ""}${digits.slice(0, -places)}.${digits.slice(-places)}`;
}
