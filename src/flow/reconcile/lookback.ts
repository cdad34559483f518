/**
 * How far back walks look: GitLab numbers a job when it is made, and a manual one may run weeks later, between two
 * walks. The walk over a month's end looks further back than the others: its coverage lets the month be cut off.
 */
import { epochMs, instantText, monthOf, nextMonth } from "../../core/unit.ts";

export interface Lookback {
  /** Of each walk, before what is covered. */
  lookbackMs: number;
  /** Of one from a month into another; where this is less, it is `lookbackMs`. */
  monthLookbackMs: number;
}

/** Jobs that were made before it are in the walks before. @param from what is covered so far. @param to where the walk began */
export function floorOf(lookback: Lookback, { from, to }: { from: string; to: string }): string {
  const ms = monthOf(from) === monthOf(to) ? lookback.lookbackMs : monthDepth(lookback);
  return instantText(epochMs(from) - ms);
}

const DAY_MS = 86_400_000;

/**
 * Pulled jobs that were made since then, and ended on that day, are all known: a walk over any of its instants
 * began before the day's end, and one over the month's end before that.
 *
 * @param covered of each runner that is pulled and has had jobs by the month's end, how far; undefined: not at all
 */
export function madeSince(
  lookback: Lookback,
  day: string,
  covered: readonly (string | undefined)[],
): string {
  const dayEnd = epochMs(`${day}T00:00:00.000Z`) + DAY_MS;
  const monthEnd = monthEndOf(day);
  const shallow = instantText(dayEnd - lookback.lookbackMs);
  if (covered.some((to = "") => to < monthEnd)) return shallow;
  const deep = instantText(epochMs(monthEnd) - monthDepth(lookback));
  return deep < shallow ? deep : shallow;
}

/** The instant at which the month of a day is over. */
export function monthEndOf(day: string): string {
  return `${nextMonth(monthOf(day))}T00:00:00.000Z`;
}

function monthDepth({ lookbackMs, monthLookbackMs }: Lookback): number {
  return Math.max(lookbackMs, monthLookbackMs);
}
