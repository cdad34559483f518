/** Amounts as they are shown: never one without the other. */
import { formatSignedComputeMs, signedComputeMinutes } from "../../core/charge.ts";

/** An exact figure and, beside it, the same as people read it: compute minutes with four decimals. */
export interface Amount {
  compute_ms: string;
  compute_minutes: string;
}

/** @param amount in units of 10⁻⁶ compute-milliseconds; signed */
export function amountOf(amount: bigint): Amount {
  return {
    compute_ms: formatSignedComputeMs(amount),
    compute_minutes: signedComputeMinutes(amount),
  };
}
