/** Table `platform_jobs`: what the platform says that its jobs did. Nothing is charged from it. */
import type { JobState, PlatformJob } from "../core/match.ts";
import type { Tracking } from "../core/unit.ts";
import { plainColumn } from "./columns.ts";
import type { Sql, Transaction } from "./connect.ts";

export type PopulationSource = "pull" | "webhook" | "upload";

/** Of a job that the platform has no more, in place of a source: `seen_at` is when that was found. */
export const GONE = "gone";

/** A job and how often it was seen otherwise. */
export interface DueJob extends PlatformJob {
  readonly revision: bigint;
}

/**
 * Rows of jobs, locked in the order of their numbers: uploads, what is new on the log and what is settled meet
 * here, and none may hold what the other waits for. To be asked for, or nothing is locked. One by one, and then as
 * an array that the planner takes for short: in a table that has grown since it was analyzed, it would read all of
 * the log's jobs to join a page of them.
 */
const inOrder = (sql: Sql | Transaction, log: string, jobs: readonly string[]) => sql`
  locked as (
    select own.job_id
    from (
      select job_id from unnest(${plainColumn(jobs)}::text::bigint[]) as asked (job_id) order by job_id
    ) as asked
    cross join lateral (
      select job_id
      from platform_jobs
      where log = ${log} and job_id = asked.job_id
      for no key update
    ) as own
  )`;

/**
 * Keeps what is new. What was said once and is left out now stays: a webhook that comes late says less than what
 * stands. A job that is the same stays settled.
 *
 * @param jobs each once
 * @param seenAt epoch milliseconds
 */
export async function keepJobs(
  sql: Sql | Transaction,
  log: string,
  jobs: readonly PlatformJob[],
  { seenAt, source }: { seenAt: number; source: PopulationSource },
): Promise<void> {
  if (jobs.length === 0) return;
  const column = <K extends keyof PlatformJob>(name: K) => jobs.map((job) => job[name]);
  await sql`
    insert into platform_jobs as kept (
      log, job_id, runner_id, tracking, project_id, namespace_id, status, started_at, finished_at,
      duration_ms, source, seen_at, due_at
    )
    select ${log}, seen.*, ${source}, ${new Date(seenAt)}, '-infinity'
    from unnest(
      ${plainColumn(column("job_id"))}::text::bigint[],
      ${plainColumn(column("runner_id"))}::text::bigint[],
      ${plainColumn(column("tracking"))}::text::text[],
      ${plainColumn(column("project_id"))}::text::bigint[],
      ${plainColumn(column("namespace_id"))}::text::bigint[],
      ${plainColumn(column("status"))}::text::text[],
      ${plainColumn(column("started_at"))}::text::timestamptz[],
      ${plainColumn(column("finished_at"))}::text::timestamptz[],
      ${plainColumn(column("duration_ms"))}::text::bigint[]
    ) as seen (job_id)
    order by job_id
    on conflict on constraint platform_jobs_pkey do update
      set
        runner_id = excluded.runner_id,
        tracking = excluded.tracking,
        project_id = coalesce(excluded.project_id, kept.project_id),
        namespace_id = coalesce(excluded.namespace_id, kept.namespace_id),
        status = case
          when kept.finished_at is not null and excluded.finished_at is null then kept.status
          else excluded.status
        end,
        started_at = coalesce(excluded.started_at, kept.started_at),
        finished_at = coalesce(excluded.finished_at, kept.finished_at),
        duration_ms = case
          when kept.finished_at is not null and excluded.finished_at is null then kept.duration_ms
          else coalesce(excluded.duration_ms, kept.duration_ms)
        end,
        source = excluded.source,
        seen_at = excluded.seen_at,
        revision = kept.revision + 1,
        due_at = excluded.due_at
      where kept.finished_at is null
        or (
          kept.runner_id, kept.tracking, kept.project_id, kept.namespace_id, kept.started_at,
          kept.finished_at, kept.duration_ms
        ) is distinct from (
          excluded.runner_id,
          excluded.tracking,
          coalesce(excluded.project_id, kept.project_id),
          coalesce(excluded.namespace_id, kept.namespace_id),
          coalesce(excluded.started_at, kept.started_at),
          coalesce(excluded.finished_at, kept.finished_at),
          coalesce(excluded.duration_ms, kept.duration_ms)
        )
  `;
}

interface Row {
  job_id: bigint;
  runner_id: bigint;
  tracking: Tracking;
  project_id: bigint | null;
  namespace_id: bigint | null;
  status: string;
  started_at: Date | null;
  finished_at: Date | null;
  duration_ms: bigint | null;
  gone_at: Date | null;
}

const columns = (sql: Sql | Transaction) => sql`
  job_id, runner_id, tracking, project_id, namespace_id, status, started_at, finished_at, duration_ms,
  case when source = ${GONE} and finished_at is null then seen_at end as gone_at`;

/** Those that are to be held against the log now, longest due first. @param now epoch milliseconds */
export async function readDueJobs(
  sql: Sql | Transaction,
  log: string,
  { now, limit }: { now: number; limit: number },
): Promise<DueJob[]> {
  const rows = await sql<(Row & { revision: bigint })[]>`
    select ${columns(sql)}, revision
    from platform_jobs
    where log = ${log} and due_at <= ${new Date(now)}
    order by due_at, job_id
    limit ${limit}
  `;
  return rows.map((row) => ({ ...jobOf(row), revision: row.revision }));
}

export interface SettledJob {
  job_id: string;
  /** As it was read: one that changed meanwhile is due, whoever has looked at it since. */
  revision: bigint;
  state: JobState;
  usage: bigint | undefined;
  dueAt: string | undefined;
}

export async function settleJobs(
  sql: Sql | Transaction,
  log: string,
  settled: readonly SettledJob[],
): Promise<void> {
  const column = <K extends keyof SettledJob>(name: K) => settled.map((job) => job[name]);
  await sql`
    with ${inOrder(sql, log, column("job_id"))}
    update platform_jobs as kept
    set
      state = settled.state,
      usage = settled.usage,
      due_at = case when kept.revision = settled.revision then settled.due_at else '-infinity' end
    from unnest(
      ${plainColumn(column("job_id"))}::text::bigint[],
      ${plainColumn(column("revision"))}::text::bigint[],
      ${plainColumn(column("state"))}::text::text[],
      ${plainColumn(column("usage"))}::text::bigint[],
      ${plainColumn(column("dueAt"))}::text::timestamptz[]
    ) as settled (job_id, revision, state, usage, due_at)
    where kept.log = ${log} and kept.job_id = any(array(select job_id from locked))
      and kept.job_id = settled.job_id
  `;
}

/** Something new is on the log about these jobs. */
export async function makeDue(
  tx: Transaction,
  log: string,
  jobs: readonly string[],
): Promise<void> {
  if (jobs.length === 0) return;
  await tx`
    with ${inOrder(tx, log, jobs)}
    update platform_jobs
    set due_at = '-infinity', revision = revision + 1
    where log = ${log} and job_id = any(array(select job_id from locked))
  `;
}

/** Where a runner's finished jobs of [from, to) are read on, in the order of their numbers. */
interface JobPage {
  runner: bigint;
  from: string;
  to: string;
  after: bigint;
  limit: number;
}

export async function readFinishedJobs(
  sql: Sql | Transaction,
  log: string,
  { runner, from, to, after, limit }: JobPage,
): Promise<PlatformJob[]> {
  const rows = await sql<Row[]>`
    select ${columns(sql)}
    from platform_jobs
    where log = ${log} and runner_id = ${runner} and finished_at >= ${from} and finished_at < ${to}
      and job_id > ${after}
    order by job_id
    limit ${limit}
  `;
  return rows.map(jobOf);
}

export interface UnconfirmedJob extends PlatformJob {
  readonly state: "running" | "held" | "awaiting" | "missing";
}

/** What the platform saw and no usage stands for, in the order of the jobs' numbers. */
export async function readUnconfirmedJobs(
  sql: Sql | Transaction,
  log: string,
  { after, limit, namespaces }: { after: bigint; limit: number; namespaces?: readonly bigint[] },
): Promise<UnconfirmedJob[]> {
  const rows = await sql<(Row & { state: UnconfirmedJob["state"] })[]>`
    select ${columns(sql)}, state
    from platform_jobs
    where log = ${log} and job_id > ${after}
      and state in ('running', 'held', 'awaiting', 'missing')
      and (
        ${namespaces === undefined}
        or namespace_id = any(${plainColumn(namespaces ?? [])}::text::bigint[])
      )
    order by job_id
    limit ${limit}
  `;
  return rows.map((row) => ({ ...jobOf(row), state: row.state }));
}

/** Of the jobs of each runner that finished in [from, to), how many are in which state. */
export async function countStates(
  sql: Sql | Transaction,
  log: string,
  { from, to }: { from: string; to: string },
  runners: readonly bigint[],
): Promise<{ runner: bigint; state: JobState; jobs: bigint; reported: bigint }[]> {
  return await sql<{ runner: bigint; state: JobState; jobs: bigint; reported: bigint }[]>`
    select runner, state, count(*) as jobs, count(usage) as reported
    from unnest(${plainColumn(runners)}::text::bigint[]) as asked (runner)
    cross join lateral (
      select state, usage
      from platform_jobs
      where log = ${log} and runner_id = asked.runner and finished_at >= ${from} and finished_at < ${to}
      offset 0
    ) as own
    group by 1, 2
  `;
}

function jobOf(row: Row): PlatformJob {
  const { duration_ms, finished_at, gone_at, namespace_id, project_id, started_at } = row;
  return {
    job_id: String(row.job_id),
    runner_id: String(row.runner_id),
    tracking: row.tracking,
    status: row.status,
    ...(project_id !== null && { project_id: String(project_id) }),
    ...(namespace_id !== null && { namespace_id: String(namespace_id) }),
    ...(started_at !== null && { started_at: started_at.toISOString() }),
    ...(finished_at !== null && { finished_at: finished_at.toISOString() }),
    ...(duration_ms !== null && { duration_ms }),
    ...(gone_at !== null && { gone_at: gone_at.toISOString() }),
  };
}
