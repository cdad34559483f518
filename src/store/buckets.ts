/** Usage summed by all that it can be asked by: the small table under the views (DESIGN §8). */
import { CHARGE_KEYS, type ChargeTables, charges } from "./charges.ts";
import type { Sql, Transaction } from "./connect.ts";
import type { Lag } from "./watermarks.ts";

/**
 * Adds usage and adjustments of the lag's entries to the buckets, and says how many buckets changed. Cost
 * follows the lag: one range of the primary keys, whatever the size of the log.
 */
export async function fold(tx: Transaction, lag: Lag): Promise<number> {
  const changed = await tx`
    insert into usage_buckets as b (${columns(tx)})
    ${summed(tx, lag)}
    on conflict on constraint usage_buckets_of_charges do update
      set
        jobs = b.jobs + excluded.jobs,
        duration_ms = b.duration_ms + excluded.duration_ms,
        compute_ms = b.compute_ms + excluded.compute_ms,
        adjustment_compute_ms = b.adjustment_compute_ms + excluded.adjustment_compute_ms,
        last_index = excluded.last_index`;
  return changed.count;
}

/** The same buckets into another table of their shape, from other tables. */
export async function foldInto(
  tx: Transaction,
  buckets: string,
  lag: Lag,
  tables: ChargeTables,
): Promise<void> {
  await tx`
    insert into ${tx(buckets)} (${columns(tx)})
    ${summed(tx, lag, tables)}`;
}

/** In the order of `columns`. */
function summed(sql: Sql | Transaction, lag: Lag, tables?: ChargeTables) {
  return sql`
    select
      ${keys(sql)},
      sum(jobs),
      sum(duration_ms),
      sum(compute_ms),
      sum(adjustment_compute_ms),
      max(index)
    from (${charges(sql, lag.log, lag, tables)}) as charge
    group by ${keys(sql)}`;
}

const columns = (sql: Sql | Transaction) =>
  sql`${keys(sql)}, jobs, duration_ms, compute_ms, adjustment_compute_ms, last_index`;

const keys = (sql: Sql | Transaction) => sql.unsafe(CHARGE_KEYS.join(", "));
