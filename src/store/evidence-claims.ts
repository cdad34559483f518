/** Table `evidence_claims`: which process does what one of them does for all, by the database's clock. */
import type { Sql } from "./connect.ts";

/**
 * Takes or keeps a task.
 * @param seconds how long nobody else takes it, whatever becomes of the holder
 * @returns false while another holds it
 */
export async function holdClaim(
  sql: Sql,
  task: string,
  holder: string,
  seconds: number,
): Promise<boolean> {
  const held = await sql`
    insert into evidence_claims (task, holder, until)
    values (${task}, ${holder}, clock_timestamp() + ${seconds} * interval '1 second')
    on conflict (task) do update
    set holder = excluded.holder, until = excluded.until
    where evidence_claims.holder = excluded.holder or evidence_claims.until < clock_timestamp()
    returning task`;
  return held.length > 0;
}

export async function endClaim(sql: Sql, task: string, holder: string): Promise<void> {
  await sql`
    update evidence_claims
    set until = '-infinity'
    where task = ${task} and holder = ${holder}`;
}
