/**
 * What a namespace has left (DESIGN §9): one pure function of entries and an instant. What runs now is
 * subtracted by whoever knows it, so that the ledger's figures stay functions of the log alone.
 *
 * Amounts are in units of 10⁻⁶ compute-milliseconds, and signed where their type is plain `bigint`.
 */
import { MINUTE } from "../charge.ts";
import type { Closing } from "../month.ts";
import { type ComputeMs, computeMs, epochMs, monthOf, nextMonth, type Platform } from "../unit.ts";

/** A `quota` entry. */
export interface LimitFact {
  readonly index: bigint;
  /** When the entry was written, by its log's clock; an `InstantText`, as the next. */
  readonly at: string;
  readonly effective_from: string;
  readonly monthly_minutes: bigint;
  readonly beyond: "stop" | "bill";
  /** Minutes; undefined: there is none. */
  readonly cap: bigint | undefined;
  readonly grace_minutes: bigint;
}

/** A `pack` entry: one version of one pack. */
export interface PackFact {
  readonly index: bigint;
  /** Source, newline, the source's name of it: the same for all its versions. */
  readonly pack: string;
  readonly minutes: bigint;
  /** First and last month that it may be drawn on. */
  readonly purchased_in: string;
  readonly expires_in: string;
  readonly source_version: bigint;
}

export interface QuotaFacts {
  readonly platform: Platform;
  /** All of the namespace, oldest entry first; of packs all versions. */
  readonly limits: readonly LimitFact[];
  readonly packs: readonly PackFact[];
  /** Of the log, oldest first, without those that were withdrawn. */
  readonly closings: readonly Closing[];
  /**
   * By month: billable hosted usage that was posted to it and was used in it, with adjustments. Below zero
   * where more was taken back than is posted to it, of usage that came while it was cut off.
   */
  readonly used: ReadonlyMap<string, bigint>;
}

/** A pack that is valid in the month. */
export interface DrawnPack {
  /** Of the version that counts. */
  readonly index: bigint;
  readonly pack: string;
  readonly minutes: bigint;
  /** `minutes` as an amount. */
  readonly capacity: bigint;
  /** For earlier months: more than `capacity` if the pack was made smaller afterwards. */
  readonly drawnBefore: bigint;
  /** For this month. */
  readonly drawn: bigint;
  readonly expires_in: string;
}

export interface Quota {
  readonly month: string;
  readonly platform: Platform;
  /** In force; undefined: nobody set one, which is no minutes a month and `stop`. */
  readonly limit: LimitFact | undefined;
  readonly beyond: "stop" | "bill";
  /** In the order in which they are drawn. */
  readonly packs: readonly DrawnPack[];
  readonly used: ComputeMs;
  /** Limit and what the packs had left when the month began, less what is used; may be negative. */
  readonly available: bigint;
  /** No minutes a month and no valid pack: never anything to run out of. */
  readonly unlimited: boolean;
  /** A job may start while what is live of others is below this; undefined: always. */
  readonly startBound: bigint | undefined;
  /** A job must stop when what is live is above this; undefined: never. */
  readonly runBound: bigint | undefined;
  /** Epoch milliseconds, half-open: all of this holds there as long as no entry comes. */
  readonly from: number;
  readonly until: number;
}

/** Of a namespace that nobody set a limit for. */
const GRACE_MINUTES = 1_000n;
/** What replaces a limit begins no sooner than with the next instant there is. */
const AT_ONCE_MS = 1;

/** @param instant an `InstantText`; months before the newest may be asked about too */
export function quotaAt(facts: QuotaFacts, instant: string): Quota {
  const month = monthOf(instant);
  const { platform } = facts;
  const used = usedIn(facts, month);
  const limits = asOfClosing(facts, facts.limits, month);
  const at = limits.findLastIndex((each) => beginOf(each) <= instant);
  const limit = limits[at];
  const packs = drawnIn(facts, month, minutesOf(limit));
  const undrawn = packs.reduce((sum, pack) => sum + leftOf(pack, pack.drawnBefore), 0n);
  const available = minutesOf(limit) + undrawn - used;
  const unlimited = minutesOf(limit) === 0n && packs.length === 0;
  // Only a limit that was written after the one in force can still take its place.
  const next = limits.slice(at + 1).map((each) => epochMs(beginOf(each)));
  return {
    month,
    platform,
    limit,
    beyond: limit?.beyond ?? "stop",
    packs,
    used,
    available,
    unlimited,
    ...(unlimited || platform === "dedicated" ? UNBOUND : boundsOf(limit, available)),
    from: Math.max(startOf(month), limit === undefined ? 0 : epochMs(beginOf(limit))),
    until: Math.min(startOf(nextMonth(month)), ...next),
  };
}

/** What is left beside all that is live; signed. */
export function remaining({ available }: { readonly available: bigint }, live: bigint): bigint {
  return available - live;
}

type Bounds = Pick<Quota, "startBound" | "runBound">;

const UNBOUND: Bounds = { startBound: undefined, runBound: undefined };

/** With `bill` the cap is the one bound of both: a grace beyond what is paid for would be given away. */
function boundsOf(limit: LimitFact | undefined, available: bigint): Bounds {
  if (limit?.beyond !== "bill") {
    const grace = limit?.grace_minutes ?? GRACE_MINUTES;
    return { startBound: available, runBound: available + grace * MINUTE };
  }
  if (limit.cap === undefined) return UNBOUND;
  const bound = available + limit.cap * MINUTE;
  return { startBound: bound, runBound: bound };
}

/**
 * The first instant that an entry counts at. One that is to hold at once holds as soon as it is there, in all of
 * its month: a log's clock never runs backwards, so after one entry by a clock that was ahead `effective_from`
 * is a time to come.
 */
function beginOf({ at, effective_from }: LimitFact): string {
  const isAtOnce = epochMs(effective_from) <= epochMs(at) + AT_ONCE_MS;
  return isAtOnce ? `${monthOf(effective_from)}T00:00:00.000Z` : effective_from;
}

/** Nobody has used less than nothing, whatever was taken back. */
function usedIn({ used }: QuotaFacts, month: string): ComputeMs {
  const net = used.get(month) ?? 0n;
  return computeMs(net > 0n ? net : 0n);
}

function minutesOf(limit: LimitFact | undefined): bigint {
  return (limit?.monthly_minutes ?? 0n) * MINUTE;
}

/**
 * The packs valid in the month, after all draws up to and with its own. Only months of use can have
 * drawn, so the walk is as long as the history of usage, whatever months a pack names.
 */
function drawnIn(facts: QuotaFacts, month: string, limit: bigint): DrawnPack[] {
  const drawn = new Map<string, bigint>();
  const earlier = [...facts.used.keys()].filter((used) => used < month).sort();
  for (const before of earlier) {
    for (const pack of draw(facts, before, lastLimit(facts, before), drawn)) {
      drawn.set(pack.pack, pack.drawnBefore + pack.drawn);
    }
  }
  return draw(facts, month, limit, drawn);
}

/** @param before what was drawn from each pack for the months before */
function draw(
  facts: QuotaFacts,
  month: string,
  limit: bigint,
  before: ReadonlyMap<string, bigint>,
): DrawnPack[] {
  let over = usedIn(facts, month) - limit;
  return validIn(facts, month).map(({ index, pack, minutes, expires_in }) => {
    const capacity = minutes * MINUTE;
    const drawnBefore = before.get(pack) ?? 0n;
    const left = leftOf({ capacity }, drawnBefore);
    const drawn = over <= 0n ? 0n : over < left ? over : left;
    over -= drawn;
    return { index, pack, minutes, capacity, drawnBefore, drawn, expires_in };
  });
}

/** A pack that was made smaller than what is drawn has nothing left, and owes nothing. */
function leftOf({ capacity }: { readonly capacity: bigint }, drawn: bigint): bigint {
  return drawn < capacity ? capacity - drawn : 0n;
}

/** The limit that the month ended with. */
function lastLimit(facts: QuotaFacts, month: string): bigint {
  const end = nextMonth(month);
  const limits = asOfClosing(facts, facts.limits, month);
  return minutesOf(limits.findLast((each) => beginOf(each).slice(0, 10) < end));
}

/** The newest version of each valid pack: earliest expiry first, then the order of first versions. */
function validIn(facts: QuotaFacts, month: string): PackFact[] {
  const newest = new Map<string, PackFact>();
  // A key that is set again keeps its place, which is that of the first version.
  for (const fact of asOfClosing(facts, facts.packs, month)) newest.set(fact.pack, fact);
  return [...newest.values()]
    .filter(({ minutes, purchased_in, expires_in }) => {
      return minutes > 0n && purchased_in <= month && month <= expires_in;
    })
    .sort((a, b) => (a.expires_in < b.expires_in ? -1 : a.expires_in > b.expires_in ? 1 : 0));
}

/**
 * What a month reads: all that stands, and once it is cut off only what stood then, or else a later entry would change
 * figures that are closed. The first closing of a log cuts off all months before it too.
 */
function asOfClosing<F extends { readonly index: bigint }>(
  { closings }: QuotaFacts,
  entries: readonly F[],
  month: string,
): readonly F[] {
  const closing = closings.find((each) => each.month >= month);
  return closing === undefined ? entries : entries.filter(({ index }) => index < closing.index);
}

function startOf(month: string): number {
  return epochMs(`${month}T00:00:00.000Z`);
}
