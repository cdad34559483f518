/**
 * How often anybody may ask. A process takes points of somebody's window in lots and spends them by itself: one
 * question to Redis for each request would cost as much as a decision does.
 */
import { Problem } from "../../core/problem.ts";
import type { RateLimits, Window } from "../../store/rate-limits.ts";

/**
 * One more request of this principal or key; undefined where it may go on at once.
 * @throws Problem `rate-limited`, at once or later: nothing was done, and it says when to come again
 */
export type Pace = (name: string) => Promise<void> | undefined;

/** A part of all there is, so that several processes leave little of it unspent. */
const LOTS = 100;
const LOT_MAX = 100;
/** Of those who asked last; the others begin with a new lot. */
const NAMES_MAX = 10_000;
const MS_PER_SECOND = 1_000;

interface Lot {
  /** Points that are taken and not spent. */
  left: number;
  /** No more were to be had. */
  isUsedUp: boolean;
  /** When the window ends, in milliseconds that only go forward. */
  until: number;
  taking?: Promise<void> | undefined;
}

export function openPace(
  limits: RateLimits,
  window: Window,
  now: () => number = () => performance.now(),
): Pace {
  const take = limits.open(window);
  const size = Math.max(1, Math.min(LOT_MAX, Math.floor(window.points / LOTS)));
  const lots = new Map<string, Lot>();

  async function refill(name: string, lot: Lot): Promise<void> {
    const { granted, ms } = await take(name, size);
    Object.assign(lot, { left: granted ? size : 0, isUsedUp: !granted, until: now() + ms });
  }

  function lotOf(name: string): Lot {
    const lot = lots.get(name) ?? { left: 0, isUsedUp: false, until: Number.NEGATIVE_INFINITY };
    lots.delete(name);
    lots.set(name, lot);
    for (const oldest of lots.keys()) {
      if (lots.size <= NAMES_MAX) break;
      lots.delete(oldest);
    }
    return lot;
  }

  async function waited(name: string, lot: Lot): Promise<void> {
    do {
      // One at a time: of sixty requests that come together each would take a lot.
      lot.taking ??= refill(name, lot).finally(() => {
        lot.taking = undefined;
      });
      await lot.taking;
      if (lot.isUsedUp) throw limited(lot.until - now());
      // All of it may have gone to others who waited for the same.
    } while (lot.left === 0);
    lot.left -= 1;
  }

  return (name) => {
    const lot = lotOf(name);
    if (now() >= lot.until || (lot.left === 0 && !lot.isUsedUp)) return waited(name, lot);
    if (lot.isUsedUp) throw limited(lot.until - now());
    lot.left -= 1;
    return undefined;
  };
}

function limited(ms: number): Problem {
  const seconds = Math.max(1, Math.ceil(ms / MS_PER_SECOND));
  return new Problem("rate-limited", { retry_after_s: String(seconds) });
}
