/**
 * The platform's view of a job against the log's (DESIGN §11). Nothing here is ever usage: what only the
 * platform saw awaits confirmation, and then is a break; what both saw and differs is a break.
 */
import type { BreakCode } from "./evidence.ts";
import type { Prefix } from "./prefix.ts";
import { epochMs, instantText, monthOf, type Tracking } from "./unit.ts";

/** A build as the platform lists it; what it did not say is absent. */
export interface PlatformJob {
  readonly job_id: string;
  readonly runner_id: string;
  /** Of the runner, by the log's enrolments. */
  readonly tracking: Tracking;
  readonly project_id?: string;
  readonly namespace_id?: string;
  readonly status: string;
  readonly started_at?: string;
  readonly finished_at?: string;
  readonly duration_ms?: bigint;
  /** When the platform was found to have it no more, of one that was never said to have ended. */
  readonly gone_at?: string;
}

/** The usage that stands for a job. */
export interface Reported {
  readonly index: bigint;
  readonly runner_id: string;
  readonly tracking: Tracking;
  readonly project_id: string;
  readonly namespace_id: string;
  readonly duration_ms: bigint;
  readonly finished_at: string;
  readonly usage_month: string;
}

/** What the log has of a job. `held`: a report that waits for two persons. */
export interface Standing {
  readonly usage?: Reported;
  /** Hosted usage, and so billed, that stands beside it of a job which the customer's own runner ran. */
  readonly beside?: Reported;
  readonly held?: bigint;
}

/** The default of what two clocks and a last update may differ by, milliseconds. */
export const TOLERANCE_MS = 5_000n;
/** The default of how long a report may take to come: an agent keeps trying for far longer. */
export const GRACE_MS = 24 * 3_600_000;

export interface Bounds {
  readonly tolerance_ms: bigint;
  readonly grace_ms: number;
}

export interface Difference {
  readonly code: Extract<
    BreakCode,
    "missing-report" | "duration" | "foreign-runner" | "other-namespace"
  >;
  /** What the platform has more of; of `duration` alone not 0, and of that where the lengths differ. */
  readonly difference_ms: bigint;
  /** What each has, not rounded: with other figures it is another difference. */
  readonly figures: { readonly platform: string; readonly reported: string };
  readonly detail: string;
  /** The usage that differs; absent: none stands. */
  readonly usage?: Reported;
}

const JOB_STATES = [
  "new",
  "never_started",
  "running",
  "held",
  "awaiting",
  "missing",
  "matched",
  "differs",
] as const;
/** `new`: not held against the log yet. `missing`: awaited for longer than the grace. */
export type JobState = (typeof JOB_STATES)[number];

export interface Verdict {
  readonly state: Exclude<JobState, "new">;
  readonly differences: readonly Difference[];
  /** When to look again though nothing new is heard; absent: then never. */
  readonly dueAt?: string;
}

/** GitLab's, of jobs that no runner has begun; what ended otherwise may have run, whatever else is not said of it. */
const NOT_BEGUN = new Set([
  "created",
  "waiting_for_resource",
  "preparing",
  "pending",
  "manual",
  "scheduled",
  "skipped",
  "canceled",
]);

/**
 * A retried job is a job of its own, with an id of its own.
 * @param at now
 */
export function match(
  job: PlatformJob,
  { beside, held, usage }: Standing,
  { grace_ms, tolerance_ms, rates }: Bounds & { rates: Pick<Prefix, "card"> },
  at: string,
): Verdict {
  if (usage !== undefined) {
    const differences = [
      ...lengths(job, usage, tolerance_ms),
      ...ends(job, usage, { tolerance_ms, rates }),
      ...runners(job, usage),
      ...places(job, usage),
      ...(beside === undefined ? [] : runners(job, beside)),
    ];
    return { state: differences.length === 0 ? "matched" : "differs", differences };
  }
  if (held !== undefined) return settled("held");
  // Canceled while it was pending: a queue cost nobody anything, however long it was.
  if (neverRan(job)) return settled("never_started");
  const ended = job.finished_at ?? job.gone_at;
  if (ended === undefined) return settled("running");
  const dueAt = instantText(epochMs(ended) + grace_ms);
  if (at < dueAt) return { state: "awaiting", differences: [], dueAt };
  const detail = `${job.status} at ${ended}${job.finished_at === undefined ? ", and gone" : ""}`;
  const figures = { platform: String(job.duration_ms ?? ""), reported: "" };
  const difference_ms = lengthOf(job) ?? 0n;
  const missing = { code: "missing-report", difference_ms, figures, detail } as const;
  return { state: "missing", differences: [missing] };
}

function neverRan({ duration_ms = 0n, started_at, status }: PlatformJob): boolean {
  return started_at === undefined && duration_ms === 0n && NOT_BEGUN.has(status);
}

/** What the platform says, or else what its own times say; undefined: neither. */
function lengthOf({ duration_ms, finished_at, started_at }: PlatformJob): bigint | undefined {
  if (duration_ms !== undefined) return duration_ms;
  if (finished_at === undefined || started_at === undefined) return undefined;
  return BigInt(Math.max(0, epochMs(finished_at) - epochMs(started_at)));
}

function settled(state: Verdict["state"]): Verdict {
  return { state, differences: [] };
}

function lengths(job: PlatformJob, usage: Reported, tolerance: bigint): Difference[] {
  const length = job.finished_at === undefined ? undefined : lengthOf(job);
  if (length === undefined) return [];
  const difference_ms = length - usage.duration_ms;
  if (difference_ms <= tolerance && -difference_ms <= tolerance) return [];
  const figures = { platform: String(length), reported: String(usage.duration_ms) };
  const detail = `${length} ms on the platform, ${usage.duration_ms} reported`;
  return [{ code: "duration", difference_ms, figures, detail, usage }];
}

/** Of two clocks, or of a runner that would choose its month or its price: only where it comes to that. */
function ends(
  { finished_at: seen }: PlatformJob,
  usage: Reported,
  { rates, tolerance_ms }: { rates: Pick<Prefix, "card">; tolerance_ms: bigint },
): Difference[] {
  const said = usage.finished_at;
  if (seen === undefined) return [];
  if (Math.abs(epochMs(seen) - epochMs(said)) <= tolerance_ms) return [];
  const cardAt = (instant: string) => rates.card(usage.tracking, instant)?.index;
  if (monthOf(seen) === monthOf(said) && cardAt(seen) === cardAt(said)) return [];
  const figures = { platform: `ended ${seen}`, reported: `ended ${said}` };
  const detail = `ended at ${seen} on the platform, reported to have ended at ${said}`;
  return [{ code: "duration", difference_ms: 0n, figures, detail, usage }];
}

function runners({ runner_id, tracking }: PlatformJob, usage: Reported): Difference[] {
  if (runner_id === usage.runner_id && tracking === usage.tracking) return [];
  const figures = {
    platform: `${tracking} ${runner_id}`,
    reported: `${usage.tracking} ${usage.runner_id}`,
  };
  const detail = `runner ${runner_id} ran it, ${usage.runner_id} reported it`;
  return [{ code: "foreign-runner", difference_ms: 0n, figures, detail, usage }];
}

function places(job: PlatformJob, usage: Reported): Difference[] {
  const figures =
    differing("namespace", job.namespace_id, usage.namespace_id) ??
    differing("project", job.project_id, usage.project_id);
  if (figures === undefined) return [];
  const detail = `${figures.platform} on the platform, ${figures.reported} reported`;
  return [{ code: "other-namespace", difference_ms: 0n, figures, detail, usage }];
}

/** The platform's list of a runner's jobs names projects and no namespaces; a webhook names neither's root. */
function differing(
  what: string,
  seen: string | undefined,
  reported: string,
): Difference["figures"] | undefined {
  if (seen === undefined || seen === reported) return undefined;
  return { platform: `${what} ${seen}`, reported: `${what} ${reported}` };
}
