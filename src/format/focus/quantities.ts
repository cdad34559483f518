/**
 * Compute minutes as FOCUS shows them. An amount is rarely a decimal of minutes, and a unit price is a decimal of
 * minutes alone: so each row is what its running sum, rounded, grew by. No row is off by more than the last
 * digit, and no sum of rows by any.
 */
import { MINUTE } from "../../core/charge.ts";
import { QUANTITY_PLACES } from "./columns.ts";

const UNIT = MINUTE / 10n ** BigInt(QUANTITY_PLACES);

export class Quantities {
  readonly #sums = new Map<string, bigint>();

  /** In units of 10⁻⁶ compute minutes. @param kind of which sums are to be right */
  next(kind: string, amount: bigint): bigint {
    const before = this.#sums.get(kind) ?? 0n;
    this.#sums.set(kind, before + amount);
    return rounded(before + amount) - rounded(before);
  }

  /** Sums begin anew. */
  clear(): void {
    this.#sums.clear();
  }
}

/** Half away from zero, as minutes are rounded elsewhere. */
function rounded(amount: bigint): bigint {
  const magnitude = amount < 0n ? -amount : amount;
  const units = (2n * magnitude + UNIT) / (2n * UNIT);
  return amount < 0n ? -units : units;
}
