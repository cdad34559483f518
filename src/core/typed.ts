/** The columns of `entries` that stand beside the bytes of a usage (migrations/0001). */
import type { EntryOf } from "./entry.ts";
import type { Report } from "./report.ts";

/** By the columns' names. 64-bit integers are bigint, `compute_ms` is exact decimal text. */
export interface UsageColumns {
  readonly tracking: string;
  readonly job_id: bigint;
  readonly project_id: bigint;
  readonly namespace_id: bigint;
  readonly runner_uuid: string;
  readonly runner_id: bigint;
  readonly machine_type: string;
  readonly duration_ms: bigint;
  readonly compute_ms: string;
  readonly not_billable: string;
  /** `YYYY-MM-DD` */
  readonly usage_month: string;
  readonly billing_month: string;
  /** `InstantText` */
  readonly finished_at: string;
}

/**
 * `report` is the payload of the entry's JWS; `runnerId` the platform's number of the runner, which
 * is in neither: the prefix has it, of the line in force at `finished_at`.
 */
export function usageColumns(
  { body }: EntryOf<"usage">,
  { job, runner, usage }: Report,
  runnerId: bigint,
): UsageColumns {
  return {
    tracking: body.tracking,
    job_id: BigInt(job.id),
    project_id: BigInt(job.project_id),
    namespace_id: BigInt(job.root_namespace_id),
    runner_uuid: runner.uuid,
    runner_id: runnerId,
    machine_type: body.machine_type,
    duration_ms: BigInt(usage.duration_ms),
    compute_ms: body.compute_ms,
    not_billable: body.not_billable,
    usage_month: body.usage_month,
    billing_month: body.billing_month,
    finished_at: usage.finished_at,
  };
}
