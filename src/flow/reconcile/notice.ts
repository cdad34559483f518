/**
 * Notices what is new on a log whose population is known: usage that nobody has named yet, jobs that are to be
 * held against the log again, and coverage, which says of usage that the platform has no such job.
 */
import type { Finding } from "../../core/break.ts";
import { monthOf } from "../../core/unit.ts";
import { readBytes } from "../../store/entries.ts";
import { readHead } from "../../store/heads.ts";
import { readKeptThrough } from "../../store/kept-populations.ts";
import { makeDue } from "../../store/platform-jobs.ts";
import { moveReconcileMark, readReconcileMark } from "../../store/reconcile-marks.ts";
import { type NewlySaid, readNewlySaid } from "../../store/reported.ts";
import { transact } from "../../store/transact.ts";
import {
  addUnseen,
  markBroken,
  readUnbroken,
  type UnseenUsage,
} from "../../store/unseen-usages.ts";
import { decodedAs, reportOf } from "../usage/show.ts";
import { type Opening, openBreaks } from "./open.ts";
import { numberedRunners } from "./runners.ts";

/** Entries of one page. */
const PAGE = 5_000n;
const USAGES = 500;
const KINDS = ["usage", "hold", "hold_resolved", "coverage"] as const;

/** A page of new entries. @returns how many there were; breaks that were opened */
export async function notice(
  opening: Opening,
  log: string,
): Promise<{ entries: bigint; opened: number }> {
  const { sql } = opening;
  const from = await readReconcileMark(sql, log, "population");
  const head = await readHead(sql, log);
  if (from === undefined || head === undefined || head.size <= from) {
    return { entries: 0n, opened: 0 };
  }
  const to = head.size < from + PAGE ? head.size : from + PAGE;
  const coverages = await transact(sql, async (tx) => {
    await addUnseen(tx, log, { from, to });
    const said = await readNewlySaid(tx, log, { from, to }, KINDS);
    const resolved = said.filter(({ kind }) => kind === "hold_resolved").map(holdOf);
    const holds = await readBytes(tx, log, resolved);
    const jobs = [...said.flatMap(jobOf), ...[...holds.values()].map(heldJob)];
    await makeDue(tx, log, [...new Set(jobs)]);
    return said.filter(({ kind }) => kind === "coverage");
  });
  let opened = 0;
  for (const entry of coverages) opened += await judge(opening, log, entry);
  // Last: whoever dies before it looks at the page again, and finds what it has done.
  await moveReconcileMark(sql, log, "population", { from, to });
  return { entries: to - from, opened };
}

/** Whether all that there was has been noticed. */
export function isNoticed({ entries }: { entries: bigint }): boolean {
  return entries < PAGE;
}

/**
 * Usage that stood before the coverage, and finished before its end: the walk had every job that the platform
 * knows of, and asked after those by number that it did not meet. Not where those jobs are in another database,
 * which was lost: this one would miss them all.
 */
async function judge(opening: Opening, log: string, entry: NewlySaid): Promise<number> {
  const { body, index } = decodedAs("coverage", bytesOf(entry));
  const runner = BigInt(body.runner_id);
  const kept = await readKeptThrough(opening.sql, log, runner);
  if (kept === undefined || kept < index) return 0;
  const { since } = numberedRunners(await opening.appender.prefix(log)).get(body.runner_id) ?? {};
  const search = {
    runner,
    since: since ?? body.from,
    before: body.to,
    below: index,
    limit: USAGES,
  };
  let opened = 0;
  for (;;) {
    const unseen = await readUnbroken(opening.sql, log, search);
    opened += await openBreaks(opening, log, unseen.map(missingJob));
    await markBroken(
      opening.sql,
      log,
      unseen.map(({ job_id }) => String(job_id)),
    );
    if (unseen.length < USAGES) return opened;
  }
}

function missingJob({ finished_at, index, job_id, runner_id }: UnseenUsage): Finding {
  return {
    code: "missing-job",
    about: { job_id: String(job_id) },
    detail: `reported to have ended at ${finished_at.toISOString()}`,
    job_id: String(job_id),
    month: monthOf(finished_at.toISOString()),
    runner_id: String(runner_id),
    tracking: "hosted",
    usage: index,
  };
}

function jobOf(entry: NewlySaid): string[] {
  if (entry.job_id !== null) return [String(entry.job_id)];
  return entry.kind === "hold" ? [heldJob(bytesOf(entry))] : [];
}

function holdOf(entry: NewlySaid): bigint {
  return BigInt(decodedAs("hold_resolved", bytesOf(entry)).body.hold);
}

function heldJob(bytes: Uint8Array): string {
  return reportOf(decodedAs("hold", bytes).body.jws).report.job.id;
}

function bytesOf({ bytes }: NewlySaid): Uint8Array {
  if (bytes === null) throw new Error("notice: an entry without its bytes");
  return bytes;
}
