/** Table `platform_jobs`: those that the platform is asked after by number, until it has told how they ended. */
import type { Sql } from "./connect.ts";
import { GONE } from "./platform-jobs.ts";

/** A job by the number that the platform finds it by. */
interface AskedJob {
  job_id: bigint;
  project_id: bigint;
}

/** Of a runner, those that had not finished when they were seen last, before an instant. */
export async function readUnfinishedJobs(
  sql: Sql,
  log: string,
  { runner, seenBefore, limit }: { runner: bigint; seenBefore: number; limit: number },
): Promise<AskedJob[]> {
  return await sql<AskedJob[]>`
    select job_id, project_id
    from platform_jobs
    where log = ${log} and runner_id = ${runner} and finished_at is null and project_id is not null
      and seen_at < ${new Date(seenBefore)} and source <> ${GONE}
    order by job_id
    limit ${limit}
  `;
}

/** The platform was asked after it, and told nothing new. */
export async function seeJob(sql: Sql, log: string, job: bigint, seenAt: number): Promise<void> {
  await sql`
    update platform_jobs
    set seen_at = ${new Date(seenAt)}
    where log = ${log} and job_id = ${job}
  `;
}

/** The platform has it no more, so that nothing is heard of how it ended. */
export async function loseJob(sql: Sql, log: string, job: bigint, seenAt: number): Promise<void> {
  await sql`
    update platform_jobs
    set source = ${GONE}, seen_at = ${new Date(seenAt)}, revision = revision + 1, due_at = '-infinity'
    where log = ${log} and job_id = ${job} and finished_at is null and source <> ${GONE}
  `;
}
