/** Table `reconciliations`: when live usage is next compared with the log, over all processes. */
import type { Sql } from "./connect.ts";

const ALL = "all";

/**
 * False: it is not due, or somebody else is at it. Who claims it has until then, without holding a
 * connection meanwhile; whoever finds it overdue takes it from one that was killed.
 *
 * @param claim epoch milliseconds
 */
export async function claimReconciliation(
  sql: Sql,
  { now, until }: { now: number; until: number },
): Promise<boolean> {
  const { count } = await sql`
    insert into reconciliations (part, due_at)
    values (${ALL}, ${new Date(until)})
    on conflict (part) do update
      set due_at = excluded.due_at
      where reconciliations.due_at <= ${new Date(now)}`;
  return count === 1;
}

/** Of what was claimed until then; one that has run out is somebody else's by now. */
export async function endReconciliation(
  sql: Sql,
  { until, dueAt }: { until: number; dueAt: number },
): Promise<void> {
  await sql`
    update reconciliations
    set due_at = ${new Date(dueAt)}
    where part = ${ALL} and due_at = ${new Date(until)}`;
}
