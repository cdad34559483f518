/** What oversight does beside requests: the digest of each day of the access log, and a look at overdue reviews. */
import { type Digesting, digestLoop } from "../flow/access/digest.ts";
import { overdueReviews, REVIEW_DAYS_MAX } from "../flow/access/review.ts";
import type { Clock } from "../flow/clock.ts";
import type { Logger } from "../telemetry.ts";
import { openTrouble } from "./trouble.ts";

/** Names in one line; the count goes on. */
const NAMED_MAX = 10;

export interface Overseeing {
  done: Promise<void>;
  /** Logs whose access nobody has reviewed for more than a quarter. */
  overdue(): number;
}

export function startOverseeing(
  options: Digesting & { clock: Clock; log: Logger; signal: AbortSignal },
): Overseeing {
  const { sql, clock, log } = options;
  const trouble = openTrouble(log, "access log, digest");
  const looks = openTrouble(log, "access reviews");
  let overdue: readonly string[] = [];

  async function look(): Promise<void> {
    const found = await overdueReviews(sql, clock);
    const known = new Set(overdue);
    const begun = found.filter((name) => !known.has(name));
    if (begun.length > 0) {
      const logs = begun.slice(0, NAMED_MAX);
      log.warn({ logs, count: begun.length, days: REVIEW_DAYS_MAX }, "access review overdue");
    }
    overdue = found;
  }

  const done = digestLoop({
    ...options,
    onFailure: trouble.failed,
    onRound: async () => {
      trouble.roundEnded();
      await look().catch(looks.failed);
      looks.roundEnded();
    },
  });
  return { done, overdue: () => overdue.length };
}
