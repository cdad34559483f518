/** What a job costs that has not ended: rated as if it ended now, by the functions that rate reports. */
import { type Factor, NOTHING } from "../../core/factor.ts";
import type { Prefix } from "../../core/prefix.ts";
import { type Machine, priceOf } from "../../core/rate.ts";

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
export function liveFactor(
  prefix: Prefix,
  { namespace, project = "" }: LiveBuild,
  machine: Machine,
  at: string,
): Factor | undefined {
  const job = { project_id: project, root_namespace_id: namespace };
  const usage = { failure_reason: "", finished_at: at };
  const price = priceOf(prefix, { job, usage }, machine);
  return price?.not_billable === "" ? price.factor : price && NOTHING;
}

export function isNothing({ n }: Factor): boolean {
  return n === 0n;
}

/** Whether a hosted job is known to cost nothing, whatever machine of those that have a rate it gets. */
export function isFreeAnywhere(prefix: Prefix, build: LiveBuild, at: string): boolean {
  const types = Object.keys(prefix.card("hosted", at)?.runner_factors ?? {});
  const costsNothing = (machine_type: string): boolean => {
    const factor = liveFactor(prefix, build, { machine_type, tracking: "hosted" }, at);
    return factor !== undefined && isNothing(factor);
  };
  return types.length > 0 && types.every(costsNothing);
}
