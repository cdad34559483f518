/**
 * The transaction behind `append` for reports: one head lock, few round trips, and nothing answered before
 * COMMIT has returned.
 */
import { judge, trackingOf } from "../../core/judge.ts";
import type { Prefix } from "../../core/prefix.ts";
import { instantText } from "../../core/unit.ts";
import { insertEntries } from "../../store/entries.ts";
import { moveHead } from "../../store/heads.ts";
import { insertJobs, type JobKey, readJobs } from "../../store/jobs.ts";
import { insertReports, readReports } from "../../store/reports.ts";
import { transact } from "../../store/transact.ts";
import { type Committing, committed, decided, hold, laterOf, type Memory } from "./held.ts";
import { type Candidate, type Fit, type Outcome, settle } from "./settle.ts";

/**
 * Settles reports as one batch.
 *
 * @throws Problem `not-found`, `busy`, and whatever the guard says
 */
export async function commitReports(
  options: Committing,
  memory: Memory,
  verdicts: readonly Fit[],
): Promise<Outcome[]> {
  return await decided(options, memory, async (prefix) => {
    const early = instantText(options.clock.now());
    const candidates = verdicts.map((verdict) => candidateOf(prefix, verdict, early));
    const { outcomes, head } = await transact(options.sql, async (tx) => {
      const [locked, reports, jobs] = await Promise.all([
        hold(options, memory, prefix, tx),
        readReports(tx, memory.log, verdicts.map(counterKey)),
        readJobs(tx, memory.log, candidates.flatMap(jobKey)),
      ]);
      const at = laterOf(early, locked.at);
      const settlement = settle(
        judgedAgain(prefix, candidates, at),
        { reports, jobs },
        {
          ...options,
          log: memory.log,
          head: locked,
          at,
        },
      );
      if (settlement.entries.length === 0) return { ...settlement, head: undefined };
      await Promise.all([
        insertEntries(tx, memory.log, at, settlement.entries),
        settlement.jobs.length > 0 && insertJobs(tx, memory.log, settlement.jobs),
        insertReports(tx, memory.log, settlement.reports),
        moveHead(tx, memory.log, locked, settlement.head),
      ]);
      return settlement;
    });
    if (head !== undefined) committed(options, memory, head.size, head.leaf);
    return outcomes;
  });
}

function candidateOf(prefix: Prefix, verdict: Fit, at: string): Candidate {
  if (prefix.key(verdict.kid) === undefined) return { kind: "stranger", verdict };
  if (verdict.kind === "refused") return { kind: "unfit", verdict };
  const { kid, report } = verdict;
  const tracking = trackingOf(prefix, kid, report);
  return { kind: "report", verdict, tracking, judgement: judge(prefix, kid, report, at) };
}

/**
 * Judgement costs too much to be made under the lock, where the entry's own `at` becomes known. A
 * later `at` changes one answer only: what was `future` may be so no longer.
 */
function judgedAgain(
  prefix: Prefix,
  candidates: readonly Candidate[],
  at: string,
): readonly Candidate[] {
  return candidates.map((candidate) => {
    if (candidate.kind !== "report") return candidate;
    const { judgement, verdict } = candidate;
    return judgement.kind === "hold" && judgement.code === "future"
      ? { ...candidate, judgement: judge(prefix, verdict.kid, verdict.report, at) }
      : candidate;
  });
}

function counterKey(verdict: Fit): { kid: string; counter: string } {
  const { kid } = verdict;
  return { kid, counter: verdict.kind === "signed" ? verdict.report.counter : verdict.counter };
}

function jobKey(candidate: Candidate): JobKey[] {
  if (candidate.kind !== "report" || candidate.tracking === undefined) return [];
  return [{ tracking: candidate.tracking, jobId: candidate.verdict.report.job.id }];
}
