/** What stands open over all logs, and for how long: for operators. */
import type { Sql } from "./connect.ts";

export interface BreakStanding {
  code: string;
  open: bigint;
  /** `at` of the oldest one's entry. */
  since: Date;
}

export async function readBreakStanding(sql: Sql): Promise<BreakStanding[]> {
  return await sql<BreakStanding[]>`
    select b.code, count(*) as open, min(e.at) as since
    from breaks as b
    join entries as e
      on e.log = b.log and e.index = b.index
    where not exists (select from break_ends as d where d.log = b.log and d.break = b.index)
    group by b.code
    order by b.code
  `;
}
