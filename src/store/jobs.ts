/** Table `jobs`: the one usage of a (log, tracking, job), for ever. */
import type { Hash } from "../core/hash.ts";
import type { Tracking } from "../core/unit.ts";
import { packed, plainColumn } from "./columns.ts";
import type { Sql, Transaction } from "./connect.ts";

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
  sql: Sql | Transaction,
  log: string,
  keys: readonly JobKey[],
): Promise<StandingJob[]> {
  // LATERAL, OFFSET 0 and the scalar query leave the planner one way: a look by the key for each that
  // is asked. By the statistics of a young table it would read the whole log, 500 times a commit.
  const rows = await sql<(Omit<StandingJob, "jobId"> & { job_id: bigint })[]>`
    select
      j.tracking, j.job_id, j.index, j.fact,
      (select leaf from entries where log = ${log} and index = j.index) as leaf
    from unnest(
      ${plainColumn(keys.map((key) => key.tracking))}::text::text[],
      ${plainColumn(keys.map((key) => key.jobId))}::text::bigint[]
    ) as asked (tracking, job_id)
    cross join lateral (
      select tracking, job_id, index, fact
      from jobs
      where log = ${log} and tracking = asked.tracking and job_id = asked.job_id
      offset 0
    ) as j
  `;
  return rows.map(({ job_id, ...job }) => ({ ...job, jobId: String(job_id) }));
}

export async function insertJobs(
  tx: Transaction,
  log: string,
  jobs: readonly Job[],
): Promise<void> {
  await tx`
    with packed as materialized (
      select decode(${packed(jobs.map((job) => job.fact))}, 'base64') as facts
    )
    insert into jobs (log, tracking, job_id, index, fact)
    select ${log}, tracking, job_id, index, substring(facts from 32 * n::int - 31 for 32)
    from packed, unnest(
      ${plainColumn(jobs.map((job) => job.tracking))}::text::text[],
      ${plainColumn(jobs.map((job) => job.jobId))}::text::bigint[],
      ${plainColumn(jobs.map((job) => job.index))}::text::bigint[]
    ) with ordinality as job (tracking, job_id, index, n)
  `;
}
