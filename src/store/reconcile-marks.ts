/** Table `reconcile_marks`: how far each log was looked at, by part; and who is looking. */
import type { Sql, Transaction } from "./connect.ts";

/**
 * `population`: against the platform's jobs. `watch`: for what is strange in the log alone. `sources`: for days of
 * which a source has not said how many events it sent; it is looked at with `watch`.
 */
type ReconcilePart = "population" | "watch" | "sources";

/** From now on this part of the log is looked at, from its beginning. */
export async function startMark(
  sql: Sql | Transaction,
  log: string,
  part: ReconcilePart,
): Promise<void> {
  await sql`
    insert into reconcile_marks (log, part)
    values (${log}, ${part})
    on conflict on constraint reconcile_marks_pkey do nothing
  `;
}

/** Every log is watched. */
export async function startWatching(sql: Sql): Promise<void> {
  await sql`
    insert into reconcile_marks (log, part)
    select log, 'watch'
    from heads
    on conflict on constraint reconcile_marks_pkey do nothing
  `;
}

/**
 * A log whose turn it is, for `ms` and by the database's clock: one process whose clock is wrong must not keep
 * all others from it. Whoever finds a claim that has run out takes it from one that was killed.
 */
export async function claimMark(
  sql: Sql,
  part: ReconcilePart,
  ms: number,
): Promise<string | undefined> {
  const [claimed] = await sql<{ log: string }[]>`
    update reconcile_marks
    set due_at = date_trunc('milliseconds', clock_timestamp()) + ${ms} * interval '1 ms'
    where (log, part) = (
      select log, part
      from reconcile_marks
      where part = ${part} and due_at <= clock_timestamp()
      order by due_at, log
      limit 1
      for update skip locked
    )
    returning log
  `;
  return claimed?.log;
}

/** The next turn is so much later than now, which is cut to the column's milliseconds: none are waited for. */
export async function endMark(
  sql: Sql,
  log: string,
  part: ReconcilePart,
  restMs: number,
): Promise<void> {
  await sql`
    update reconcile_marks
    set due_at = date_trunc('milliseconds', clock_timestamp()) + ${restMs} * interval '1 ms'
    where log = ${log} and part = ${part}
  `;
}

/** Undefined: this part of the log is not looked at. */
export async function readReconcileMark(
  sql: Sql | Transaction,
  log: string,
  part: ReconcilePart,
): Promise<bigint | undefined> {
  const [row] = await sql<{ index: bigint }[]>`
    select index
    from reconcile_marks
    where log = ${log} and part = ${part}
  `;
  return row?.index;
}

/** False, and nothing moved, where it is not at `from` any more: somebody else looked. */
export async function moveReconcileMark(
  sql: Sql | Transaction,
  log: string,
  part: ReconcilePart,
  { from, to }: { from: bigint; to: bigint },
): Promise<boolean> {
  const { count } = await sql`
    update reconcile_marks
    set index = ${to}
    where log = ${log} and part = ${part} and index = ${from}
  `;
  return count === 1;
}
