/**
 * The platform's view of a job against the log's (DESIGN §11). Nothing here is ever usage: what only the
 * platform saw awaits confirmation, and then is a break; what both saw and differs is a break.
 */
import type { BreakCode } from "./evidence.ts";
import { epochMs, instantText, type Tracking } from "./unit.ts";

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
}

/** The usage that stands for a job. */
export interface Reported {
  readonly index: bigint;
  readonly runner_id: string;
  readonly tracking: Tracking;
  readonly project_id: string;
  readonly namespace_id: string;
  readonly duration_ms: bigint;
  readonly usage_month: string;
}

/** What the log has of a job. `held`: a report that waits for two persons. */
export interface Standing {
  readonly usage?: Reported;
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
  /** What the platform has more of; of `duration` alone not 0. */
  readonly difference_ms: bigint;
  /** What each has, not rounded: with other figures it is another difference. */
  readonly figures: { readonly platform: string; readonly reported: string };
  readonly detail: string;
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

/**
 * A retried job is a job of its own, with an id of its own.
 * @param at now
 */
export function match(
  job: PlatformJob,
  { usage, held }: Standing,
  { grace_ms, tolerance_ms }: Bounds,
  at: string,
): Verdict {
  if (usage !== undefined) {
    const differences = compare(job, usage, tolerance_ms);
    return { state: differences.length === 0 ? "matched" : "differs", differences };
  }
  if (held !== undefined) return settled("held");
  // Canceled while it was pending: a queue cost nobody anything, however long it was.
  if (job.started_at === undefined) return settled("never_started");
  if (job.finished_at === undefined) return settled("running");
  const dueAt = instantText(epochMs(job.finished_at) + grace_ms);
  if (at < dueAt) return { state: "awaiting", differences: [], dueAt };
  const detail = `${job.status} at ${job.finished_at}`;
  const figures = { platform: String(job.duration_ms ?? ""), reported: "" };
  const difference_ms = job.duration_ms ?? 0n;
  const missing = { code: "missing-report", difference_ms, figures, detail } as const;
  return { state: "missing", differences: [missing] };
}

function settled(state: Verdict["state"]): Verdict {
  return { state, differences: [] };
}

function compare(job: PlatformJob, usage: Reported, tolerance: bigint): Difference[] {
  const differences: Difference[] = [];
  const { duration_ms, runner_id, tracking } = job;
  if (duration_ms !== undefined && job.finished_at !== undefined) {
    const difference_ms = duration_ms - usage.duration_ms;
    if (difference_ms > tolerance || -difference_ms > tolerance) {
      const figures = { platform: String(duration_ms), reported: String(usage.duration_ms) };
      const detail = `${duration_ms} ms on the platform, ${usage.duration_ms} reported`;
      differences.push({ code: "duration", difference_ms, figures, detail });
    }
  }
  if (runner_id !== usage.runner_id || tracking !== usage.tracking) {
    const figures = {
      platform: `${tracking} ${runner_id}`,
      reported: `${usage.tracking} ${usage.runner_id}`,
    };
    const detail = `runner ${runner_id} ran it, ${usage.runner_id} reported it`;
    differences.push({ code: "foreign-runner", difference_ms: 0n, figures, detail });
  }
  const figures =
    differing("namespace", job.namespace_id, usage.namespace_id) ??
    differing("project", job.project_id, usage.project_id);
  if (figures !== undefined) {
    const detail = `${figures.platform} on the platform, ${figures.reported} reported`;
    differences.push({ code: "other-namespace", difference_ms: 0n, figures, detail });
  }
  return differences;
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
