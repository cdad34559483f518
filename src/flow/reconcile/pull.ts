/**
 * Walks over the jobs of each enrolled hosted runner at GitLab, newest first, down to what was covered before,
 * and then says on the log how far they are known (DESIGN §11).
 *
 * One step is one page: its jobs and the mark that names the next page are one transaction, so that a process
 * that dies anywhere leaves a walk that the next one goes on with. A walk overlaps the one before, since jobs
 * finish late; what is older and still runs, and each reported job that no page had, is asked after by number:
 * a job that was made long ago may run today.
 */
import type { PlatformJob } from "../../core/match.ts";
import { instantText } from "../../core/unit.ts";
import { loseJob, readUnfinishedJobs, seeJob } from "../../store/asked-jobs.ts";
import type { Sql, Transaction } from "../../store/connect.ts";
import { keepJobs } from "../../store/platform-jobs.ts";
import {
  claimPull,
  movePull,
  type PullMove,
  type PullStep,
  startPulls,
} from "../../store/pull-marks.ts";
import { startMark } from "../../store/reconcile-marks.ts";
import { transact } from "../../store/transact.ts";
import { dropSeen, markAsked, readUnasked } from "../../store/unseen-usages.ts";
import type { Random } from "../clock.ts";
import { cover, walkedUpTo } from "./cover.ts";
import { askGitLab, type GitLab, GitLabError } from "./gitlab.ts";
import { floorOf, type Lookback } from "./lookback.ts";
import { isOfLog, numberedRunners } from "./runners.ts";
import { readJobList, readOneJob, type SeenJob } from "./seen-job.ts";
import { platformJob, type Taking } from "./take.ts";

export interface Pulling extends Taking, Lookback {
  random: Random;
  gitlabs: readonly GitLab[];
  signal: AbortSignal;
  /** Between two walks over a runner. */
  intervalMs: number;
  /** Of one request. */
  timeoutMs?: number;
}

/** What a step came to. */
export interface Pulled {
  log: string;
  runner: bigint;
  failure?: GitLabError;
}

/** Beyond the longest request: whoever is killed holds a runner up for so long. */
const CLAIM_MS = 120_000;
/** What finished so shortly before a walk may not be in its pages yet: GitLab reads from replicas. */
const LAG_MS = 60_000;
/** Asked after by number in one step. */
const ASKED_MAX = 20;
const [BACKOFF_MS, BACKOFF_MS_MAX] = [1_000, 300_000];

/** One step of whichever walk is due. Undefined: none is. @throws what is no fault of GitLab's */
export async function pullStep(pulling: Pulling): Promise<Pulled | undefined> {
  const { gitlabs, sql } = pulling;
  const logs = gitlabs.map(({ log }) => log);
  const step = await claimPull(sql, logs, CLAIM_MS);
  const gitlab = gitlabs.find(({ log }) => log === step?.log);
  if (step === undefined || gitlab === undefined) return undefined;
  const { log, runner } = step;
  try {
    await walk(pulling, gitlab, step);
    return { log, runner };
  } catch (error) {
    const failures = step.failures + 1;
    if (!(error instanceof GitLabError)) {
      await movePull(sql, step, { ...step, failures, restMs: backoff(pulling, step.failures) });
      throw error;
    }
    // A page that is no longer there: its cursor has run out, and the walk begins anew.
    const over = error.missing && step.next !== undefined && step.next !== firstPage(runner);
    const { next, walkTo } = over ? { next: undefined, walkTo: undefined } : step;
    const restMs = Math.max(error.restMs, backoff(pulling, step.failures));
    await movePull(sql, step, { walkTo, next, failures, restMs });
    return { log, runner, failure: error };
  }
}

/** Every hosted runner of these logs has a mark. */
export async function enlistRunners({ appender, gitlabs, sql }: Pulling): Promise<void> {
  for (const { log } of gitlabs) {
    const runners = [...numberedRunners(await appender.prefix(log)).values()];
    const hosted = runners.filter(({ tracking }) => tracking === "hosted");
    await startMark(sql, log, "population");
    await startPulls(
      sql,
      log,
      hosted.map(({ runner_id }) => runner_id),
    );
  }
}

async function walk(pulling: Pulling, gitlab: GitLab, step: PullStep): Promise<void> {
  const { clock, sql } = pulling;
  if (step.walkTo === undefined) {
    const walkTo = clock.now() - LAG_MS;
    await movePull(sql, step, { walkTo, next: firstPage(step.runner), failures: 0, restMs: 0 });
  } else if (step.next !== undefined) {
    await readPage(pulling, gitlab, { ...step, walkTo: step.walkTo, next: step.next });
  } else {
    await askAfter(pulling, gitlab, { ...step, walkTo: step.walkTo });
  }
}

function firstPage(runner: bigint): string {
  const query = "order_by=id&sort=desc&per_page=100&pagination=keyset";
  return `/api/v4/runners/${runner}/jobs?${query}`;
}

async function readPage(
  pulling: Pulling,
  gitlab: GitLab,
  step: PullStep & { walkTo: number; next: string },
): Promise<void> {
  const { clock, signal, sql, timeoutMs } = pulling;
  const { log, runner, walkTo } = step;
  const now = clock.now();
  const answer = await askGitLab(gitlab, { path: step.next, now, signal, timeoutMs });
  const jobs = readJobList(answer.text);
  if (jobs === undefined) throw new GitLabError("unreadable");
  const enrolled = numberedRunners(await pulling.appender.prefix(log)).get(String(runner));
  const from = enrolled && (await walkedUpTo(sql, log, enrolled));
  // What is older is asked after by number. Asked anew for each page, and the same for all of a walk.
  const floor = from === undefined ? "" : floorOf(pulling, { from, to: instantText(walkTo) });
  const isLast = jobs.length > 0 && jobs.every(({ created_at = floor }) => created_at < floor);
  const next = isLast ? undefined : answer.next;
  const move = { walkTo, next, failures: 0, restMs: answer.restMs };
  const own = jobs.filter((job) => enrolled === undefined || isOfLog(job, enrolled));
  const named = own.map((job) => ({ ...job, runner_id: String(runner) }));
  await keepAndMove(pulling, step, named, move);
}

/** Nothing of a page stands if the claim has run out: whoever took it reads the page again. */
async function keepAndMove(
  pulling: Pulling,
  step: PullStep,
  jobs: readonly SeenJob[],
  move: PullMove,
): Promise<void> {
  const { log } = step;
  const named = await platformJobs(pulling, log, jobs);
  await transact(pulling.sql, async (tx) => {
    if (await movePull(tx, step, move)) await keep(tx, pulling, log, named);
  });
}

async function platformJobs(
  { appender }: Pulling,
  log: string,
  seen: readonly SeenJob[],
): Promise<PlatformJob[]> {
  const runners = numberedRunners(await appender.prefix(log));
  const jobs = seen.flatMap((job) => {
    // Of a runner that is nobody's here: whatever it is, it is not the vendor's.
    const { tracking = "self_managed" } = runners.get(job.runner_id ?? "") ?? {};
    return platformJob(job, tracking) ?? [];
  });
  // A page that shifted may name one twice.
  return [...new Map(jobs.map((job) => [job.job_id, job])).values()];
}

async function keep(
  tx: Transaction | Sql,
  { clock }: Pulling,
  log: string,
  jobs: readonly PlatformJob[],
): Promise<void> {
  await keepJobs(tx, log, jobs, { seenAt: clock.now(), source: "pull" });
  await dropSeen(
    tx,
    log,
    jobs.map(({ job_id }) => job_id),
  );
}

/** What no page had; when there is none left, the runner is covered up to where the walk began. */
async function askAfter(
  pulling: Pulling,
  gitlab: GitLab,
  step: PullStep & { walkTo: number },
): Promise<void> {
  const { clock, intervalMs, sql } = pulling;
  const { log, runner, walkTo } = step;
  const [since, to] = [walkTo + LAG_MS, instantText(walkTo)];
  const search = { runner, limit: ASKED_MAX };
  const running = await readUnfinishedJobs(sql, log, { ...search, seenBefore: since });
  const unseen = await readUnasked(sql, log, { ...search, before: to, askedBefore: since });
  const started = clock.now();
  let restMs = 0;
  for (const asked of [...running, ...unseen]) {
    if (restMs > 0 || clock.now() - started > CLAIM_MS / 2) break;
    restMs = await askAfterOne(pulling, gitlab, log, asked);
  }
  const done = running.length + unseen.length === 0;
  if (done)
    await cover(pulling, { log, runner: String(runner), to, by: "service", source: "pull" });
  await movePull(sql, step, {
    walkTo: done ? undefined : walkTo,
    next: undefined,
    failures: 0,
    restMs: done ? intervalMs : restMs,
  });
}

/** @returns how long to leave GitLab alone */
async function askAfterOne(
  pulling: Pulling,
  gitlab: GitLab,
  log: string,
  { job_id, project_id }: { job_id: bigint; project_id: bigint },
): Promise<number> {
  const { clock, signal, sql, timeoutMs } = pulling;
  const path = `/api/v4/projects/${project_id}/jobs/${job_id}`;
  let restMs = 0;
  try {
    const answer = await askGitLab(gitlab, { path, now: clock.now(), signal, timeoutMs });
    const job = readOneJob(answer.text);
    if (job === undefined) throw new GitLabError("unreadable");
    ({ restMs } = answer);
    await keep(sql, pulling, log, await platformJobs(pulling, log, [job]));
    // No runner may have taken it: then it was not kept.
    await seeJob(sql, log, job_id, clock.now());
  } catch (error) {
    if (!(error instanceof GitLabError && error.missing)) throw error;
    await loseJob(sql, log, job_id, clock.now());
  }
  await markAsked(sql, log, job_id, clock.now());
  return restMs;
}

function backoff({ random }: Pulling, failures: number): number {
  const ms = Math.min(BACKOFF_MS * 2 ** failures, BACKOFF_MS_MAX);
  const [byte = 0] = random(1);
  return Math.round(ms * (1 + byte / 512));
}
