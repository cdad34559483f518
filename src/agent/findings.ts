/** What one look at the promises of a log comes to. */
import type { Divergence } from "./spool-record.ts";

/** Promises by what this run found; each is one request's receipt. */
export interface Findings {
  /** False where no key of the log is known: then nothing can be proven, and nothing is deleted. */
  provable: boolean;
  proven: number;
  pending: number;
  broken: number;
  unverified: number;
  missing: number;
  forged: number;
  divergence: Divergence;
}

export function nothingFound(provable: boolean): Findings {
  const counts = { proven: 0, pending: 0, broken: 0, unverified: 0, missing: 0, forged: 0 };
  return { provable, ...counts, divergence: "" };
}
