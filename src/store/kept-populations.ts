/**
 * Table `reconcile_marks`, parts `kept <runner>`: the newest coverage of a runner through which this very database has
 * kept the platform's jobs. They are no part of the log: a database that was restored has all coverages, and of the
 * jobs none, or those alone that its backup had.
 */
import type { Sql, Transaction } from "./connect.ts";

const KEPT = "kept ";
const part = (runner: bigint): string => `${KEPT}${runner}`;

/** In the transaction that writes the coverage. @param index of its entry */
export async function keepThrough(
  tx: Transaction,
  log: string,
  runner: bigint,
  index: bigint,
): Promise<void> {
  await tx`
    insert into reconcile_marks (log, part, index)
    values (${log}, ${part(runner)}, ${index})
    on conflict on constraint reconcile_marks_pkey do update
      set index = excluded.index
  `;
}

/** Index of that coverage; undefined: of this runner nothing was kept here. */
export async function readKeptThrough(
  sql: Sql | Transaction,
  log: string,
  runner: bigint,
): Promise<bigint | undefined> {
  const [row] = await sql<{ index: bigint }[]>`
    select index
    from reconcile_marks
    where log = ${log} and part = ${part(runner)}
  `;
  return row?.index;
}

/**
 * The newest coverage of [from, until) whose jobs are not kept here; undefined: those of all are.
 * @param from first instant
 * @param until not included
 */
export async function readUnkept(
  tx: Transaction,
  log: string,
  { from, until }: { from: string; until: string },
): Promise<bigint | undefined> {
  const [row] = await tx<{ index: bigint | null }[]>`
    select max(c.index) as index
    from coverages as c
    left join reconcile_marks as kept
      on kept.log = c.log and kept.part = ${KEPT}::text || c.runner_id
    where c.log = ${log} and c.from_at < ${until} and c.to_at > ${from}
      and c.index > coalesce(kept.index, -1)
  `;
  return row?.index ?? undefined;
}
