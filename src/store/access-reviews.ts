/** Entries of kind `access_review`, over all logs. */
import type { Sql } from "./connect.ts";

/** When each log was last looked at; where that was never, when it began. */
export async function readReviewedAt(sql: Sql): Promise<{ log: string; at: Date }[]> {
  return await sql<{ log: string; at: Date }[]>`
    select heads.log, coalesce(review.at, genesis.at) as at
    from heads
    join entries as genesis
      on genesis.log = heads.log and genesis.index = 0
    left join lateral (
      select at
      from entries
      where log = heads.log and kind = 'access_review'
      order by index desc
      limit 1
    ) as review on true
    order by heads.log`;
}
