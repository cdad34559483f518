/** Which logs there are, by what the tables say: for whoever compares or rebuilds all of them. */
import type { Sql, Transaction } from "./connect.ts";

/** Every log that any table names: a row that was moved to another log must not be overlooked. */
export async function logsNamed(sql: Sql | Transaction): Promise<string[]> {
  const rows = await sql<{ log: string }[]>`
    ${distinct(sql, "entries")}
    union ${distinct(sql, "jobs")}
    union ${distinct(sql, "reports")}
    union ${distinct(sql, "usage_buckets")}
    union ${distinct(sql, "checkpoints")}
    union select log from heads
    union select log from keys
    union select log from seals
    union select log from watermarks
    union select log from open_namespace_monthly_usages
    union select log from open_project_monthly_usages
    union select log from open_gitlab_hosted_runner_monthly_usages
    union select log from ci_namespace_monthly_usages
    union select log from ci_project_monthly_usages
    union select log from ci_gitlab_hosted_runner_monthly_usages
    order by log`;
  return rows.map(({ log }) => log);
}

/** Every log that has an entry. */
export async function logsWritten(sql: Sql | Transaction): Promise<string[]> {
  const rows = await sql<{ log: string }[]>`${distinct(sql, "entries")} order by log`;
  return rows.map(({ log }) => log);
}

/** One look into the primary key for each log, where `select distinct` would read all of it. */
function distinct(sql: Sql | Transaction, table: string) {
  return sql`(
    with recursive named as (
      (select log from ${sql(table)} order by log limit 1)
      union all
      select (select t.log from ${sql(table)} as t where t.log > n.log order by t.log limit 1)
      from named as n
      where n.log is not null
    )
    select log from named where log is not null
  )`;
}
