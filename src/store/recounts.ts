/**
 * Buckets, views and public views against one count of the entries, for whoever has proven the typed
 * columns of those entries equal to their bytes. The server counts, so that memory stays its own.
 */
import type { Sql } from "./connect.ts";
import type { Positioned, Snapshot, Stream } from "./snapshots.ts";

/** A column that is not what the entries give; null on one side: there is no such row. */
export interface Difference extends Positioned {
  column: string;
  expected: string | null;
  found: string | null;
}

type Fragment = ReturnType<Sql["unsafe"]>;

const BUCKETS = {
  keys: [
    "tracking",
    "billing_month",
    "usage_month",
    "namespace_id",
    "project_id",
    "runner_id",
    "runner_uuid",
    "machine_type",
    "not_billable",
  ],
  sums: "count(*) as jobs, sum(duration_ms) as duration_ms, sum(compute_ms) as compute_ms",
  where: "true",
} as const;

const EXACT = `
  count(*) as jobs,
  sum(duration_ms) as duration_ms,
  sum(compute_ms) as gross_compute_ms,
  0.000000 as adjustment_compute_ms,
  sum(compute_ms) as net_compute_ms,
  sum(case when not_billable = '' then compute_ms else 0.000000 end) as billable_compute_ms`;

const SECONDS = "div(sum(duration_ms), 1000)";
/** Half up to two and to four decimals, without a rounded quotient between. */
const MINUTES_2 = "div(2 * sum(compute_ms) + 600, 1200) * 0.01";
const MINUTES_4 = "div(2 * sum(compute_ms) + 6, 12) * 0.0001";

const NAMESPACES = {
  keys: ["tracking", "namespace_id", "billing_month as date", "usage_month"],
  sums: `${MINUTES_2} as amount_used, ${SECONDS} as shared_runners_duration, ${EXACT}`,
  where: "true",
} as const;

const PROJECTS = {
  ...NAMESPACES,
  keys: ["project_id", ...NAMESPACES.keys],
} as const;

const RUNNERS = {
  keys: [
    "tracking",
    "runner_id",
    "project_id",
    "namespace_id as root_namespace_id",
    "billing_month",
    "usage_month",
  ],
  sums: `${SECONDS} as runner_duration_seconds, ${MINUTES_4} as compute_minutes_used, ${EXACT}`,
  where: "tracking = 'hosted'",
} as const;

interface Count {
  readonly keys: readonly string[];
  readonly sums: string;
  readonly where: string;
}

/** Every relation that holds sums, and how its rows are counted. */
export const COUNTED = {
  usage_buckets: BUCKETS,
  open_namespace_monthly_usages: NAMESPACES,
  open_project_monthly_usages: PROJECTS,
  open_gitlab_hosted_runner_monthly_usages: RUNNERS,
  ci_namespace_monthly_usages: NAMESPACES,
  ci_project_monthly_usages: PROJECTS,
  ci_gitlab_hosted_runner_monthly_usages: RUNNERS,
} as const satisfies Record<string, Count>;
export type Counted = keyof typeof COUNTED;

/**
 * Differences between a relation and a count over entries 0 … size−1 of a log, by last index. An entry
 * belongs to one row of each relation, so that the last index names a row, whatever else was changed.
 */
export async function recount(
  snapshot: Snapshot,
  relation: Counted,
  log: string,
  size: bigint,
): Promise<Stream<Difference>> {
  return await snapshot.stream<Difference>(`recount_${relation}`, (sql) => {
    const counted = countOf(sql, COUNTED[relation], log, size);
    const stands = sql`select * from ${sql(relation)} where log = ${log}`;
    return differences(sql, counted, stands);
  });
}

function countOf(sql: Sql, { keys, sums, where }: Count, log: string, size: bigint): Fragment {
  const groups = sql.unsafe(["log", ...keys].map((_, i) => String(i + 1)).join(", "));
  return sql`
    select log, ${sql.unsafe(keys.join(", "))}, ${sql.unsafe(sums)}, max(index) as last_index
    from entries
    where log = ${log} and index < ${size} and kind = 'usage' and ${sql.unsafe(where)}
    group by ${groups}`;
}

/** jsonb keeps a numeric's digits as they are: 1.50 is not 1.5 here. */
function differences(sql: Sql, counted: Fragment, stands: Fragment): Fragment {
  return sql`
    select coalesce(c.last_index, s.last_index) as position, d.name as "column", d.expected, d.found
    from (${counted}) as c
    full join (${stands}) as s on s.last_index = c.last_index
    cross join lateral (
      select name, e.value as expected, f.value as found
      from jsonb_each_text(case when c.log is null then '{}' else to_jsonb(c) end) as e (name, value)
      full join jsonb_each_text(case when s.log is null then '{}' else to_jsonb(s) end)
        as f (name, value) using (name)
      where e.value is distinct from f.value
        and (name = 'last_index' or (c.log is not null and s.log is not null))
    ) as d
    order by position, d.name`;
}
