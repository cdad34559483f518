/** Billable compute time in credits of so many compute minutes: derived, to ten decimals half even. */
import { halfEven } from "../rating.ts";
import { micro } from "../tally/record.ts";

const PLACES = 10;
const MICRO_PER_MINUTE = 60_000_000_000n;

/** @param compute_ms with six decimals, and a `-` where it is below zero */
export function creditsOf(compute_ms: string, minutes: bigint): string {
  const amount = micro(compute_ms);
  const size = (amount < 0n ? -amount : amount) * 10n ** BigInt(PLACES);
  const rounded = halfEven(size, MICRO_PER_MINUTE * minutes);
  const digits = String(rounded).padStart(PLACES + 1, "0");
  const sign = amount < 0n && rounded > 0n ? "-" : "";
  return `${sign}${digits.slice(0, -PLACES)}.${digits.slice(-PLACES)}`;
}
