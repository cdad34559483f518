/**
 * Buckets, views and public views against one count of the entries, for whoever has proven the typed
 * columns of those entries equal to their bytes. The server counts, so that memory stays its own.
 */
import { CHARGE_KEYS, charges } from "./charges.ts";
import type { Sql, Transaction } from "./connect.ts";
import type { Positioned, Snapshot, Stream } from "./snapshots.ts";

/** A column that is not what the entries give; null on one side: there is no such row. */
export interface Difference extends Positioned {
  column: string;
  expected: string | null;
  found: string | null;
}

type Fragment = ReturnType<Sql["unsafe"]>;

/** Columns by name, as expressions over `charges`; which of them tell rows apart, and which charges count. */
interface Count {
  readonly keys: Readonly<Record<string, string>>;
  readonly sums: Readonly<Record<string, string>>;
  readonly where: string;
}

const BUCKETS: Count = {
  keys: Object.fromEntries(CHARGE_KEYS.map((name) => [name, name])),
  sums: {
    jobs: "sum(jobs)",
    duration_ms: "sum(duration_ms)",
    compute_ms: "sum(compute_ms)",
    adjustment_compute_ms: "sum(adjustment_compute_ms)",
  },
  where: "true",
};

const NET = "(sum(compute_ms) + sum(adjustment_compute_ms))";

const EXACT = {
  jobs: "sum(jobs)",
  duration_ms: "sum(duration_ms)",
  gross_compute_ms: "sum(compute_ms)",
  adjustment_compute_ms: "sum(adjustment_compute_ms)",
  net_compute_ms: NET,
  billable_compute_ms: `
    sum(case when not_billable = '' then compute_ms + adjustment_compute_ms else 0.000000 end)`,
};

const SECONDS = "div(sum(duration_ms), 1000)";
/** Half away from zero to two and to four decimals, without a rounded quotient between. */
const MINUTES_2 = `sign(${NET}) * div(2 * abs(${NET}) + 600, 1200) * 0.01`;
const MINUTES_4 = `sign(${NET}) * div(2 * abs(${NET}) + 6, 12) * 0.0001`;

const MONTHS = {
  log: "log",
  tracking: "tracking",
  namespace_id: "namespace_id",
  date: "billing_month",
  usage_month: "usage_month",
};

const NAMESPACES: Count = {
  keys: MONTHS,
  sums: { amount_used: MINUTES_2, shared_runners_duration: SECONDS, ...EXACT },
  where: "true",
};

const PROJECTS: Count = { ...NAMESPACES, keys: { project_id: "project_id", ...MONTHS } };

const RUNNERS: Count = {
  keys: {
    log: "log",
    tracking: "tracking",
    runner_id: "runner_id",
    project_id: "project_id",
    root_namespace_id: "namespace_id",
    billing_month: "billing_month",
    usage_month: "usage_month",
  },
  sums: { runner_duration_seconds: SECONDS, compute_minutes_used: MINUTES_4, ...EXACT },
  where: "tracking = 'hosted'",
};

const CLOSED = `
  exists (
    select
    from closed_months
    where closed_months.log = charge.log and month = billing_month
  )`;
const open = ({ where, ...count }: Count): Count => ({
  ...count,
  where: `${where} and not ${CLOSED}`,
});
const closed = ({ where, ...count }: Count): Count => ({
  ...count,
  where: `${where} and ${CLOSED}`,
});

/** What the views show, whether it is open or closed. */
export const SHOWN = {
  namespace_monthly_usages: NAMESPACES,
  project_monthly_usages: PROJECTS,
  gitlab_hosted_runner_monthly_usages: RUNNERS,
} as const;
export type Shown = keyof typeof SHOWN;

type Counted = "usage_buckets" | `${"open" | "closed" | "ci"}_${Shown}`;

/** Every relation that holds sums, and how its rows are counted. */
export const COUNTED = new Map<Counted, Count>([
  ["usage_buckets", BUCKETS],
  ...Object.entries(SHOWN).flatMap(([name, count]): [Counted, Count][] => [
    [`open_${name as Shown}`, open(count)],
    [`closed_${name as Shown}`, closed(count)],
    [`ci_${name as Shown}`, count],
  ]),
]);

/**
 * Differences between a relation and a count over entries 0 … size−1 of a log, by last index. A usage is the
 * last of one row of each relation; of an adjustment's rows the order of their keys tells which is which.
 */
export async function recount(
  snapshot: Snapshot,
  [relation, count]: readonly [Counted, Count],
  log: string,
  size: bigint,
): Promise<Stream<Difference>> {
  return await snapshot.stream<Difference>(`recount_${relation}`, (sql) => {
    const counted = countOf(sql, count, charges(sql, log, { from: 0n, to: size }));
    const stands = sql`select * from ${sql(relation)} where log = ${log}`;
    return differences(sql, Object.keys(count.keys), counted, stands);
  });
}

/** Rows as a relation has them, of these charges. */
export function countOf(sql: Sql | Transaction, { keys, sums, where }: Count, source: Fragment) {
  const columns = Object.entries({ ...keys, ...sums }).map(([name, as]) => `${as} as ${name}`);
  const groups = Object.keys(keys).map((_, i) => String(i + 1));
  return sql`
    select ${sql.unsafe(columns.join(", "))}, max(index) as last_index
    from (${source}) as charge
    where ${sql.unsafe(where)}
    group by ${sql.unsafe(groups.join(", "))}`;
}

/** The names of the columns of `countOf`, in its order. */
export function columnsOf({ keys, sums }: Count): string[] {
  return [...Object.keys(keys), ...Object.keys(sums), "last_index"];
}

/** jsonb keeps a numeric's digits as they are: 1.50 is not 1.5 here. */
function differences(
  sql: Sql,
  keys: readonly string[],
  counted: Fragment,
  stands: Fragment,
): Fragment {
  const placed = (rows: Fragment) => sql`
    select
      row.last_index,
      row_number() over (partition by row.last_index order by ${sql.unsafe(keys.join(", "))}) as nth,
      to_jsonb(row) as columns
    from (${rows}) as row`;
  return sql`
    select last_index as position, d.name as "column", d.expected, d.found
    from (${placed(counted)}) as c
    full join (${placed(stands)}) as s using (last_index, nth)
    cross join lateral (
      select name, e.value as expected, f.value as found
      from jsonb_each_text(coalesce(c.columns, '{}')) as e (name, value)
      full join jsonb_each_text(coalesce(s.columns, '{}')) as f (name, value) using (name)
      where e.value is distinct from f.value
        and (name = 'last_index' or (c.columns is not null and s.columns is not null))
    ) as d
    order by position, d.name`;
}
