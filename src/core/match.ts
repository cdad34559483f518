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
  const missing = { code: "missing-report", difference_ms: job.duration_ms ?? 0n, detail } as const;
  return { state: "missing", differences: [missing] };
}

function settled(state: Verdict["state"]): Verdict {
  return { state, differences: [] };
}

function compare(job: PlatformJob, usage: Reported, tolerance: bigint): Difference[] {
  const differences: Difference[] = [];
  const say = (code: Difference["code"], difference_ms: bigint, detail: string): void => {
    differences.push({ code, difference_ms, detail });
  };
  if (job.duration_ms !== undefined && job.finished_at !== undefined) {
    const more = job.duration_ms - usage.duration_ms;
    if (more > tolerance || -more > tolerance) {
      say("duration", more, `${job.duration_ms} ms on the platform, ${usage.duration_ms} reported`);
    }
  }
  if (job.runner_id !== usage.runner_id || job.tracking !== usage.tracking) {
    say("foreign-runner", 0n, `runner ${job.runner_id} ran it, ${usage.runner_id} reported it`);
  }
  const other =
    differing("namespace", job.namespace_id, usage.namespace_id) ??
    differing("project", job.project_id, usage.project_id);
  if (other !== undefined) say("other-namespace", 0n, other);
  return differences;
}

/** The platform's list of a runner's jobs names projects and no namespaces; a webhook names neither's root. */
function differing(what: string, seen: string | undefined, reported: string): string | undefined {
  if (seen === undefined || seen === reported) return undefined;
  return `${what} ${seen} on the platform, ${reported} reported`;
}
