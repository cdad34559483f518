/** Jobs that are said to run, and have ended: their usage is on the log, whatever the platform and its runners still say. */
import { Problem } from "../../core/problem.ts";
import type { Ask } from "../../core/quota/live.ts";
import type { Clock } from "../clock.ts";
import type { Held } from "./copy.ts";
import type { Ledger } from "./ledger.ts";
import type { Seen } from "./seen.ts";

export interface Ended {
  jobs: ReadonlySet<string>;
  /** A size of the log at which all of them are on it. */
  upTo: bigint;
}

interface Looking {
  ledger: Pick<Ledger, "onLog">;
  clock: Clock;
  seen: Seen;
}

export const NOBODY: ReadonlySet<string> = new Set();
/** What was committed tells only of reports that name the same namespace: so long one of another is missed. */
const LOOK_AGAIN_MS = 60_000;

/**
 * Those heartbeats whose job is on the log: a late one must not add again what the report has added. A job
 * that this process has not looked up is looked up; from then on what is committed tells, and a look a minute.
 */
export async function endedAmong(
  { clock, ledger, seen }: Looking,
  log: string,
  held: Held,
  asks: readonly Ask[],
): Promise<Ended> {
  const jobs = asks.flatMap(({ kind, job }) => (kind === "run" ? [job] : []));
  let upTo = held.asOf;
  const { again, from, unknown } = known(seen, log, held, { jobs, now: clock.now() });
  const look = [...unknown, ...again];
  const found = look.length === 0 ? undefined : await onLog(ledger, log, look, unknown.length > 0);
  const ended = new Set<string>(from < held.asOf ? held.settled(from) : []);
  const looked = new Set(look);
  const at = clock.now();
  for (const job of jobs) {
    const index = found?.get(job);
    if (index !== undefined) {
      ended.add(job);
      if (index >= upTo) upTo = index + 1n;
    } else if (!ended.has(job)) {
      seen.absent(log, job, { held, at: looked.has(job) ? at : undefined });
    }
  }
  return { jobs: ended, upTo };
}

interface Known {
  /** Never looked up, or before a time that is remembered. */
  unknown: readonly string[];
  /** Looked up so long ago that it is done again. */
  again: readonly string[];
  /** All others were absent from the log at this size. */
  from: bigint;
}

function known(
  seen: Seen,
  log: string,
  held: Held,
  { jobs, now }: { jobs: readonly string[]; now: number },
): Known {
  const unknown: string[] = [];
  const again: string[] = [];
  let from = held.asOf;
  // While the database is away there is nobody to look with.
  const mayLook = now - held.readAt < LOOK_AGAIN_MS;
  for (const job of jobs) {
    const look = seen.absentAt(log, job, held);
    if (look === undefined || look.asOf < held.since || look.asOf > held.asOf) {
      unknown.push(job);
      continue;
    }
    if (look.asOf < from) from = look.asOf;
    // In both directions: a clock that stepped back must not put it off for as long.
    if (mayLook && Math.abs(now - look.at) >= LOOK_AGAIN_MS) again.push(job);
  }
  return { unknown, again, from };
}

/** @throws Problem `busy`, if it must be known; else what is known goes on to count */
async function onLog(
  ledger: Looking["ledger"],
  log: string,
  jobs: readonly string[],
  must: boolean,
): Promise<ReadonlyMap<string, bigint> | undefined> {
  try {
    return await ledger.onLog(log, jobs);
  } catch (error) {
    if (must || !(error instanceof Problem && error.code === "busy")) throw error;
    return undefined;
  }
}
