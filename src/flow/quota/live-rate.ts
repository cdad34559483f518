/** What a job costs that has not ended: rated as if it ended now, by the functions that rate reports. */
import { charge } from "../../core/charge.ts";
import type { Prefix } from "../../core/prefix.ts";
import { type Machine, priceOf } from "../../core/rate.ts";
import { type ComputeMs, computeMs, milliseconds } from "../../core/unit.ts";

export interface LiveBuild {
  namespace: string;
  /** Absent: a project of no class. */
  project?: string | undefined;
}

/** A machine type that no card names: of a card it gets `*`. */
export const ANY_MACHINE = "";

/**
 * Nothing before the log's `billing_from`: such a build would not be billed.
 * @param at an `InstantText`
 * @returns undefined where no rate is to be had
 */
export function liveCharge(
  prefix: Prefix,
  { namespace, project = "" }: LiveBuild,
  machine: Machine,
  { ms, at }: { ms: bigint; at: string },
): ComputeMs | undefined {
  const job = { project_id: project, root_namespace_id: namespace };
  const usage = { failure_reason: "", finished_at: at };
  const price = priceOf(prefix, { job, usage }, machine);
  if (price === undefined) return undefined;
  return price.not_billable === "" ? charge(milliseconds(ms), price.factor) : computeMs(0n);
}
