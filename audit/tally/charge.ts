/** What a usage entry adds to every sum: what it says, right or wrong, for totals are those of the log. */
import type { Body, EnrolledRunner } from "../../src/core/entry.ts";
import type { Report } from "../../src/core/report.ts";
import type { UsageEntry } from "../archive/block.ts";
import { charge, machineFactor } from "../rating.ts";
import { micro } from "./record.ts";
import type { Charge } from "./usage.ts";

/** What the prefix has of it, if it has: the runner's line in force, and the card that the entry names. */
export interface RatedBy {
  runner?: EnrolledRunner | undefined;
  card?: Body<"rate_card"> | undefined;
}

export function chargeOf(
  { body, index }: UsageEntry,
  { job, usage }: Report,
  { card, runner }: RatedBy,
): Charge {
  const { billing_month, compute_ms, machine_type, tracking, usage_month } = body;
  const { duration_ms, finished_at } = usage;
  const factor = card && machineFactor(card, machine_type);
  const isWhole = factor === undefined || factor.text === body.factor;
  const compute = micro(compute_ms);
  return {
    index,
    keys: {
      billing_month,
      usage_month,
      tracking,
      machine_type,
      namespace: job.root_namespace_id,
      project: job.project_id,
      runner: runner?.runner_id ?? "",
    },
    day: finished_at.slice(0, "YYYY-MM-DD".length),
    duration: BigInt(duration_ms),
    gross: isWhole ? compute : micro(charge(duration_ms, factor)),
    compute,
    billable: body.not_billable === "",
  };
}
