/** How far the platform's jobs of a month were held against the log. Of tables beside the log, and so of now. */
import type { Transaction } from "./connect.ts";

export interface MonthMatching {
  /** Entries 0 … looked_at−1 were looked at; 0 where nobody has begun. */
  looked_at: bigint;
  /** Coverage of the month ends with this entry; undefined: nothing is covered. */
  covered_by: bigint | undefined;
  /** Jobs that ended before `end` and are still to be held against the log, or await their report. */
  waiting: bigint;
  /** When the first of those ended. */
  since: Date | null;
}

/** @param end first instant after the month */
export async function readMonthMatching(
  tx: Transaction,
  log: string,
  end: string,
): Promise<MonthMatching> {
  const [row] = await tx<(Omit<MonthMatching, "covered_by"> & { covered_by: bigint | null })[]>`
    select
      coalesce(
        (select index from reconcile_marks where log = ${log} and part = 'population'), 0
      ) as looked_at,
      (select max(index) from coverages where log = ${log} and from_at < ${end}) as covered_by,
      count(*) as waiting,
      min(finished_at) as since
    from platform_jobs
    where log = ${log} and due_at is not null and finished_at < ${end}`;
  if (row === undefined) throw new Error("month-matching: a count without a row");
  return { ...row, covered_by: row.covered_by ?? undefined };
}
