/**
 * What follows from a consumer's sums (docs/feed.md, "Exactly"): which differences open a break, and which breaks
 * are over.
 */
import type { Finding } from "../break.ts";
import { formatSignedComputeMs, parseSignedComputeMs } from "../charge.ts";
import type { Body } from "../entry.ts";

/** Events of a billing month, and what they come to in 10⁻⁶ compute-milliseconds, signed. */
export interface Sum {
  readonly events: bigint;
  readonly computeMs: bigint;
}

export type AckMonth = Body<"feed_ack">["months"][number];
/** What a consumer says of a month. */
export type Stated = Pick<AckMonth, "billing_month" | "compute_ms" | "events">;

const NOTHING: Sum = { events: 0n, computeMs: 0n };

/** What was stated beside what was counted, of each month that either has, ascending. */
export function compared(stated: readonly Stated[], counted: ReadonlyMap<string, Sum>): AckMonth[] {
  const said = new Map(stated.map((month) => [month.billing_month, month]));
  const months = [...new Set([...said.keys(), ...counted.keys()])].sort();
  return months.map((billing_month) => {
    const { compute_ms = "0.000000", events = "0" } = said.get(billing_month) ?? {};
    const count = counted.get(billing_month) ?? NOTHING;
    return {
      billing_month,
      compute_ms,
      counted_compute_ms: formatSignedComputeMs(count.computeMs),
      counted_events: String(count.events),
      events,
    };
  });
}

/** What the log counted for an acknowledgement. */
export function countedIn({ months }: Body<"feed_ack">): Map<string, Sum> {
  return new Map(
    months.map(({ billing_month, counted_compute_ms, counted_events }) => {
      const computeMs = parseSignedComputeMs(counted_compute_ms);
      return [billing_month, { events: BigInt(counted_events), computeMs }];
    }),
  );
}

/** Of the months that differ, by how much the consumer has more. */
export function differencesIn(months: readonly AckMonth[]): Map<string, Sum> {
  const differences = new Map<string, Sum>();
  for (const month of months) {
    const events = BigInt(month.events) - BigInt(month.counted_events);
    const computeMs =
      parseSignedComputeMs(month.compute_ms) - parseSignedComputeMs(month.counted_compute_ms);
    if (events !== 0n || computeMs !== 0n) {
      differences.set(month.billing_month, { events, computeMs });
    }
  }
  return differences;
}

/**
 * The months of which a break may end or open: a consumer's open break is of a month that differed when it last
 * acknowledged, or else that had ended it.
 *
 * @param before the consumer's acknowledgement before
 */
export function monthsAtStake(months: readonly AckMonth[], before: readonly AckMonth[]): string[] {
  return [...new Set([...differencesIn(months).keys(), ...differencesIn(before).keys()])];
}

/** The consumer's newest `portal-difference` of a month; a `healed` one is as none. */
export interface Standing {
  readonly index: bigint;
  readonly month: string;
  readonly state: "open" | "accepted" | "corrected" | "healed";
}

export interface Judged {
  /** Open breaks that are over, by month ascending. */
  readonly ended: readonly bigint[];
  readonly opened: readonly Finding[];
}

/**
 * @param ack index of its entry
 * @param before the consumer's acknowledgement before it
 * @param standing of `monthsAtStake`
 */
export function judgeAck(
  ack: bigint,
  months: readonly AckMonth[],
  before: readonly AckMonth[],
  standing: readonly Standing[],
): Judged {
  const [now, then] = [differencesIn(months), differencesIn(before)];
  const breaks = new Map(standing.map((each) => [each.month, each]));
  const isCovered = (month: string): boolean => {
    const state = breaks.get(month)?.state;
    return (state === "open" || state === "accepted") && isSame(now.get(month), then.get(month));
  };
  const changed = [...new Set([...now.keys(), ...breaks.keys()])]
    .filter((month) => !(now.has(month) && isCovered(month)))
    .sort();
  return {
    ended: changed.flatMap((month) => {
      const stands = breaks.get(month);
      return stands?.state === "open" ? [stands.index] : [];
    }),
    opened: changed.flatMap((month) => {
      const difference = now.get(month);
      return difference === undefined ? [] : [findingOf(ack, month, difference)];
    }),
  };
}

function isSame(a: Sum | undefined, b: Sum | undefined): boolean {
  return a?.events === b?.events && a?.computeMs === b?.computeMs;
}

const MICRO = 1_000_000n;
const INT64_MAX = 2n ** 63n - 1n;

function findingOf(ack: bigint, month: string, { computeMs, events }: Sum): Finding {
  return {
    code: "portal-difference",
    tracking: "hosted",
    month,
    about: { ack: String(ack), billing_month: month },
    detail: `events ${events}, compute_ms ${formatSignedComputeMs(computeMs)}`,
    difference_ms: bounded(computeMs / MICRO),
  };
}

/** A consumer may state what no column holds; `detail` has it in full. */
function bounded(ms: bigint): bigint {
  if (ms > INT64_MAX) return INT64_MAX;
  return ms < -INT64_MAX ? -INT64_MAX : ms;
}
