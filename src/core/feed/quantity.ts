/** Charges in units that others count in: for showing, never for adding up. */
import { MINUTE } from "../charge.ts";

/** The smallest charge, 10⁻⁶ compute-milliseconds, is 1.7 × 10⁻¹¹ minutes: no charge becomes a quantity of 0. */
const MINUTE_PLACES = 12;
const CREDIT_PLACES = 10;

/** Compute minutes of an amount in 10⁻⁶ compute-milliseconds, signed, half even to twelve decimals. */
export function minutesOf(amount: bigint): string {
  return quotient(amount, MINUTE, MINUTE_PLACES);
}

/**
 * As `minutesOf`, in credits of so many compute minutes, to ten decimals.
 * @param minutes 1 or more
 */
export function creditsOf(amount: bigint, minutes: bigint): string {
  return quotient(amount, MINUTE * minutes, CREDIT_PLACES);
}

/** Half even; never `-0.000…`. */
function quotient(amount: bigint, unit: bigint, places: number): string {
  const magnitude = (amount < 0n ? -amount : amount) * 10n ** BigInt(places);
  const [floor, twice] = [magnitude / unit, 2n * (magnitude % unit)];
  const isUp = twice === unit ? floor % 2n === 1n : twice > unit;
  const rounded = isUp ? floor + 1n : floor;
  const digits = String(rounded).padStart(places + 1, "0");
  const sign = amount < 0n && rounded > 0n ? "-" : "";
  return `${sign}${digits.slice(0, -places)}.${digits.slice(-places)}`;
}
