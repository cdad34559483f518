/** What must hold of everything that was told, by a recount of the log and of what the hosts had said. */
import { DECISION_AGE_MS, type Decision } from "../../../src/flow/quota/decide.ts";
import type { Books, Fault, Told } from "./books.ts";
import { type Fleet, type Job, QUARTER, type Statement } from "./fleet.ts";
import type { Counted, Recount } from "./recount.ts";

/** A sentence for each promise that was broken. */
export function broken(books: Books, fleet: Fleet, recount: Recount): string[] {
  return books.told.flatMap((told) => {
    const { as_of, month } = told.decision;
    if (as_of === undefined || month === undefined) return [said("nothing is known", told)];
    const asOf = BigInt(as_of);
    const counted = recount.at(told.decision.namespace_id, asOf, month);
    return [
      ...ledgerBroken(told, counted),
      ...ageBroken(told, asOf, books),
      ...verdictBroken(told, asOf, counted, recount),
      ...liveBroken(told, asOf, counted, { books, fleet, recount }),
    ];
  });
}

/**
 * Whether what is left is what it is once every job that the log lacks counts as its host said last: none
 * lost, and none doubled.
 */
export function isExact(decision: Decision, fleet: Fleet, recount: Recount): boolean {
  const { as_of = "0", month = "", namespace_id } = decision;
  const asOf = BigInt(as_of);
  const { available, unlimited } = recount.at(namespace_id, asOf, month);
  const jobs = fleet.jobs.get(namespace_id) ?? [];
  const live = liveOf(jobs, asOf, recount, ({ statements }) => statements.at(-1));
  return remainingOf(decision) === (unlimited ? undefined : available - live);
}

function ledgerBroken(told: Told, { available, unlimited }: Counted): string[] {
  const left = remainingOf(told.decision);
  if ((left === undefined) !== unlimited) return [said("a bound where there is none", told)];
  if (left === undefined || left <= available) return [];
  return [said(`more is left than ${available}`, told)];
}

/** By what the service says, and by what the test itself saw: entries that old are in it. */
function ageBroken(told: Told, asOf: bigint, { appended }: Books): string[] {
  const { age_ms = "" } = told.decision;
  if (!(Number(age_ms) <= DECISION_AGE_MS)) return [said("too old", told)];
  const at = lastBefore(appended, told.sentAt - DECISION_AGE_MS, ({ at }) => at);
  return at !== undefined && at.index >= asOf ? [said(`older than entry ${at.index}`, told)] : [];
}

function verdictBroken(
  told: Told,
  asOf: bigint,
  { available, slack, unlimited }: Counted,
  recount: Recount,
): string[] {
  const { job, quarters } = told;
  if (job === undefined) return [];
  const { allowed, job_status, reason } = told.decision;
  if (allowed !== (job_status === "running")) return [said("two verdicts", told)];
  if (reason === "on-log") {
    return recount.hasEnded(job.id, asOf) ? [] : [said("not on the log", told)];
  }
  const left = remainingOf(told.decision);
  const goesOn = unlimited || slack === undefined || (left ?? 0n) >= -slack;
  if (allowed !== goesOn) return [said(goesOn ? "stopped" : "not stopped", told)];
  const alone = slack !== undefined && BigInt(quarters) * QUARTER > available + slack;
  return allowed && alone && !unlimited ? [said("beyond by itself, and not stopped", told)] : [];
}

interface World {
  books: Books;
  fleet: Fleet;
  recount: Recount;
}

/** None counts twice, ever; and between two faults none is missing that its host has said since the last. */
function liveBroken(told: Told, asOf: bigint, { available }: Counted, world: World): string[] {
  const { books, fleet, recount } = world;
  const { heardAt, sentAt } = told;
  const left = remainingOf(told.decision);
  if (left === undefined) return [];
  const jobs = fleet.jobs.get(told.decision.namespace_id) ?? [];
  const most = liveOf(jobs, asOf, recount, ({ statements }) =>
    lastBefore(statements, heardAt + 1, (each) => each.sentAt),
  );
  if (left < available - most) return [said(`twice: less than ${available - most}`, told)];
  const fault = calm(books.faults, told);
  if (fault === undefined || told.decision.source !== "redis") return [];
  const least = liveOf(jobs, asOf, recount, ({ statements }) => {
    const last = lastBefore(statements, sentAt, (each) => each.heardAt, isKept);
    return last !== undefined && last.sentAt > fault.overAt ? last : undefined;
  });
  if (left <= available - least) return [];
  return [said(`lost: more than ${available - least}`, told)];
}

const isKept = ({ kept }: Statement): boolean => kept;

/** The fault that is over then, if no other has begun. */
function calm(faults: readonly Fault[], { heardAt, sentAt }: Told): Fault | undefined {
  const at = faults.findLastIndex(({ beganAt }) => beganAt <= heardAt);
  const fault = faults[at];
  return fault !== undefined && fault.overAt < sentAt ? fault : undefined;
}

function liveOf(
  jobs: readonly Job[],
  asOf: bigint,
  recount: Recount,
  statementOf: (job: Job) => Statement | undefined,
): bigint {
  let quarters = 0;
  for (const job of jobs) {
    if (!recount.hasEnded(job.id, asOf)) quarters += statementOf(job)?.quarters ?? 0;
  }
  return BigInt(quarters) * QUARTER;
}

/** The last of a list in order of time that was before it, of those that pass. */
function lastBefore<T>(
  list: readonly T[],
  time: number,
  at: (each: T) => number,
  passes: (each: T) => boolean = () => true,
): T | undefined {
  for (let i = list.length - 1; i >= 0; i -= 1) {
    const each = list[i];
    if (each !== undefined && at(each) < time && passes(each)) return each;
  }
  return undefined;
}

function remainingOf({ remaining_compute_ms }: Decision): bigint | undefined {
  return remaining_compute_ms === undefined
    ? undefined
    : BigInt(remaining_compute_ms.replace(".", ""));
}

function said(what: string, { decision, sentAt, heardAt, quarters }: Told): string {
  return `${what}: ${JSON.stringify({ ...decision, sentAt, heardAt, quarters })}`;
}
