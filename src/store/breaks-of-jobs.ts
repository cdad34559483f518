/** Table `breaks`, by the job that each is about (migrations/0008, index in 0011). */
import { plainColumn } from "./columns.ts";
import type { Sql, Transaction } from "./connect.ts";

export interface OpenOfJob {
  index: bigint;
  job_id: bigint;
  /** Base64. */
  fingerprint: string;
}

/** Those of these jobs with one of these codes that have no end yet. */
export async function readOpenOfJobs(
  sql: Sql | Transaction,
  log: string,
  jobs: readonly string[],
  codes: readonly string[],
): Promise<OpenOfJob[]> {
  return await sql<OpenOfJob[]>`
    select index, job_id, fingerprint
    from breaks as b
    where log = ${log} and job_id is not null
      and job_id = any(${plainColumn(jobs)}::text::bigint[])
      and code = any(${plainColumn(codes)}::text::text[])
      and not exists (select from break_ends as e where e.log = b.log and e.break = b.index)
    order by index
  `;
}
