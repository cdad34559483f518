/** A process' clock, where it writes down instants that all processes wait for. */
import type { Sql } from "../../store/connect.ts";
import { readDatabaseClock } from "../../store/database-clock.ts";
import type { Clock } from "../clock.ts";

/** What clocks that are kept synchronised never differ by. */
const SKEW_MS_MAX = 60_000;

/** One that is further ahead of the database's than that is set right by it: what is due in a year would wait for one. */
export async function soundClock(sql: Sql, clock: Clock): Promise<Clock> {
  const ahead = clock.now() - (await readDatabaseClock(sql));
  return ahead > SKEW_MS_MAX ? { now: () => clock.now() - ahead } : clock;
}
