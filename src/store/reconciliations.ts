/**
 * Table `reconciliations`: when live usage is next compared with the log, over all processes. By the
 * database's clock: one process whose clock is wrong must not keep all others from it.
 */
import type { Sql } from "./connect.ts";

const ALL = "all";

/** What was claimed, for its end; it runs out at that time. */
export type Claim = Date;

/**
 * Undefined: it is not due, or somebody else is at it. Who claims it has it for `ms`, without holding a
 * connection meanwhile; whoever finds it overdue takes it from one that was killed. What is later than any
 * claim is of a clock that was wrong, and due.
 */
export async function claimReconciliation(sql: Sql, ms: number): Promise<Claim | undefined> {
  const [claimed] = await sql<{ due_at: Date }[]>`
    insert into reconciliations as kept (part, due_at)
    values (${ALL}, date_trunc('milliseconds', clock_timestamp()) + ${ms} * interval '1 ms')
    on conflict (part) do update
      set due_at = excluded.due_at
      where kept.due_at <= clock_timestamp() or kept.due_at > excluded.due_at
    returning due_at`;
  return claimed?.due_at;
}

/** The next is due so much before the claim would have run out; one that has is somebody else's by now. */
export async function endReconciliation(sql: Sql, claim: Claim, earlyMs: number): Promise<void> {
  await sql`
    update reconciliations
    set due_at = due_at - ${earlyMs} * interval '1 ms'
    where part = ${ALL} and due_at = ${claim}`;
}
