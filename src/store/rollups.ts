/** The materialized views, and sums over them as they are asked for (DESIGN §8). */
import { charges } from "./charges.ts";
import type { Sql, Transaction } from "./connect.ts";

const MATERIALIZED = [
  "open_namespace_monthly_usages",
  "open_project_monthly_usages",
  "open_gitlab_hosted_runner_monthly_usages",
] as const;

/** One refresher at a time, over all processes. The number is arbitrary and nobody else's. */
const REFRESH_LOCK = 7_236_044_901n;

/** What usage can be grouped and filtered by, and the column that holds it. */
const COLUMN = {
  tracking: "tracking",
  namespace: "namespace_id",
  project: "project_id",
  runner: "runner_id",
  machine_type: "machine_type",
  billing_month: "billing_month",
  usage_month: "usage_month",
} as const;
export type Dimension = keyof typeof COLUMN;

/** Which usage is summed, and by what. Ranges of months are half-open. */
export interface Slice {
  log: string;
  group: readonly Dimension[];
  from?: string | undefined;
  to?: string | undefined;
  tracking?: string | undefined;
  /** Any of these; what a viewer may see is asked the same way. */
  namespaces?: readonly bigint[] | undefined;
  project?: bigint | undefined;
  runner?: bigint | undefined;
  machineType?: string | undefined;
}

/** Exact sums, amounts with six decimals; `billable_compute_ms` is net of adjustments. */
export type Sums = { [D in Dimension]?: string | bigint } & {
  jobs: bigint;
  duration_ms: string;
  gross_compute_ms: string;
  adjustment_compute_ms: string;
  billable_compute_ms: string;
};

/** False: another process refreshes. The lock ends with the transaction. */
export async function lockRefresh(tx: Transaction): Promise<boolean> {
  const [row] = await tx<{ locked: boolean }[]>`
    select pg_try_advisory_xact_lock(${REFRESH_LOCK}) as locked`;
  return row?.locked === true;
}

/** As `lockRefresh`, after whoever refreshes now. */
export async function waitForRefresh(tx: Transaction): Promise<void> {
  await tx`select pg_advisory_xact_lock(${REFRESH_LOCK})`;
}

/**
 * Readers go on while a view is refreshed: CONCURRENTLY locks out only another refresh. It cannot
 * fill a view that holds nothing at all, as a restored database may have it; that one is filled plainly.
 */
export async function refreshViews(tx: Transaction): Promise<void> {
  const filled = await readFilled(tx);
  for (const view of MATERIALIZED) {
    if (filled.has(view)) await tx`refresh materialized view concurrently ${tx(view)}`;
    else await tx`refresh materialized view ${tx(view)}`;
  }
}

/** False: a view holds nothing at all, and whoever asks it is refused. */
export async function viewsAreFilled(tx: Transaction): Promise<boolean> {
  return (await readFilled(tx)).size === MATERIALIZED.length;
}

async function readFilled(tx: Transaction): Promise<Set<string>> {
  const filled = await tx<{ name: string }[]>`
    select matviewname as name
    from pg_matviews
    where matviewname in ${tx([...MATERIALIZED])} and ispopulated`;
  return new Set(filled.map(({ name }) => name));
}

/**
 * Sums of a slice, in the order of its groups: from the narrowest public view that knows all that is
 * asked, else from the buckets; `tail` adds entries `from` … `to`−1, which no view holds yet.
 *
 * @param max rows at most
 */
export async function sumUsage(
  sql: Sql | Transaction,
  slice: Slice,
  tail: { from: bigint; to: bigint } | undefined,
  max: number,
): Promise<Sums[]> {
  const asked = dimensions(slice);
  const keys = sql.unsafe(slice.group.map((name) => `${COLUMN[name]} as ${name}`).join(", "));
  const order = sql.unsafe(slice.group.map((_, i) => String(i + 1)).join(", "));
  const columns = sql.unsafe([...asked].map((name) => COLUMN[name]).join(", "));
  return await sql<Sums[]>`
    select
      ${keys},
      sum(jobs)::bigint as jobs,
      sum(duration_ms) as duration_ms,
      sum(gross_compute_ms) as gross_compute_ms,
      sum(adjustment_compute_ms) as adjustment_compute_ms,
      sum(billable_compute_ms) as billable_compute_ms
    from (
      ${source(sql, slice.log, asked, columns)}
      ${tail === undefined ? sql`` : sql`union all ${charged(sql, charges(sql, slice.log, tail), columns)}`}
    ) as part
    where ${filters(sql, slice)}
    group by ${order}
    order by ${order}
    limit ${max}`;
}

type Fragment = ReturnType<Sql["unsafe"]>;

function dimensions(slice: Slice): Set<Dimension> {
  const asked = new Set<Dimension>([...slice.group, "billing_month"]);
  if (slice.tracking !== undefined) asked.add("tracking");
  if (slice.namespaces !== undefined) asked.add("namespace");
  if (slice.project !== undefined) asked.add("project");
  if (slice.runner !== undefined) asked.add("runner");
  if (slice.machineType !== undefined) asked.add("machine_type");
  return asked;
}

function source(sql: Sql | Transaction, log: string, asked: Set<Dimension>, columns: Fragment) {
  if (asked.has("runner") || asked.has("machine_type")) {
    return charged(sql, sql`select * from usage_buckets where log = ${log}`, columns);
  }
  const view = asked.has("project") ? "ci_project_monthly_usages" : "ci_namespace_monthly_usages";
  return sql`
    select
      ${columns}, jobs, duration_ms, gross_compute_ms, adjustment_compute_ms, billable_compute_ms
    from (select *, date as billing_month from ${sql(view)}) as view
    where log = ${log}`;
}

/** Figures of buckets, or of charges one by one. */
function charged(sql: Sql | Transaction, rows: Fragment, columns: Fragment) {
  return sql`
    select
      ${columns},
      jobs,
      duration_ms,
      compute_ms as gross_compute_ms,
      adjustment_compute_ms,
      case when not_billable = '' then compute_ms + adjustment_compute_ms else 0 end
        as billable_compute_ms
    from (${rows}) as charge`;
}

function filters(sql: Sql | Transaction, slice: Slice) {
  const { from, to, tracking, namespaces, project, runner, machineType } = slice;
  return sql`true
    ${from === undefined ? sql`` : sql`and billing_month >= ${from}`}
    ${to === undefined ? sql`` : sql`and billing_month < ${to}`}
    ${tracking === undefined ? sql`` : sql`and tracking = ${tracking}`}
    ${namespaces === undefined ? sql`` : sql`and namespace_id = any(${sql.array([...namespaces], INT8_ARRAY)})`}
    ${project === undefined ? sql`` : sql`and project_id = ${project}`}
    ${runner === undefined ? sql`` : sql`and runner_id = ${runner}`}
    ${machineType === undefined ? sql`` : sql`and machine_type = ${machineType}`}`;
}

const INT8_ARRAY = 1016;
