/** Holds and conflicts that nobody ends: counted, and said when they begin to be overdue (DESIGN §17). */

import type { Clock } from "../flow/clock.ts";
import { overdueLoop } from "../flow/hold/overdue.ts";
import type { Sql } from "../store/connect.ts";
import type { Logger, Metrics } from "../telemetry.ts";
import { openTrouble } from "./trouble.ts";

const DAY_MS = 86_400_000;
const ALARM_DAYS = 3;

/** Resolves after the abort. */
export function startWaiting(options: {
  sql: Sql;
  clock: Clock;
  log: Logger;
  metrics: Pick<Metrics, "unresolved">;
  signal: AbortSignal;
}): Promise<void> {
  const { sql, clock, log, metrics, signal } = options;
  const trouble = openTrouble(log, "holds and conflicts");
  let alarmed = "";
  return overdueLoop({
    ...{ sql, signal },
    onLook: (standing) => {
      const now = clock.now();
      const aged = standing.map(({ kind, open, since }) => {
        return { kind, open: Number(open), ms: Math.max(0, now - since.getTime()) };
      });
      metrics.unresolved(aged);
      const late = aged.filter(({ ms }) => ms > ALARM_DAYS * DAY_MS).map(({ kind }) => kind);
      // Said when a kind begins to be late, and not each minute.
      if (late.length > 0 && late.join() !== alarmed) {
        log.error({ kinds: late, days: ALARM_DAYS }, "holds or conflicts wait for too long");
      }
      alarmed = late.join();
    },
    onFailure: trouble.failed,
    onRound: trouble.roundEnded,
  });
}
