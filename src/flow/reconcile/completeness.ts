/** What is known of a day: per runner, what the platform saw, what was reported, and what differs. */
import type { JobState } from "../../core/match.ts";
import type { KeyState, Prefix } from "../../core/prefix.ts";
import { Problem } from "../../core/problem.ts";
import { epochMs, instantText } from "../../core/unit.ts";
import { type BreakCount, countJobBreaks, readCoverages } from "../../store/breaks.ts";
import type { Sql } from "../../store/connect.ts";
import { type KeyMark, readKeyMarks } from "../../store/counters.ts";
import { readHead } from "../../store/heads.ts";
import { listLogs } from "../../store/logs.ts";
import { countStates } from "../../store/platform-jobs.ts";
import { readReconcileMark } from "../../store/reconcile-marks.ts";
import { countUnseen } from "../../store/unseen-usages.ts";
import { readAcknowledged, type ShownAck } from "../feed/acknowledged.ts";
import { catchUp, recall } from "../log/recall.ts";
import { type AsOf, asOf, snapshot } from "../usage/show.ts";
import { type Lookback, madeSince, monthEndOf } from "./lookback.ts";
import { type NumberedRunner, numberedRunners } from "./runners.ts";

/** Counts are of jobs that ended within the day. */
export interface RunnerCompleteness {
  runner_id: string;
  tracking: "hosted" | "self_managed";
  /** That the platform named. */
  platform_jobs: string;
  /** With usage on the log, whether or not the platform named them. */
  reported: string;
  matched: string;
  /** Not reported, and not yet missing; a report that is held is here too. Never billed. */
  awaiting: string;
  /** Not reported within the grace. Never billed. */
  missing: string;
  never_started: string;
  breaks: { code: string; open: string; ended: string }[];
  /** Up to here the platform's jobs are known without a gap. */
  covered_through?: string;
  /** Up to here every active key of the runner has attested. */
  attested_through?: string;
}

export interface Completeness extends AsOf {
  day: string;
  /** A pulled job of the day that was made before is known only if it was seen waiting to end, or was reported. */
  made_since: string;
  /** Entries 0 … looked_at−1 were held against the platform's jobs. */
  looked_at: string;
  runners: RunnerCompleteness[];
  /** The third leg: what consumers of the feed have taken of the log so far, of whichever day. */
  acknowledged: ShownAck[];
}

const DAY_MS = 86_400_000;

/** @throws Problem `not-found` */
export async function completeness(
  { sql, ...lookback }: Lookback & { sql: Sql },
  log: string,
  day: string,
): Promise<Completeness> {
  const from = `${day}T00:00:00.000Z`;
  const span = { from, to: instantText(epochMs(from) + DAY_MS) };
  const head = await readHead(sql, log);
  if (head === undefined) throw new Problem("not-found");
  const prefix = await recall(sql, log);
  await catchUp(sql, prefix, head.controlIndex);
  return await snapshot(sql, async (tx) => {
    const [listed] = await listLogs(tx, log);
    if (listed === undefined) throw new Problem("not-found");
    const runners = [...numberedRunners(prefix).values()];
    const ids = runners.map(({ runner_id }) => BigInt(runner_id));
    const known = {
      states: await countStates(tx, log, span, ids),
      unseen: await countUnseen(tx, log, span),
      breaks: await countJobBreaks(tx, log, span),
      covered: await readCoverages(tx, log, ids),
      attested: attestedBy(prefix, await readKeyMarks(tx, log)),
    };
    const looked = await readReconcileMark(tx, log, "population");
    return {
      ...asOf(listed),
      day,
      made_since: madeSince(lookback, day, pulledThrough(runners, known, monthEndOf(day))),
      looked_at: String(looked ?? 0n),
      runners: runners.map((runner) => runnerDay(runner, known)),
      acknowledged: await readAcknowledged(tx, log),
    };
  });
}

interface Known {
  states: Awaited<ReturnType<typeof countStates>>;
  unseen: Awaited<ReturnType<typeof countUnseen>>;
  breaks: readonly BreakCount[];
  covered: Awaited<ReturnType<typeof readCoverages>>;
  /** By runner number. */
  attested: ReadonlyMap<string, string | undefined>;
}

/** How far each runner is covered that is pulled, and was the log's by then. */
function pulledThrough(
  runners: readonly NumberedRunner[],
  { covered }: Known,
  by: string,
): (string | undefined)[] {
  const pulled = runners.filter(({ since, tracking }) => tracking === "hosted" && since < by);
  return pulled.map(({ runner_id }) => {
    return covered.find(({ runner }) => runner === BigInt(runner_id))?.to;
  });
}

function runnerDay(runner: NumberedRunner, known: Known): RunnerCompleteness {
  const id = BigInt(runner.runner_id);
  const own = known.states.filter((row) => row.runner === id);
  const of = (...states: JobState[]): string => {
    return sum(own.filter(({ state }) => states.includes(state)).map(({ jobs }) => jobs));
  };
  const unseen = known.unseen.find((row) => row.runner === id)?.jobs ?? 0n;
  const covered = known.covered.find((row) => row.runner === id)?.to;
  const attested = known.attested.get(runner.runner_id);
  return {
    runner_id: runner.runner_id,
    tracking: runner.tracking,
    platform_jobs: sum(own.map(({ jobs }) => jobs)),
    reported: sum([...own.map(({ reported }) => reported), unseen]),
    matched: of("matched"),
    awaiting: of("new", "running", "held", "awaiting"),
    missing: of("missing"),
    never_started: of("never_started"),
    breaks: known.breaks
      .filter((row) => row.runner === id)
      .map(({ code, ended, open }) => ({ code, open: String(open), ended: String(ended) })),
    ...(covered !== undefined && { covered_through: covered }),
    ...(attested !== undefined && { attested_through: attested }),
  };
}

function sum(counts: readonly bigint[]): string {
  return String(counts.reduce((total, count) => total + count, 0n));
}

/** Of the active keys that speak for a runner the one that attested longest ago; undefined: one never has. */
function attestedBy(
  prefix: Prefix,
  marks: readonly KeyMark[],
): ReadonlyMap<string, string | undefined> {
  const through = new Map<string, string | undefined>();
  for (const { attested_at, kid } of marks) {
    const at = attested_at?.toISOString();
    for (const runner of spokenFor(prefix, prefix.key(kid))) {
      const known = through.get(runner);
      const first = !through.has(runner);
      through.set(runner, first || at === undefined || (known ?? "") > at ? at : known);
    }
  }
  return through;
}

function spokenFor(prefix: Prefix, key: KeyState | undefined): string[] {
  if (key === undefined || key.trustedUpTo !== undefined) return [];
  const { runners = [] } = prefix.enrolment(key.enrolment) ?? {};
  return [...new Set(runners.map(({ runner_id }) => runner_id))];
}
