/** One namespace's quota as it stands: everything that the figures are made of, and what runs now. */
import { charge } from "../../core/charge.ts";
import { formatFactor, NOTHING, ONE } from "../../core/factor.ts";
import { Problem } from "../../core/problem.ts";
import type { Figures } from "../../core/quota/figures.ts";
import type { LiveJob, NamespaceKey } from "../../core/quota/live.ts";
import {
  beyondAtMost,
  FROZEN_AFTER_MS,
  impliedFactor,
  PACE,
  startsAtMost,
} from "../../core/quota/overshoot.ts";
import { type Quota, type QuotaFacts, remaining } from "../../core/quota/quota.ts";
import { instantText, milliseconds, nextMonth, type Platform } from "../../core/unit.ts";
import { type Amount, amountOf } from "./amount.ts";
import { type Asked, askNamespace } from "./ask.ts";
import type { Quotaing } from "./decide.ts";
import {
  type EarlierMonth,
  earlierMonth,
  earlierMonths,
  limitOf,
  packOf,
  type QuotaLimit,
  type QuotaPack,
  startOf,
} from "./draws.ts";

export interface NamespaceQuota {
  log: string;
  namespace_id: string;
  month: string;
  platform: Platform;
  /** Entries 0 … as_of−1 were looked at, so many milliseconds ago. */
  as_of: string;
  age_ms: string;
  /** Where live usage was read; `complete` is false if Redis should have been and could not. */
  source: "redis" | "process";
  complete: boolean;
  /** No minutes a month and no valid pack. */
  unlimited: boolean;
  beyond: "stop" | "bill";
  /** In force; absent: nobody set one. */
  limit?: QuotaLimit;
  packs: QuotaPack[];
  /** Earlier months in which a pack that is valid now was drawn on. */
  earlier: EarlierMonth[];
  used: Amount;
  /** Limit + packs as the month began − used. */
  available: Amount;
  live: Amount;
  /** Available − live. */
  remaining: Amount;
  /** A job may start while what others hold is below; absent: always. */
  start_bound?: Amount;
  /** Running jobs must stop when live is above; absent: never. */
  run_bound?: Amount;
  jobs: RunningJob[];
  /** Held for starts by jobs that have not used what they were let start with; counts for starts alone. */
  reserved: Amount;
  /** Starts that were let through and not heard of since. */
  reservations: Reservation[];
  /** Absent in the first minutes of a month. */
  projected?: Projection;
  /** Absent where there is no bound to slip through. */
  slip?: Slip;
}

export interface RunningJob extends Amount {
  job_id: string;
  /** `frozen`: three heartbeats did not come; it counts by the last. */
  state: "running" | "frozen";
  elapsed_ms: string;
  /** The simplest that makes the amount of the time; `0/1` for no time. */
  factor: string;
  heard_at: string;
  /** Counts no longer than that. */
  counts_until: string;
}

export interface Reservation extends Amount {
  job_id: string;
  until: string;
}

/** `(used + live) × month_ms ÷ elapsed_ms`: the month as if it went on as it went so far. No more is in it. */
export interface Projection extends Amount {
  elapsed_ms: string;
  month_ms: string;
}

/** What can still slip through (core/quota/overshoot). */
export interface Slip {
  /** Jobs of factor 1 that can be let start at once; absent: no reserve, so no bound. */
  starts?: string;
  /** Held by each such start. */
  reserve: Amount;
  /** Grace or cap. */
  tolerance: Amount;
  /** Beyond `available` at most, by the jobs that run now; of one that said no time yet, at factor 1. */
  beyond: Amount;
  /** How long a job can go on unheard. */
  heartbeat_ms: string;
  round_ms: string;
}

/** A projection from less would show noise. */
const PROJECTION_MS_MIN = 600_000;
/** The log moved on between two looks: rarely once. */
const LOOKS_MAX = 5;

/**
 * One without usage or limit is no error: no namespace is registered anywhere.
 * @throws Problem `not-found` if there is no such log; `busy`
 */
export async function showQuota(quotaing: Quotaing, key: NamespaceKey): Promise<NamespaceQuota> {
  for (let look = 0; look < LOOKS_MAX; look += 1) {
    const asked = await askNamespace(quotaing, key, [], { maxAgeMs: 0, inspect: true });
    const { facts, touched } = await quotaing.ledger.hold(key, { asOf: asked.figures.asOf });
    // Facts of a later entry are not what these figures were made of.
    if (touched < asked.figures.asOf) return shown(quotaing, key, asked, facts);
  }
  throw new Problem("busy");
}

function shown(
  { clock, startFloorMs }: Quotaing,
  { log, namespace }: NamespaceKey,
  { figures, shown: quota, live, reserved, jobs = [], source, complete, ageMs }: Asked,
  facts: QuotaFacts,
): NamespaceQuota {
  const now = clock.now();
  const running = jobs.filter(({ kind }) => kind === "running");
  const earlier = earlierMonths(facts, quota);
  return {
    log,
    namespace_id: namespace,
    month: quota.month,
    platform: quota.platform,
    as_of: String(figures.asOf),
    age_ms: String(ageMs),
    source,
    complete,
    unlimited: quota.unlimited,
    beyond: quota.beyond,
    ...(quota.limit && { limit: limitOf(quota.limit) }),
    packs: quota.packs.map((pack) => packOf(pack, quota.month, earlier)),
    earlier: earlier.map(earlierMonth),
    used: amountOf(quota.used),
    available: amountOf(quota.available),
    live: amountOf(live),
    reserved: amountOf(reserved),
    remaining: amountOf(remaining(quota, live)),
    ...boundsOf(figures),
    jobs: running.map((job) => runningJob(job, now)),
    reservations: jobs.filter(({ kind }) => kind === "reserved").map(reservation),
    ...projection(quota, live, now),
    ...slip(quota, figures, { held: live + reserved, running, startFloorMs }),
  };
}

function boundsOf({
  startBound,
  runBound,
}: Figures): Pick<NamespaceQuota, "start_bound" | "run_bound"> {
  return {
    ...(startBound !== undefined && { start_bound: amountOf(startBound) }),
    ...(runBound !== undefined && { run_bound: amountOf(runBound) }),
  };
}

function runningJob({ job, amount, elapsedMs, heardAt, until }: LiveJob, now: number): RunningJob {
  return {
    job_id: job,
    state: now - heardAt >= FROZEN_AFTER_MS ? "frozen" : "running",
    elapsed_ms: String(elapsedMs),
    factor: formatFactor(impliedFactor(elapsedMs, amount) ?? NOTHING),
    ...amountOf(amount),
    heard_at: instantText(heardAt),
    counts_until: instantText(until),
  };
}

function reservation({ job, floor, until }: LiveJob): Reservation {
  return { job_id: job, ...amountOf(floor), until: instantText(until) };
}

function projection(
  { month, used }: Pick<Quota, "month" | "used">,
  live: bigint,
  now: number,
): { projected?: Projection } {
  const start = startOf(month);
  const elapsed = now - start;
  if (elapsed < PROJECTION_MS_MIN) return {};
  const whole = startOf(nextMonth(month)) - start;
  const amount = ((used + live) * BigInt(whole)) / BigInt(elapsed);
  return {
    projected: { ...amountOf(amount), elapsed_ms: String(elapsed), month_ms: String(whole) },
  };
}

function slip(
  { available }: Pick<Quota, "available">,
  { startBound, runBound }: Figures,
  {
    held,
    running,
    startFloorMs,
  }: {
    held: bigint;
    running: readonly LiveJob[];
    startFloorMs: bigint;
  },
): { slip?: Slip } {
  if (startBound === undefined || runBound === undefined) return {};
  const reserve = charge(milliseconds(startFloorMs), ONE);
  const starts = startsAtMost(startBound - held, reserve);
  const factors = running.map(({ elapsedMs, amount }) => impliedFactor(elapsedMs, amount) ?? ONE);
  const tolerance = runBound - available;
  return {
    slip: {
      ...(starts !== undefined && { starts: String(starts) }),
      reserve: amountOf(reserve),
      tolerance: amountOf(tolerance),
      beyond: amountOf(beyondAtMost(tolerance, factors, PACE)),
      heartbeat_ms: String(PACE.heartbeatMs),
      round_ms: String(PACE.roundMs),
    },
  };
}
