/** Table `jobs`: the one usage of a (log, tracking, job), for ever. */
import type { Hash } from "../core/hash.ts";
import type { Tracking } from "../core/unit.ts";
import { bytesColumn, plainColumn } from "./columns.ts";
import type { Transaction } from "./connect.ts";

export interface JobKey {
  tracking: Tracking;
  /** GitLab's id of the build, as decimal text. */
  jobId: string;
}

export interface Job extends JobKey {
  /** The usage entry that stands. */
  index: bigint;
  fact: Hash;
}

/** With the leaf hash of the entry that stands. */
export interface StandingJob extends Job {
  leaf: Hash;
}

/** Those of the asked that have a usage. */
export async function readJobs(
  tx: Transaction,
  log: string,
  keys: readonly JobKey[],
): Promise<StandingJob[]> {
  const rows = await tx<(Omit<StandingJob, "jobId"> & { job_id: bigint })[]>`
    select j.tracking, j.job_id, j.index, j.fact, e.leaf
    from unnest(
      ${plainColumn(keys.map((key) => key.tracking))}::text::text[],
      ${plainColumn(keys.map((key) => key.jobId))}::text::bigint[]
    ) as asked (tracking, job_id)
    join jobs j
      on j.log = ${log} and j.tracking = asked.tracking and j.job_id = asked.job_id
    join entries e
      on e.log = j.log and e.index = j.index
  `;
  return rows.map(({ job_id, ...job }) => ({ ...job, jobId: String(job_id) }));
}

export async function insertJobs(
  tx: Transaction,
  log: string,
  jobs: readonly Job[],
): Promise<void> {
  await tx`
    insert into jobs (log, tracking, job_id, index, fact)
    select ${log}, tracking, job_id, index, decode(fact, 'base64')
    from unnest(
      ${plainColumn(jobs.map((job) => job.tracking))}::text::text[],
      ${plainColumn(jobs.map((job) => job.jobId))}::text::bigint[],
      ${plainColumn(jobs.map((job) => job.index))}::text::bigint[],
      ${bytesColumn(jobs.map((job) => job.fact))}::text::text[]
    ) as job (tracking, job_id, index, fact)
  `;
}
