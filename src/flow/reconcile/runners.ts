/** The log's runners as the platform numbers them, by its enrolments. */
import type { Prefix } from "../../core/prefix.ts";
import { monthOf, type Tracking } from "../../core/unit.ts";

export interface NumberedRunner {
  runner_id: string;
  tracking: Tracking;
  /** Since when its jobs are the log's: from its first line on, and not before the month that billing began in. */
  since: string;
}

/** What ended before its runner was the log's is not for the log to say anything of. */
export function isOfLog(
  { finished_at }: { finished_at?: string },
  runner: NumberedRunner,
): boolean {
  return finished_at === undefined || finished_at >= runner.since;
}

/** By `runner_id`. */
export function numberedRunners(prefix: Prefix): Map<string, NumberedRunner> {
  const found = new Map<string, NumberedRunner>();
  const billed = `${monthOf(prefix.billingFrom)}T00:00:00.000Z`;
  for (const { effective_from, runner_id, tracking } of prefix.runners) {
    const since = effective_from > billed ? effective_from : billed;
    const known = found.get(runner_id);
    if (known === undefined || since < known.since) {
      found.set(runner_id, { runner_id, tracking: known?.tracking ?? tracking, since });
    }
  }
  return found;
}
