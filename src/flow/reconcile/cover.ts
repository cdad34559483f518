/**
 * Says on the log that all of a runner's jobs up to an instant are known. Spans follow each other without a gap,
 * so that what is covered is one instant for each runner; a runner that was the log's before its first span is
 * covered anew from there on, and so is each in a database that has not kept the jobs of the spans before.
 */
import { createHash } from "node:crypto";
import { canonical } from "../../core/json.ts";
import type { PlatformJob } from "../../core/match.ts";
import { Problem } from "../../core/problem.ts";
import { encodeBase64 } from "../../core/text.ts";
import { readCoverages } from "../../store/breaks.ts";
import type { Sql, Transaction } from "../../store/connect.ts";
import { keepThrough, readKeptThrough } from "../../store/kept-populations.ts";
import { readFinishedJobs } from "../../store/platform-jobs.ts";
import { startMark } from "../../store/reconcile-marks.ts";
import type { Random } from "../clock.ts";
import type { Appender } from "../log/append.ts";
import { salt } from "../log/chain.ts";
import { type NumberedRunner, numberedRunners } from "./runners.ts";

export interface Covering {
  /** As writer. */
  sql: Sql;
  appender: Appender;
  random: Random;
}

interface Covered {
  log: string;
  runner: string;
  /** Not included. */
  to: string;
  /** An opaque principal id, or `service`. */
  by: string;
  source: "pull" | "upload";
  /** All jobs are here again, from the first on; of a walk that goes without saying. */
  anew?: boolean;
}

const PAGE = 1_000;

/**
 * @returns index of the entry; undefined: covered that far already
 * @throws Problem `not-found` for a runner that the log has not enrolled; `busy`
 */
export async function cover(
  { appender, random, sql }: Covering,
  { anew = false, by, log, runner, source, to }: Covered,
): Promise<bigint | undefined> {
  const enrolled = numberedRunners(await appender.prefix(log)).get(runner);
  if (enrolled === undefined) throw new Problem("not-found");
  const isAnew = anew || source === "pull";
  const from = beginningOf(enrolled, await reachOf(sql, log, enrolled), isAnew);
  if (to <= from) return undefined;
  const counted = await countJobs(sql, log, { runner: BigInt(runner), from, to });
  return await appender.together(log, async (put, { tx }) => {
    const reach = await reachOf(tx, log, enrolled);
    // Somebody else has covered it meanwhile; what is beyond is covered by the next walk.
    if (beginningOf(enrolled, reach, isAnew) !== from) return undefined;
    // Of a runner without any job too: what was reported of it is then nobody's on the platform.
    await startMark(tx, log, "population");
    const body = { ...counted, by, from, runner_id: runner, salt: salt(random), source, to };
    const { index } = await put("coverage", body);
    if (reach.isKept || isAnew) await keepThrough(tx, log, BigInt(runner), index);
    return index;
  });
}

interface Reach {
  /** Without a gap from the first instant on that the runner's jobs are the log's. */
  to: string;
  /** Whether the jobs up to there are in this database. */
  isKept: boolean;
}

/** `since` may be earlier than it was: then all is covered again, from there on. */
async function reachOf(
  sql: Sql | Transaction,
  log: string,
  { runner_id, since }: NumberedRunner,
): Promise<Reach> {
  const runner = BigInt(runner_id);
  const [covered] = await readCoverages(sql, log, [runner]);
  if (covered === undefined) return { to: since, isKept: true };
  const to = covered.from > since || covered.to < since ? since : covered.to;
  return { to, isKept: covered.last === (await readKeptThrough(sql, log, runner)) };
}

function beginningOf({ since }: NumberedRunner, { isKept, to }: Reach, isAnew: boolean): string {
  return isAnew && !isKept ? since : to;
}

/** Up to here a runner's jobs were walked over, and are in this database. */
export async function walkedUpTo(sql: Sql, log: string, runner: NumberedRunner): Promise<string> {
  return beginningOf(runner, await reachOf(sql, log, runner), true);
}

/** Count and digest of the jobs that finished in [from, to): one canonical line for each, in the order of their numbers. */
async function countJobs(
  sql: Sql,
  log: string,
  span: { runner: bigint; from: string; to: string },
): Promise<{ jobs: string; jobs_sha256: string }> {
  const digest = createHash("sha256");
  let jobs = 0n;
  let after = -1n;
  for (;;) {
    const page = await readFinishedJobs(sql, log, { ...span, after, limit: PAGE });
    for (const job of page) digest.update(`${canonical(lineOf(job))}\n`);
    jobs += BigInt(page.length);
    const last = page.at(-1);
    if (last === undefined || page.length < PAGE) break;
    after = BigInt(last.job_id);
  }
  return { jobs: String(jobs), jobs_sha256: encodeBase64(new Uint8Array(digest.digest())) };
}

/** What the platform did not say is left out. */
function lineOf({ duration_ms, tracking: _, ...job }: PlatformJob): Record<string, string> {
  return { ...job, ...(duration_ms !== undefined && { duration_ms: String(duration_ms) }) };
}
