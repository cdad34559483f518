/** Legs that are counted from the log, and those that the rollups show. */
import { formatSignedComputeMs } from "../../core/charge.ts";
import {
  addSums,
  LineDigest,
  NO_SUMS,
  type Rollup,
  rollupLine,
  type Sums,
} from "../../core/month/lines.ts";
import type { Transaction } from "../../store/connect.ts";
import { countEvents } from "../../store/feed.ts";
import { readMonthUsage } from "../../store/months.ts";
import {
  countDiffering,
  countMisplaced,
  type Rollup as Relation,
  ROLLUPS,
  sumRollup,
} from "../../store/tie-out.ts";
import type { Figures, Leg } from "./leg.ts";

/** Entries 0 … below−1 count. */
export interface Counting {
  log: string;
  month: string;
  below: bigint;
}

/** Of the typed columns of entries: that those which sums are of are what the bytes say is for `check` to say. */
export async function logLeg(tx: Transaction, of: Counting): Promise<Leg> {
  const { log, month, below } = of;
  let [all, hosted] = [NO_SUMS, NO_SUMS];
  let open: Rollup | undefined;
  const digest = new LineDigest();
  for await (const use of readMonthUsage(tx, log, month, below)) {
    all = addSums(all, use);
    if (use.tracking === "hosted") hosted = addSums(hosted, use);
    const { namespace_id, tracking, usage_month } = use;
    const line = { namespace_id, tracking, usage_month };
    if (open !== undefined && isOf(open, line)) open = { ...line, ...addSums(open, use) };
    else {
      if (open !== undefined) digest.add(rollupLine(open));
      open = { ...line, ...addSums(NO_SUMS, use) };
    }
  }
  if (open !== undefined) digest.add(rollupLine(open));
  const events = String(await countEvents(tx, of));
  const figures = { ...figuresFrom(all), ...hostedFigures(figuresFrom(hosted)), events };
  return { leg: "log", figures: { ...figures, rollups_sha256: digest.end(), differing_rows: "0" } };
}

/** Files have rows by day, which no sum has: of these columns nothing else here would show a change. */
export async function entriesLeg(tx: Transaction, of: Counting): Promise<Leg> {
  return { leg: "entries", figures: { differing_rows: String(await countMisplaced(tx, of)) } };
}

/** Uses come in the order of these, and of machine types in each. */
function isOf(rollup: Rollup, line: Omit<Rollup, keyof Sums>): boolean {
  return (
    rollup.namespace_id === line.namespace_id &&
    rollup.usage_month === line.usage_month &&
    rollup.tracking === line.tracking
  );
}

/** Of sums that have adjustments beside what usage entries say. */
export function figuresFrom(sums: Sums): Figures {
  const { adjustment, billable_compute_ms: billable, compute_ms: gross } = sums;
  return {
    jobs: String(sums.jobs),
    duration_ms: String(sums.duration_ms),
    gross_compute_ms: formatSignedComputeMs(gross),
    adjustment_compute_ms: formatSignedComputeMs(adjustment),
    net_compute_ms: formatSignedComputeMs(gross + adjustment),
    billable_compute_ms: formatSignedComputeMs(billable + adjustment),
    not_billable_compute_ms: formatSignedComputeMs(gross - billable),
  };
}

/** The same figures of hosted runners alone: all that is billable or adjusted is theirs. */
export function hostedFigures(figures: Figures): Figures {
  const { duration_ms, gross_compute_ms, jobs, net_compute_ms } = figures;
  return {
    ...(jobs !== undefined && { hosted_jobs: jobs }),
    ...(duration_ms !== undefined && { hosted_duration_ms: duration_ms }),
    ...(gross_compute_ms !== undefined && { hosted_gross_compute_ms: gross_compute_ms }),
    ...(net_compute_ms !== undefined && { hosted_net_compute_ms: net_compute_ms }),
  };
}

export async function rollupLegs(tx: Transaction, of: Counting): Promise<Leg[]> {
  const legs: Leg[] = [];
  for (const rollup of ROLLUPS) {
    const differing_rows = String(await countDiffering(tx, rollup, of));
    legs.push({ leg: rollup, figures: { ...(await shownBy(tx, rollup, of)), differing_rows } });
  }
  return legs;
}

async function shownBy(tx: Transaction, rollup: Relation, of: Counting): Promise<Figures> {
  if (rollup === "usage_buckets") return {};
  const sums = await sumRollup(tx, rollup, of);
  if (rollup !== "ci_gitlab_hosted_runner_monthly_usages") return { ...sums };
  const { adjustment_compute_ms, billable_compute_ms } = sums;
  return { ...hostedFigures({ ...sums }), adjustment_compute_ms, billable_compute_ms };
}
