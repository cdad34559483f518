/** What live usage keeps, held against what it ought to be: the log's figures, and the sums of its own jobs. */
import type { Figures } from "../../core/quota/figures.ts";
import type { Done } from "../../core/quota/live.ts";

/**
 * `figures`: others than the log gives at the same entry. `ahead`: of entries that the log does not have.
 * `settled`: a job is live whose usage is on the log. `sums`: not those of the jobs. `lost`: of a job that
 * this process heard, less was kept or nothing. `revoked`: a job counts as a key said that was revoked since.
 */
export const DRIFT_KINDS = ["figures", "ahead", "settled", "sums", "lost", "revoked"] as const;
export type DriftKind = (typeof DRIFT_KINDS)[number];

export interface Drift {
  kind: DriftKind;
  log: string;
  namespace: string;
  job?: string;
  /** By how much it was off; undefined: one of the two has no bound. */
  amount: bigint | undefined;
}

/** How kept figures stand to those that were read after them; `behind` is no drift. */
export type Standing = "same" | "behind" | "figures" | "ahead";

/** @param kept hold at the instant that `own` were computed for */
export function standingOf(kept: Figures, own: Figures): Standing {
  if (kept.asOf > own.asOf) return "ahead";
  if (kept.asOf <= own.touched) return "behind";
  const same =
    kept.startBound === own.startBound &&
    kept.runBound === own.runBound &&
    kept.from === own.from &&
    kept.until === own.until &&
    kept.text === own.text;
  return same ? "same" : "figures";
}

export function apart(kept: Figures, own: Figures): bigint | undefined {
  return larger(distance(kept.startBound, own.startBound), distance(kept.runBound, own.runBound));
}

/** How far sums are from those of the jobs; 0: they are the same. */
export function sumsApart({ live, reserved, jobs = [] }: Done): bigint {
  let used = 0n;
  let held = 0n;
  for (const { amount, floor } of jobs) {
    used += amount;
    held += most(amount, floor);
  }
  return larger(distance(live, used), distance(live + reserved, held)) ?? 0n;
}

function distance(a: bigint | undefined, b: bigint | undefined): bigint | undefined {
  if (a === b) return 0n;
  if (a === undefined || b === undefined) return undefined;
  return a < b ? b - a : a - b;
}

function larger(a: bigint | undefined, b: bigint | undefined): bigint | undefined {
  return a === undefined || b === undefined ? undefined : most(a, b);
}

function most(a: bigint, b: bigint): bigint {
  if (a < b) return b;
  return a;
}
