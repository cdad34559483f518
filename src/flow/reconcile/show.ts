/** What reconciliation shows: jobs that await their confirmation, and breaks. */
import type { Body } from "../../core/entry.ts";
import type { PlatformJob } from "../../core/match.ts";
import { Problem } from "../../core/problem.ts";
import { epochMs } from "../../core/unit.ts";
import { readBreaks, type ShownBreakRow } from "../../store/breaks.ts";
import type { Sql } from "../../store/connect.ts";
import { listLogs } from "../../store/logs.ts";
import { readUnconfirmedJobs, type UnconfirmedJob } from "../../store/platform-jobs.ts";
import type { Clock } from "../clock.ts";
import { type AsOf, asOf, decodedAs, snapshot } from "../usage/show.ts";

const PAGE = 500;

export interface Showing {
  /** As reader. */
  sql: Sql;
  clock: Clock;
}

/** A job that the platform saw and no usage stands for. It is billed to nobody. */
export interface AwaitingJob extends Omit<PlatformJob, "duration_ms"> {
  state: UnconfirmedJob["state"];
  duration_ms?: string;
}

export interface AwaitingPage extends AsOf {
  jobs: AwaitingJob[];
  next?: string;
}

/** @throws Problem `not-found` */
export async function showAwaiting(
  { sql }: Showing,
  {
    after = -1n,
    log,
    visible,
  }: { log: string; visible?: readonly bigint[] | undefined; after?: bigint | undefined },
): Promise<AwaitingPage> {
  return await snapshot(sql, async (tx) => {
    const [listed] = await listLogs(tx, log);
    if (listed === undefined) throw new Problem("not-found");
    const namespaces = visible === undefined ? {} : { namespaces: visible };
    const found = await readUnconfirmedJobs(tx, log, { after, limit: PAGE, ...namespaces });
    const jobs = found.map(({ duration_ms, ...job }) => ({
      ...job,
      ...(duration_ms !== undefined && { duration_ms: String(duration_ms) }),
    }));
    const last = found.length === PAGE ? found.at(-1) : undefined;
    return { ...asOf(listed), jobs, ...(last && { next: last.job_id }) };
  });
}

type Broken = Omit<Body<"break">, "fingerprint" | "salt">;
type End = Pick<Body<"break_resolved">, "by" | "evidence" | "outcome" | "reason" | "ticket">;

export interface ShownBreak extends Broken {
  index: string;
  at: string;
  /** Since it was opened, up to its end or else up to now. */
  age_ms: string;
  /** An opaque principal id. */
  owner?: string;
  resolution?: End & { index: string; at: string };
}

export interface BreakPage extends AsOf {
  breaks: ShownBreak[];
  next?: string;
}

/** Newest first. @throws Problem `not-found` */
export async function showBreaks(
  { clock, sql }: Showing,
  {
    before,
    log,
    state,
  }: { log: string; state: "open" | "ended" | "all"; before?: bigint | undefined },
): Promise<BreakPage> {
  return await snapshot(sql, async (tx) => {
    const [listed] = await listLogs(tx, log);
    if (listed === undefined) throw new Problem("not-found");
    const search = { before: before ?? listed.size, state, limit: PAGE };
    const rows = await readBreaks(tx, log, search);
    const breaks = rows.map((row) => shownBreak(row, clock.now()));
    const last = breaks.length === PAGE ? breaks.at(-1) : undefined;
    return { ...asOf(listed), breaks, ...(last && { next: last.index }) };
  });
}

function shownBreak({ bytes, end, owner }: ShownBreakRow, now: number): ShownBreak {
  const { at, body, index } = decodedAs("break", bytes);
  const { fingerprint: _, salt: __, ...broken } = body;
  const resolution = end === null ? undefined : endOf(end);
  const until = resolution === undefined ? now : epochMs(resolution.at);
  return {
    index: String(index),
    at,
    ...broken,
    age_ms: String(Math.max(0, until - epochMs(at))),
    ...(owner !== null && { owner: decodedAs("break_assigned", owner).body.owner }),
    ...(resolution !== undefined && { resolution }),
  };
}

function endOf(bytes: Uint8Array): NonNullable<ShownBreak["resolution"]> {
  const { at, body, index } = decodedAs("break_resolved", bytes);
  const { by, evidence, outcome, reason, ticket } = body;
  return { index: String(index), at, by, evidence, outcome, reason, ticket };
}
