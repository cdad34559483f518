/** Fixed-width fields of set-aside records. */

/** −2^127 … 2^127−1, in 16 bytes: beyond what any duration times any factor comes to. */
export function setAmount(view: DataView, at: number, amount: bigint): void {
  view.setBigInt64(at, BigInt.asIntN(64, amount >> 64n));
  view.setBigUint64(at + 8, BigInt.asUintN(64, amount));
}

export function getAmount(view: DataView, at: number): bigint {
  return (view.getBigInt64(at) << 64n) | view.getBigUint64(at + 8);
}

/** A month as a number of its order, in 4 bytes. */
export function monthNumber(month: string): number {
  return Number(month.slice(0, 4)) * 12 + Number(month.slice(5, 7)) - 1;
}

export function monthOfNumber(number: number): string {
  const year = String(Math.floor(number / 12)).padStart(4, "0");
  return `${year}-${String((number % 12) + 1).padStart(2, "0")}-01`;
}

/** Of a text with six decimals, in 10⁻⁶. */
export function micro(text: string): bigint {
  return BigInt(text.replace(".", ""));
}

/** As entries write it: six decimals, and a sign only below zero. */
export function writeMicro(amount: bigint): string {
  const digits = String(amount < 0n ? -amount : amount).padStart(7, "0");
  return `${amount < 0n ? "-" : ""}${digits.slice(0, -6)}.${digits.slice(-6)}`;
}
