/**
 * That reconciliation has come to an end about a month: its platform jobs were held against the log, and what
 * differs is open as a break. The log alone does not say it, so that it is asked of now, and stands in no statement.
 */
import type { Transaction } from "../../store/connect.ts";
import { readMonthMatching } from "../../store/month-matching.ts";
import { type Condition, endOf } from "./conditions.ts";

/** `until`: all jobs that ended before are matched, or are breaks. */
export async function matching(
  tx: Transaction,
  { log, month }: { log: string; month: string },
): Promise<Condition<"matching">> {
  const end = endOf(month);
  const { covered_by = -1n, looked_at, since, waiting } = await readMonthMatching(tx, log, end);
  const evidence = { until: since?.toISOString() ?? end };
  const behind = looked_at <= covered_by && `coverage of entry ${covered_by} was not looked at yet`;
  const jobs = waiting > 0n && `${waiting} jobs are not matched, the first ended ${evidence.until}`;
  const missing = behind || jobs;
  return { code: "matching", evidence, ...(missing !== false && { missing }) };
}
