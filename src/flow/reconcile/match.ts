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
  type Verdict,
} from "../../core/match.ts";
import { instantText, monthOf } from "../../core/unit.ts";
import {
  type DueJob,
  readDueJobs,
  type SettledJob,
  settleJobs,
} from "../../store/platform-jobs.ts";
import { readOpenHolds, readReported } from "../../store/reported.ts";
import type { Clock } from "../clock.ts";
import { decodedAs, reportOf } from "../usage/show.ts";
import { type Healed, healBreaks, type Opening, openBreaks } from "./open.ts";

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
const CODES = ["missing-report", "duration", "foreign-runner", "other-namespace"] as const;

/** A page of the jobs that are due; fewer than a page are all of them. */
export async function matchDue(matching: Matching, log: string): Promise<Matched> {
  const { bounds, clock, sql } = matching;
  const now = clock.now();
  const due = await readDueJobs(sql, log, { now, limit: PAGE });
  if (due.length === 0) return { jobs: 0, opened: 0, healed: 0 };
  const standing = await readStanding(matching, log, due);
  const judged = due.map((job): Judged => {
    const { held, usage } = standing(job);
    const stands = { ...(held !== undefined && { held }), ...(usage !== undefined && { usage }) };
    return { job, usage, verdict: match(job, stands, bounds, instantText(now)) };
  });
  const opened = await openBreaks(matching, log, judged.flatMap(findingsOf));
  const healed = await healBreaks(matching, log, judged.flatMap(healedBy));
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

type Standing = { usage: Reported | undefined; held: bigint | undefined };

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
  const holds = ids.every((id) => named.has(id)) ? [] : await readOpenHolds(sql, log);
  const held = new Map(
    holds.map((bytes) => {
      const { body, index } = decodedAs("hold", bytes);
      return [reportOf(body.jws).report.job.id, index];
    }),
  );
  return ({ job_id, tracking }) => {
    const other = tracking === "hosted" ? "self_managed" : "hosted";
    const usage = usages.get(`${tracking} ${job_id}`) ?? usages.get(`${other} ${job_id}`);
    return { usage, held: held.get(job_id) };
  };
}

function findingsOf({ job, usage, verdict }: Judged): Finding[] {
  return verdict.differences.map((difference) => findingOf(job, usage, difference));
}

function findingOf(
  job: DueJob,
  usage: Reported | undefined,
  { code, detail, difference_ms }: Difference,
): Finding {
  const namespace = job.namespace_id ?? usage?.namespace_id;
  return {
    code,
    detail,
    difference_ms,
    about: { job_id: job.job_id },
    job_id: job.job_id,
    month: usage?.usage_month ?? monthOf(job.finished_at ?? ""),
    runner_id: job.runner_id,
    tracking: job.tracking,
    ...(namespace !== undefined && { namespace_id: namespace }),
    ...(usage !== undefined && { usage: usage.index }),
  };
}

/** What is no longer found of a job; most of it never was. A job that the platform names is not missing there. */
function healedBy({ job, usage, verdict }: Judged): Healed[] {
  const about = { job_id: job.job_id };
  const found = new Set(verdict.differences.map(({ code }) => code));
  const gone = CODES.filter((code) => !found.has(code)).map((code) => {
    return { finding: { about, code, tracking: job.tracking }, evidence: usage?.index };
  });
  const named = { about, code: "missing-job", tracking: "hosted" } as const;
  return [...gone, { finding: named, evidence: usage?.index }];
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
