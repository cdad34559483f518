/**
 * Holds the platform's jobs against the log (DESIGN §11), in pages and as far as anything is new: jobs that the
 * platform told of or that entries came for, jobs whose grace is over, and what coverage says was never there.
 *
 * Breaks come first and what is settled after them: a process that dies in between finds the same again, and a
 * break is opened once.
 */
import type { Finding } from "../../core/break.ts";
import {
  type Bounds,
  type Difference,
  match,
  type PlatformJob,
  type Reported,
  type Standing,
  type Verdict,
} from "../../core/match.ts";
import { instantText, monthOf } from "../../core/unit.ts";
import { readOpenOfJobs } from "../../store/breaks-of-jobs.ts";
import { readHeld } from "../../store/held-reports.ts";
import {
  type DueJob,
  readDueJobs,
  type SettledJob,
  settleJobs,
} from "../../store/platform-jobs.ts";
import { readReported } from "../../store/reported.ts";
import type { Clock } from "../clock.ts";
import { endBreaks, type Opening, openBreaks, readOpen } from "./open.ts";

export interface Matching extends Opening {
  clock: Clock;
  bounds: Bounds;
}

interface Matched {
  jobs: number;
  opened: number;
  healed: number;
}

/** Jobs of one page. */
const PAGE = 500;
/** A job that the platform names is not missing there. */
const CODES = ["missing-report", "duration", "foreign-runner", "other-namespace", "missing-job"];

/** A page of the jobs that are due; fewer than a page are all of them. */
export async function matchDue(matching: Matching, log: string): Promise<Matched> {
  const { bounds, clock, sql } = matching;
  const now = clock.now();
  const due = await readDueJobs(sql, log, { now, limit: PAGE });
  if (due.length === 0) return { jobs: 0, opened: 0, healed: 0 };
  const standing = await readStanding(matching, log, due);
  const rated = { ...bounds, rates: await matching.appender.prefix(log) };
  const judged = due.map((job): Judged => {
    const stands = standing(job);
    return { job, usage: stands.usage, verdict: match(job, stands, rated, instantText(now)) };
  });
  const findings = judged.flatMap(findingsOf);
  const opened = await openBreaks(matching, log, findings);
  const healed = await endBreaks(matching, log, await readHealed(matching, log, judged, findings));
  await settleJobs(sql, log, judged.map(settledBy));
  return { jobs: due.length, opened, healed };
}

/** Whether all that was due has been looked at. */
export function isLastPage({ jobs }: Matched): boolean {
  return jobs < PAGE;
}

interface Judged {
  job: DueJob;
  usage: Reported | undefined;
  verdict: Verdict;
}

async function readStanding(
  { sql }: Matching,
  log: string,
  jobs: readonly PlatformJob[],
): Promise<(job: PlatformJob) => Standing> {
  const ids = jobs.map(({ job_id }) => job_id);
  const reported = await readReported(sql, log, ids);
  const usages = new Map(reported.map((usage) => [`${usage.tracking} ${usage.job_id}`, usage]));
  const named = new Set(reported.map(({ job_id }) => job_id));
  // Few are held, and those only of jobs that nothing stands for.
  const unnamed = ids.filter((id) => !named.has(id));
  const held = unnamed.length === 0 ? new Map<string, bigint>() : await readHeld(sql, log, unnamed);
  return ({ job_id, tracking }) => {
    const own = usages.get(`${tracking} ${job_id}`);
    const other = usages.get(`${tracking === "hosted" ? "self_managed" : "hosted"} ${job_id}`);
    const usage = own ?? other;
    const waits = held.get(job_id);
    return {
      ...(usage !== undefined && { usage }),
      // What is billed is not what ran, also where the customer's own agent has reported what ran.
      ...(own !== undefined && other?.tracking === "hosted" && { beside: other }),
      ...(waits !== undefined && { held: waits }),
    };
  };
}

function findingsOf({ job, verdict }: Judged): Finding[] {
  return verdict.differences.map((difference) => findingOf(job, difference));
}

function findingOf(
  job: DueJob,
  { code, detail, difference_ms, figures, usage }: Difference,
): Finding {
  const namespace = job.namespace_id ?? usage?.namespace_id;
  return {
    code,
    detail,
    difference_ms,
    about: { job_id: job.job_id, ...figures },
    job_id: job.job_id,
    month: usage?.usage_month ?? monthOf(job.finished_at ?? job.gone_at ?? ""),
    runner_id: job.runner_id,
    tracking: job.tracking,
    ...(namespace !== undefined && { namespace_id: namespace }),
    ...(usage !== undefined && { usage: usage.index }),
  };
}

/** Breaks of these jobs that are no longer found, or no longer with these figures; most jobs never had one. */
async function readHealed(
  { hash, sql }: Matching,
  log: string,
  judged: readonly Judged[],
  findings: readonly Finding[],
): Promise<{ index: bigint; evidence: bigint }[]> {
  const shown = new Map<string, bigint>();
  for (const { job, usage } of judged) if (usage !== undefined) shown.set(job.job_id, usage.index);
  const open = await readOpenOfJobs(sql, log, [...shown.keys()], CODES);
  if (open.length === 0) return [];
  const found = new Set((await readOpen(sql, log, findings, hash)).map(({ index }) => index));
  return open.flatMap(({ index, job_id }) => {
    const evidence = shown.get(String(job_id));
    return evidence === undefined || found.has(index) ? [] : [{ index, evidence }];
  });
}

function settledBy({ job, usage, verdict }: Judged): SettledJob {
  return {
    job_id: job.job_id,
    revision: job.revision,
    state: verdict.state,
    usage: usage?.index,
    dueAt: verdict.dueAt,
  };
}
