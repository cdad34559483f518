/**
 * Says on the log that all of a runner's jobs up to an instant are known. Spans follow each other without a gap,
 * so that what is covered is one instant for each runner; a runner that was the log's before its first span is
 * covered anew from there on.
 */
import { createHash } from "node:crypto";
import { canonical } from "../../core/json.ts";
import type { PlatformJob } from "../../core/match.ts";
import { Problem } from "../../core/problem.ts";
import { encodeBase64 } from "../../core/text.ts";
import { readCoverages } from "../../store/breaks.ts";
import type { Sql, Transaction } from "../../store/connect.ts";
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
}

const PAGE = 1_000;

/**
 * @returns index of the entry; undefined: covered that far already
 * @throws Problem `not-found` for a runner that the log has not enrolled; `busy`
 */
export async function cover(
  { appender, random, sql }: Covering,
  { by, log, runner, source, to }: Covered,
): Promise<bigint | undefined> {
  const enrolled = numberedRunners(await appender.prefix(log)).get(runner);
  if (enrolled === undefined) throw new Problem("not-found");
  const from = await coveredUpTo(sql, log, enrolled);
  if (to <= from) return undefined;
  const counted = await countJobs(sql, log, { runner: BigInt(runner), from, to });
  const receipt = await appender.control(log, "coverage", async (_, __, tx) => {
    // Somebody else has covered it meanwhile; what is beyond is covered by the next walk.
    const [stands] = await readCoverages(tx, log, [BigInt(runner)]);
    if (stands !== undefined && (await coveredUpTo(tx, log, enrolled)) !== from) return stands.last;
    // Of a runner without any job too: what was reported of it is then nobody's on the platform.
    await startMark(tx, log, "population");
    return { ...counted, by, from, runner_id: runner, salt: salt(random), source, to };
  });
  return receipt.written ? receipt.index : undefined;
}

/**
 * Without a gap from the first instant on that the runner's jobs are the log's. It may be earlier than it was: then
 * all is covered again, from there on.
 */
export async function coveredUpTo(
  sql: Sql | Transaction,
  log: string,
  { runner_id, since }: NumberedRunner,
): Promise<string> {
  const [covered] = await readCoverages(sql, log, [BigInt(runner_id)]);
  return covered === undefined || covered.from > since || covered.to < since ? since : covered.to;
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
