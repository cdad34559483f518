/** Table `breaks`, by the job that each is about (migrations/0008, index in 0011). */
import { plainColumn } from "./columns.ts";
import type { Sql, Transaction } from "./connect.ts";

export interface OpenOfJob {
  index: bigint;
  job_id: bigint;
}

/** Those of these jobs with one of these codes that have no end yet. */
export async function readOpenOfJobs(
  sql: Sql | Transaction,
  log: string,
  jobs: readonly string[],
  codes: readonly string[],
): Promise<OpenOfJob[]> {
  // LATERAL and OFFSET 0: whatever the statistics say, a look by the key for each.
  return await sql<OpenOfJob[]>`
    select own.*
    from unnest(${plainColumn(jobs)}::text::bigint[]) as asked (job_id)
    cross join lateral (
      select index, job_id
      from breaks as b
      where log = ${log} and job_id = asked.job_id
        and code = any(${plainColumn(codes)}::text::text[])
        and not exists (select from break_ends as e where e.log = b.log and e.break = b.index)
      offset 0
    ) as own
    order by index
  `;
}
