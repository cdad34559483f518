/** Takes in what the platform says of its jobs, by whichever way it came. */
import type { PlatformJob } from "../../core/match.ts";
import type { Tracking } from "../../core/unit.ts";
import type { Sql } from "../../store/connect.ts";
import { keepJobs, type PopulationSource } from "../../store/platform-jobs.ts";
import { startMark } from "../../store/reconcile-marks.ts";
import { transact } from "../../store/transact.ts";
import { dropSeen } from "../../store/unseen-usages.ts";
import type { Clock } from "../clock.ts";
import type { Appender } from "../log/append.ts";
import { isOfLog, numberedRunners } from "./runners.ts";
import type { SeenJob } from "./seen-job.ts";

export interface Taking {
  /** As writer. */
  sql: Sql;
  clock: Clock;
  appender: Appender;
}

/**
 * Keeps jobs of runners that the log has enrolled, and that ended since then; others are somebody else's. The same
 * again changes nothing.
 *
 * @returns how many were kept
 * @throws Problem `not-found`, `busy`
 */
export async function take(
  { appender, clock, sql }: Taking,
  log: string,
  seen: readonly SeenJob[],
  source: PopulationSource,
): Promise<number> {
  const runners = numberedRunners(await appender.prefix(log));
  const jobs = new Map<string, PlatformJob>();
  for (const job of seen) {
    const runner = runners.get(job.runner_id ?? "");
    const kept = runner && isOfLog(job, runner) && platformJob(job, runner.tracking);
    if (kept) jobs.set(kept.job_id, kept);
  }
  if (jobs.size === 0) return 0;
  await transact(sql, async (tx) => {
    await startMark(tx, log, "population");
    await keepJobs(tx, log, [...jobs.values()], { seenAt: clock.now(), source });
    await dropSeen(tx, log, [...jobs.keys()]);
  });
  return jobs.size;
}

/** Undefined: no runner has taken it. */
export function platformJob(
  { created_at: _, runner_id, ...job }: SeenJob,
  tracking: Tracking,
): PlatformJob | undefined {
  return runner_id === undefined ? undefined : { ...job, runner_id, tracking };
}
