/** Table `unseen_usages`: hosted usage whose job the platform has not named. */
import { plainColumn } from "./columns.ts";
import type { Sql, Transaction } from "./connect.ts";

export interface UnseenUsage {
  index: bigint;
  job_id: bigint;
  runner_id: bigint;
  project_id: bigint;
  finished_at: Date;
}

/** Those of entries from … to−1 whose job is not among the platform's. */
export async function addUnseen(
  tx: Transaction,
  log: string,
  { from, to }: { from: bigint; to: bigint },
): Promise<void> {
  await tx`
    insert into unseen_usages (log, index, job_id, runner_id, project_id, finished_at)
    select e.log, e.index, e.job_id, e.runner_id, e.project_id, e.finished_at
    from entries as e
    where e.log = ${log} and e.index >= ${from} and e.index < ${to}
      and e.kind = 'usage' and e.tracking = 'hosted'
      and not exists (
        select
        from platform_jobs as p
        where p.log = e.log and p.job_id = e.job_id
      )
    on conflict on constraint unseen_usages_pkey do nothing
  `;
}

/**
 * A list that the planner does not see, and takes for short: by one that it sees, and a table that has grown since
 * it was analyzed, it would read all of the log's rows.
 */
const few = (sql: Sql | Transaction, jobs: readonly string[]) =>
  sql`array(select unnest(${plainColumn(jobs)}::text::bigint[]))`;

/** The platform has named these jobs. */
export async function dropSeen(
  sql: Sql | Transaction,
  log: string,
  jobs: readonly string[],
): Promise<void> {
  await sql`
    delete from unseen_usages
    where log = ${log} and job_id = any(${few(sql, jobs)})
  `;
}

/** Of a row `u`: a job that was named while its usage was looked at may be in both tables. */
const isUnnamed = (sql: Sql | Transaction) => sql`
  not exists (select from platform_jobs as p where p.log = u.log and p.job_id = u.job_id)`;

interface UnseenSearch {
  runner: bigint;
  /** They finished before it. */
  before: string;
  limit: number;
}

/**
 * Those of a runner of which no break says so yet, longest finished first.
 *
 * @param since when its first may have finished
 * @param below above their entries
 */
export async function readUnbroken(
  sql: Sql,
  log: string,
  { below, since, ...search }: UnseenSearch & { since: string; below: bigint },
): Promise<UnseenUsage[]> {
  const open = sql`index < ${below} and finished_at >= ${since} and not broken`;
  return await readUnseen(sql, log, search, open);
}

/**
 * Those of a runner that were not asked after since then, longest finished first. Where a break says so, that is to
 * heal by itself when the platform has the job after all; it is asked after once a day, since most never do.
 *
 * @param askedBefore epoch milliseconds
 */
export async function readUnasked(
  sql: Sql,
  log: string,
  { askedBefore, ...search }: UnseenSearch & { askedBefore: number },
): Promise<UnseenUsage[]> {
  const since = new Date(askedBefore);
  const asked = sql`
    coalesce(asked_at, '-infinity') < ${since}::timestamptz - case when broken then interval '1 day' else '0' end`;
  return await readUnseen(sql, log, search, asked);
}

async function readUnseen(
  sql: Sql,
  log: string,
  { before, limit, runner }: UnseenSearch,
  more: ReturnType<Sql["unsafe"]>,
): Promise<UnseenUsage[]> {
  return await sql<UnseenUsage[]>`
    select index, job_id, runner_id, project_id, finished_at
    from unseen_usages as u
    where log = ${log} and runner_id = ${runner} and finished_at < ${before} and ${more}
      and ${isUnnamed(sql)}
    order by finished_at, job_id
    limit ${limit}
  `;
}

/** The platform was asked after it by number, and does not know it. */
export async function markAsked(
  sql: Sql,
  log: string,
  job: bigint,
  askedAt: number,
): Promise<void> {
  await sql`
    update unseen_usages
    set asked_at = ${new Date(askedAt)}
    where log = ${log} and job_id = ${job}
  `;
}

/** Breaks say of these that the platform has no such job. */
export async function markBroken(
  sql: Sql | Transaction,
  log: string,
  jobs: readonly string[],
): Promise<void> {
  await sql`
    update unseen_usages
    set broken = true
    where log = ${log} and job_id = any(${few(sql, jobs)})
  `;
}

/** Of usage that ended in [from, to) and that the platform has not named, how much each runner reported. */
export async function countUnseen(
  sql: Sql | Transaction,
  log: string,
  { from, to }: { from: string; to: string },
): Promise<{ runner: bigint; jobs: bigint }[]> {
  return await sql<{ runner: bigint; jobs: bigint }[]>`
    select runner_id as runner, count(*) as jobs
    from unseen_usages as u
    where log = ${log} and finished_at >= ${from} and finished_at < ${to}
      and ${isUnnamed(sql)}
    group by 1
  `;
}
