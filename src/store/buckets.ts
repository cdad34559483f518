/** Usage summed by all that it can be asked by: the small table under the views (DESIGN §8). */
import type { Transaction } from "./connect.ts";
import type { Lag } from "./watermarks.ts";

/**
 * Adds the usage of the lag's entries to the buckets, and says how many buckets changed. Cost follows
 * the lag: one range of the primary key of `entries`, whatever the size of the log.
 */
export async function fold(tx: Transaction, lag: Lag): Promise<number> {
  const changed = await tx`
    insert into usage_buckets as b (
      log, tracking, billing_month, usage_month, namespace_id, project_id, runner_id, runner_uuid,
      machine_type, not_billable, jobs, duration_ms, compute_ms, last_index
    )
    select
      log, tracking, billing_month, usage_month, namespace_id, project_id, runner_id, runner_uuid,
      machine_type, not_billable, count(*), sum(duration_ms), sum(compute_ms), max(index)
    from entries
    where log = ${lag.log} and index >= ${lag.from} and index < ${lag.to} and kind = 'usage'
    group by
      log, tracking, billing_month, usage_month, namespace_id, project_id, runner_id, runner_uuid,
      machine_type, not_billable
    on conflict on constraint usage_buckets_pkey do update
      set
        jobs = b.jobs + excluded.jobs,
        duration_ms = b.duration_ms + excluded.duration_ms,
        compute_ms = b.compute_ms + excluded.compute_ms,
        last_index = excluded.last_index`;
  return changed.count;
}
