/**
 * What can slip through (DESIGN §9), as bounds that follow from configuration alone. Decisions know only
 * what was said before them: a start is counted as its reserve, a running job as its last heartbeat.
 *
 * Amounts are in units of 10⁻⁶ compute-milliseconds.
 */
import { MINUTE } from "../charge.ts";
import type { Factor } from "../factor.ts";

/** How long a job can go on unheard: until its next heartbeat, and until the answer has ended it. */
export interface Pace {
  readonly heartbeatMs: bigint;
  readonly roundMs: bigint;
}

/** DESIGN §17. The answer ends a job with the runner's next update, of which GitLab asks for one a minute. */
export const PACE: Pace = { heartbeatMs: 30_000n, roundMs: 60_000n };

/** After three heartbeats that did not come: the job goes on counting by what was heard last. */
export const FROZEN_AFTER_MS = 3 * Number(PACE.heartbeatMs);

const MS_PER_MINUTE = 60_000n;
/** One compute-millisecond. */
const COMPUTE_MS = MINUTE / MS_PER_MINUTE;

/**
 * How many starts can be let through at once: ⌈left ÷ reserve⌉. The last is granted on the first unit, so
 * together they hold less than `left` and one reserve. Undefined, without a reserve there is no bound: a
 * start that holds nothing hinders none.
 *
 * @param left start bound less what is live or reserved already; signed
 * @param reserve of one start: its floor of job time × its factor; the smallest, where factors differ
 */
export function startsAtMost(left: bigint, reserve: bigint): bigint | undefined {
  if (left <= 0n) return 0n;
  return reserve > 0n ? (left + reserve - 1n) / reserve : undefined;
}

/**
 * How far usage can come to lie beyond what was available: the tolerance (grace of `stop`, cap of `bill`),
 * and each running job's own time between the last yes that any of them got and its own end.
 *
 * Why not more: at that yes all that was heard was within the bound; of every job it held the last
 * heartbeat before, and each had its next one, the first that could be refused, an interval later at most.
 *
 * @param factors of all jobs that run then, or ended and are not on the log; also of those that started
 *   unasked and were not heard yet. A job of a silent host has no next heartbeat: its timeout bounds it.
 */
export function beyondAtMost(tolerance: bigint, factors: readonly Factor[], pace: Pace): bigint {
  return factors.reduce((sum, factor) => sum + unheardAtMost(factor, pace), tolerance);
}

/** A job's charge for the time between two heartbeats and a round; amounts are rounded once, at the end. */
function unheardAtMost({ n, d }: Factor, { heartbeatMs, roundMs }: Pace): bigint {
  const scaled = (heartbeatMs + roundMs) * COMPUTE_MS * n;
  // Where no duration needs rounding none can add to it; else both ends may be half a unit off.
  return (COMPUTE_MS * n) % d === 0n ? scaled / d : scaled / d + 1n;
}

/**
 * The simplest factor that makes this amount of this time: live usage keeps no factor, and needs none.
 * Undefined for no time at all, of which every factor makes nothing.
 */
export function impliedFactor(elapsedMs: bigint, amount: bigint): Factor | undefined {
  if (elapsedMs === 0n) return undefined;
  if (amount === 0n) return { n: 0n, d: 1n };
  const d = 2n * elapsedMs * COMPUTE_MS;
  return simplest({ n: 2n * amount - 1n, d }, { n: 2n * amount + 1n, d });
}

/** The fraction with the smallest denominator strictly between two, of which the lower is not negative. */
function simplest(low: Factor, high: Factor): Factor {
  const whole = low.n / low.d;
  if ((whole + 1n) * high.d < high.n) return { n: whole + 1n, d: 1n };
  // Both lie in one unit: the simplest between their reciprocals, which may reach to infinity.
  const rest = low.n - whole * low.d;
  const upper = { n: low.d, d: rest };
  const lower = { n: high.d, d: high.n - whole * high.d };
  const inner = rest === 0n ? { n: lower.n / lower.d + 1n, d: 1n } : simplest(lower, upper);
  return { n: whole * inner.n + inner.d, d: inner.n };
}
