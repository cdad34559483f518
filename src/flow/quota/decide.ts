/**
 * May these jobs start, may those go on (DESIGN §9)? Every answer says as of which entry, how old that is,
 * and where live usage was read.
 */
import { charge, formatSignedComputeMs, signedComputeMinutes } from "../../core/charge.ts";
import { type Factor, ONE } from "../../core/factor.ts";
import type { Prefix } from "../../core/prefix.ts";
import { Problem } from "../../core/problem.ts";
import type { Ask } from "../../core/quota/live.ts";
import { remaining } from "../../core/quota/quota.ts";
import { instantText, milliseconds, type Tracking } from "../../core/unit.ts";
import type { Appender } from "../log/append.ts";
import type { Asked, AskedResult, Source } from "./ask.ts";
import { type AskingAll, askAtOnce, type Inquiry } from "./ask-at-once.ts";
import { askInTurns } from "./ask-in-turns.ts";
import type { LiveBudget } from "./live-budget.ts";
import { ANY_MACHINE, isFreeAnywhere, isNothing, liveFactor } from "./live-rate.ts";
import { recentPrefix } from "./recent-prefix.ts";
import type { Stopped, Stops } from "./stops.ts";

export interface Quotaing extends AskingAll {
  appender: Pick<Appender, "prefix">;
  /** Whether a job may start while too little is known; `plan`: those whose plan bills what is beyond. */
  policy: "open" | "closed" | "plan";
  /** Of job time, kept for each job that may start until it is heard of. */
  startFloorMs: bigint;
  budget: LiveBudget;
  stops: Stops;
}

export interface Question {
  job_id: string;
  namespace_id: string;
  ask: "start" | "go_on";
  project_id?: string | undefined;
  machine_type?: string | undefined;
  tracking?: Tracking | undefined;
}

/**
 * `within`, `beyond`: by the figures. `unlimited`, `tracked` (on Dedicated): nothing stops it. `policy`: too little was known.
 * `on-log`: it has ended. What is not counted is never stopped: `not-counted` (no hosted job, costs nothing,
 * or longer than a report may say), `outside-enrolment` (the runner's key does not speak for it), `no-rate`,
 * `too-many-jobs` (its key spoke for more than a runner has).
 */
export const DECISION_REASONS = [
  "within",
  "beyond",
  "unlimited",
  "tracked",
  "policy",
  "on-log",
  "not-counted",
  "outside-enrolment",
  "no-rate",
  "too-many-jobs",
] as const;
export type DecisionReason = (typeof DECISION_REASONS)[number];

export interface Decision {
  job_id: string;
  namespace_id: string;
  allowed: boolean;
  /** What gitlab-runner obeys as `Job-Status`. */
  job_status: "running" | "failed";
  reason: DecisionReason;
  /** Of the namespace, less all that is live; where there is something to run out of. */
  remaining_compute_ms?: string;
  remaining_minutes?: string;
  /** All of these, or none where nothing of the namespace is known, or it was not asked. */
  month?: string;
  as_of?: string;
  age_ms?: string;
  source?: Source;
}

/** What a namespace is asked about one job. */
export interface Posed {
  readonly namespace: string;
  readonly ask: Extract<Ask, { kind: "start" | "run" | "go_on" }>;
  /** An opaque principal id, or a kid. */
  readonly by: string;
}

/** DESIGN §17. */
export const DECISION_AGE_MS = 5_000;
/** A start that was not heard of any more by then has failed to. */
const RESERVED_MS = 300_000;

/**
 * In the order of the questions.
 * @param asked.by an opaque principal id
 * @param asked.maxAgeMs how old the figures may be for a no to a running job
 * @throws Problem `not-found` if there is no such log; `busy` while nothing at all is known of it
 */
export async function decide(
  quotaing: Quotaing,
  { log, by, maxAgeMs }: { log: string; by: string; maxAgeMs: number },
  questions: readonly Question[],
): Promise<Decision[]> {
  const namespace = questions[0]?.namespace_id ?? "";
  const prefix = await recentPrefix(quotaing, { log, namespace });
  const now = quotaing.clock.now();
  const at = instantText(now);
  const posed = questions.map((question): Posed | Decision => {
    const { ask, job_id: job, namespace_id: namespace } = question;
    const factor = factorOf(prefix, question, at);
    if (factor === "none") return uncounted(question, "not-counted");
    if (ask === "go_on") return { namespace, by, ask: { kind: "go_on", job } };
    // By job time where it is not known: something must be kept, or all could start at once.
    const floor = charge(milliseconds(quotaing.startFloorMs), factor ?? ONE);
    return { namespace, by, ask: { kind: "start", job, floor, until: now + RESERVED_MS } };
  });
  return await answerAll(quotaing, log, posed, maxAgeMs);
}

/** What no namespace is asked about: it goes on, and nothing is counted. */
export function uncounted(
  { job_id, namespace_id }: Pick<Decision, "job_id" | "namespace_id">,
  reason: DecisionReason,
): Decision {
  return { job_id, namespace_id, allowed: true, job_status: "running", reason };
}

/**
 * One call for each namespace, all at once; one that fails leaves the others alone.
 * @param posed those that are decided already stay as they are
 * @param maxAgeMs how old the figures may be, where newer ones can be had
 * @throws Problem `not-found` if there is no such log
 */
export async function answerAll(
  quotaing: Quotaing,
  log: string,
  posed: readonly (Posed | Decision)[],
  maxAgeMs: number,
): Promise<Decision[]> {
  const decisions: Decision[] = [];
  const places = new Map<string, Placed[]>();
  for (const [position, each] of posed.entries()) {
    if ("reason" in each) {
      decisions[position] = each;
      continue;
    }
    const placed = { position, posed: each };
    const others = places.get(each.namespace);
    if (others === undefined) places.set(each.namespace, [placed]);
    else others.push(placed);
  }
  const inquiries = Array.from(places, ([namespace, placed]) => {
    return { namespace, placed, asks: placed.map(({ posed }) => posed.ask) };
  });
  const atOnce = await askAtOnce(quotaing, log, inquiries, maxAgeMs);
  const stopped: Stopped[] = [];
  const answer = ({ namespace, placed }: Inquired, asked: Asked | undefined): void => {
    const stops = answerAsked(quotaing, placed, asked, decisions);
    if (stops.length > 0) stopped.push({ namespace, asked, stops });
  };
  const late = inquiries.filter((inquiry, i) => {
    const asked = atOnce[i];
    if (asked !== undefined) answer(inquiry, asked);
    return asked === undefined;
  });
  await Promise.all(
    late.map(async (inquiry) => {
      answer(inquiry, await askAlone(quotaing, log, inquiry, maxAgeMs));
    }),
  );
  await quotaing.stops.keep(log, stopped);
  return decisions;
}

interface Inquired extends Inquiry {
  readonly placed: readonly Placed[];
}

/** Undefined: too little is known, and the policy says what may be done. */
async function askAlone(
  quotaing: Quotaing,
  log: string,
  { namespace, asks }: Inquiry,
  maxAgeMs: number,
): Promise<Asked | undefined> {
  try {
    return await askInTurns(quotaing, { log, namespace }, asks, { maxAgeMs });
  } catch (error) {
    if (!(error instanceof Problem && error.code === "busy")) throw error;
    return undefined;
  }
}

interface Placed {
  readonly position: number;
  readonly posed: Posed;
}

/**
 * @param decisions gets each at its position
 * @returns what was said no to
 */
function answerAsked(
  quotaing: Quotaing,
  placed: readonly Placed[],
  asked: Asked | undefined,
  decisions: Decision[],
): Stopped["stops"] {
  const shown = asked && shownOf(asked);
  const stops: Stopped["stops"] = [];
  for (const [i, { position, posed }] of placed.entries()) {
    const { ask, by, namespace: namespace_id } = posed;
    const { allowed, reason } = verdictOf(quotaing, ask, asked, asked?.results[i]);
    decisions[position] = {
      job_id: ask.job,
      namespace_id,
      allowed,
      job_status: allowed ? "running" : "failed",
      reason,
      ...shown,
    };
    if (!allowed) stops.push({ job: ask.job, ask: ask.kind, by, reason });
  }
  return stops;
}

interface Verdict {
  allowed: boolean;
  reason: DecisionReason;
}

/**
 * What is known to be over is over, wherever live usage was read: others can only add to it. What seems to
 * be left is less sure while Redis is away, and old figures say nothing: then nobody who runs is stopped,
 * and who wants to start does by the policy.
 */
function verdictOf(
  { policy }: Quotaing,
  { kind }: Posed["ask"],
  asked: Asked | undefined,
  result: AskedResult | undefined,
): Verdict {
  const beyond = asked?.shown.beyond ?? "stop";
  const goesOn = kind !== "start" || policy === "open" || (policy === "plan" && beyond === "bill");
  if (asked === undefined || result === undefined) return { allowed: goesOn, reason: "policy" };
  if (result.onLog) return { allowed: true, reason: "on-log" };
  if (asked.shown.platform === "dedicated") return { allowed: true, reason: "tracked" };
  if (asked.shown.unlimited) return { allowed: true, reason: "unlimited" };
  if (asked.stale) return { allowed: goesOn, reason: "policy" };
  if (!result.allowed) return { allowed: false, reason: "beyond" };
  if (asked.alone && !goesOn) return { allowed: false, reason: "policy" };
  return { allowed: true, reason: "within" };
}

type Shown = Omit<Decision, keyof Verdict | "job_id" | "namespace_id" | "job_status">;

function shownOf({ ageMs, figures, live, shown, source }: Asked): Shown {
  const { month } = shown;
  const place = { month, as_of: String(figures.asOf), age_ms: String(ageMs), source };
  if (shown.unlimited || shown.platform === "dedicated") return place;
  const left = remaining(shown, live);
  return {
    remaining_compute_ms: formatSignedComputeMs(left),
    remaining_minutes: signedComputeMinutes(left),
    ...place,
  };
}

/** @returns `none`: the job is not counted; undefined where no rate is to be had */
function factorOf(
  prefix: Prefix,
  { machine_type, namespace_id: namespace, project_id: project, tracking }: Question,
  at: string,
): Factor | "none" | undefined {
  if (tracking === "self_managed") return "none";
  const build = { namespace, project };
  const machine = { machine_type: machine_type ?? ANY_MACHINE, tracking: "hosted" } as const;
  const factor = liveFactor(prefix, build, machine, at);
  const isFree =
    machine_type === undefined
      ? isFreeAnywhere(prefix, build, at)
      : factor !== undefined && isNothing(factor);
  return isFree ? "none" : factor;
}
