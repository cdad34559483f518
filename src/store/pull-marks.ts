/** Table `pull_marks`: how far the walk over a runner's jobs has come, and who is walking. */
import { plainColumn } from "./columns.ts";
import type { Sql, Transaction } from "./connect.ts";

/** A walk whose turn it is. `claim` runs out at that time, and then it is somebody else's. */
export interface PullStep {
  log: string;
  runner: bigint;
  /** Epoch milliseconds; undefined: no walk is under way. */
  walkTo: number | undefined;
  /** Undefined while a walk is under way: all its pages were read. */
  next: string | undefined;
  failures: number;
  claim: Date;
}

/** Where a step has led. `restMs`: how long until the next one. */
export interface PullMove {
  walkTo: number | undefined;
  next: string | undefined;
  failures: number;
  restMs: number;
}

/** These runners are walked over from now on. */
export async function startPulls(sql: Sql, log: string, runners: readonly string[]): Promise<void> {
  await sql`
    insert into pull_marks (log, runner_id, due_at)
    select ${log}, runner, '-infinity'
    from unnest(${plainColumn(runners)}::text::bigint[]) as runner
    on conflict on constraint pull_marks_pkey do nothing
  `;
}

/** By the database's clock, as `claimMark` does. */
export async function claimPull(
  sql: Sql,
  logs: readonly string[],
  ms: number,
): Promise<PullStep | undefined> {
  const [row] = await sql<
    {
      log: string;
      runner: bigint;
      walkTo: Date | null;
      next: string | null;
      failures: number;
      claim: Date;
    }[]
  >`
    update pull_marks
    set due_at = date_trunc('milliseconds', clock_timestamp()) + ${ms} * interval '1 ms'
    where (log, runner_id) = (
      select log, runner_id
      from pull_marks
      where log = any(${plainColumn(logs)}::text::text[]) and due_at <= clock_timestamp()
      order by due_at, log, runner_id
      limit 1
      for update skip locked
    )
    returning log, runner_id as runner, walk_to as "walkTo", next, failures, due_at as claim
  `;
  return row && { ...row, walkTo: row.walkTo?.getTime(), next: row.next ?? undefined };
}

/**
 * False, and nothing moved, where the claim had run out: whoever took it goes on from where it stood. The column
 * holds whole milliseconds and would round up: what is due at once would be due in half of one.
 */
export async function movePull(
  sql: Sql | Transaction,
  { claim, log, runner }: PullStep,
  { failures, next, restMs, walkTo }: PullMove,
): Promise<boolean> {
  const { count } = await sql`
    update pull_marks
    set
      walk_to = ${walkTo === undefined ? null : new Date(walkTo)},
      next = ${next ?? null},
      failures = ${failures},
      due_at = date_trunc('milliseconds', clock_timestamp()) + ${restMs} * interval '1 ms'
    where log = ${log} and runner_id = ${runner} and due_at = ${claim}
  `;
  return count === 1;
}
