/** Instants of a column, whatever it was made to hold. */
import type { Sql, Transaction } from "./connect.ts";

/**
 * As the log writes instants, and what the log cannot write (infinity, before Christ, microseconds)
 * as PostgreSQL does: no Date has all that a column can be made to hold.
 */
export function instant(sql: Sql | Transaction, column: string) {
  return sql`
    case
      when ${sql(column)} >= '0001-01-01 00:00Z' and ${sql(column)} < '10000-01-01 00:00Z'
        and ${sql(column)} = date_trunc('milliseconds', ${sql(column)})
      then to_char(${sql(column)} at time zone 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS.MS"Z"')
      else ${sql(column)}::text
    end as ${sql(column)}`;
}
