/** Whether what the service makes by itself is made, and where it is to be: counted, so that somebody hears of it. */
import type { Sql } from "../../store/connect.ts";
import { countLateExports, type LateExports } from "../../store/late-exports.ts";
import type { Clock } from "../clock.ts";

/** From when it was asked for until it is made. */
const MADE_MS = 3_600_000;
/** From when it was made until it is delivered. */
const DELIVERED_MS = 86_400_000;

export async function lateExports({
  sql,
  clock,
}: {
  sql: Sql;
  clock: Clock;
}): Promise<LateExports> {
  const now = clock.now();
  const before = { asked: new Date(now - MADE_MS), ended: new Date(now - DELIVERED_MS) };
  return await countLateExports(sql, before);
}
