/** Of table `exports`: what is late of that which nobody asks for again. */
import type { Sql } from "./connect.ts";

export interface LateExports {
  /** Of closed months and schedules: that failed, or wait to be made for too long. */
  failing: number;
  /** Made, and for too long not where they are to be. */
  undelivered: number;
}

/** What was asked for, or ended, before these instants is late. */
export async function countLateExports(
  sql: Sql,
  before: { asked: Date; ended: Date },
): Promise<LateExports> {
  const [row] = await sql<[Record<keyof LateExports, bigint>]>`
    select
      count(*) filter (
        where state = 'failed' or state = 'pending' and asked_at < ${before.asked}
      ) as failing,
      count(*) filter (
        where state = 'done' and deliver_to is not null and delivered_at is null
          and ended_at < ${before.ended}
      ) as undelivered
    from exports
    where origin is not null`;
  return { failing: Number(row.failing), undelivered: Number(row.undelivered) };
}
