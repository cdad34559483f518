/**
 * That reconciliation has come to an end about a month: its platform jobs were held against the log, and what
 * differs is open as a break. The log alone does not say it, so that it is asked of now, and stands in no statement.
 */
import type { Transaction } from "../../store/connect.ts";
import { readUnkept } from "../../store/kept-populations.ts";
import { readMonthMatching } from "../../store/month-matching.ts";
import { type Condition, endOf, startOf } from "./conditions.ts";

/** `until`: all jobs that ended before are matched, or are breaks. */
export async function matching(
  tx: Transaction,
  { log, month }: { log: string; month: string },
): Promise<Condition<"matching">> {
  const end = endOf(month);
  const { covered_by = -1n, looked_at, since, waiting } = await readMonthMatching(tx, log, end);
  const evidence = { until: since?.toISOString() ?? end };
  // Of what was lost with another database nobody here can say whether it was reported.
  const unkept = await readUnkept(tx, log, { from: startOf(month), until: end });
  const lost = unkept !== undefined && `the jobs that entry ${unkept} covers are not kept here`;
  const behind = looked_at <= covered_by && `coverage of entry ${covered_by} was not looked at yet`;
  const jobs = waiting > 0n && `${waiting} jobs are not matched, the first ended ${evidence.until}`;
  const missing = lost || behind || jobs;
  return { code: "matching", evidence, ...(missing !== false && { missing }) };
}
