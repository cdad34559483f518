/** What the log has of jobs that the platform named: usage by the register of jobs, and what is new. */
import type { Reported } from "../core/match.ts";
import type { Tracking } from "../core/unit.ts";
import { plainColumn } from "./columns.ts";
import type { Sql, Transaction } from "./connect.ts";

/** Of each of these jobs the usages that stand, one of each tracking at most. */
export async function readReported(
  sql: Sql | Transaction,
  log: string,
  jobs: readonly string[],
): Promise<(Reported & { job_id: string })[]> {
  // LATERAL and OFFSET 0: whatever the statistics say, a look by the key for each.
  const rows = await sql<
    {
      index: bigint;
      job_id: bigint;
      tracking: Tracking;
      runner_id: bigint;
      project_id: bigint;
      namespace_id: bigint;
      duration_ms: bigint;
      finished_at: Date;
      usage_month: string;
    }[]
  >`
    select e.index, e.job_id, e.tracking, e.runner_id, e.project_id, e.namespace_id, e.duration_ms,
      e.finished_at, e.usage_month
    from unnest(${plainColumn(jobs)}::text::bigint[]) as asked (job_id)
    cross join unnest(array['hosted', 'self_managed']) as tracking
    cross join lateral (
      select index
      from jobs
      where log = ${log} and jobs.tracking = tracking.tracking and jobs.job_id = asked.job_id
      offset 0
    ) as j
    cross join lateral (
      select index, job_id, tracking, runner_id, project_id, namespace_id, duration_ms, finished_at,
        usage_month
      from entries
      where log = ${log} and entries.index = j.index
      offset 0
    ) as e
  `;
  return rows.map(({ finished_at, job_id, namespace_id, project_id, runner_id, ...row }) => ({
    ...row,
    finished_at: finished_at.toISOString(),
    job_id: String(job_id),
    namespace_id: String(namespace_id),
    project_id: String(project_id),
    runner_id: String(runner_id),
  }));
}

/** A usage, or an entry that says something else of jobs or runners: then its bytes. */
export interface NewlySaid {
  index: bigint;
  kind: "usage" | "hold" | "hold_resolved" | "coverage" | "attestation" | "key";
  at: Date;
  bytes: Uint8Array | null;
  job_id: bigint | null;
}

/** Of entries from … to−1, in their order, those of these kinds. */
export async function readNewlySaid(
  tx: Transaction,
  log: string,
  { from, to }: { from: bigint; to: bigint },
  kinds: readonly NewlySaid["kind"][],
): Promise<NewlySaid[]> {
  return await tx<NewlySaid[]>`
    select index, kind, at, case when kind <> 'usage' then bytes end as bytes, job_id
    from entries
    where log = ${log} and index >= ${from} and index < ${to}
      and kind = any(${plainColumn(kinds)}::text::text[])
    order by index
  `;
}
