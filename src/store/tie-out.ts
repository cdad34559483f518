/** Rollups of one billing month against its entries: sums, and rows that are not what they were counted to. */
import { charges } from "./charges.ts";
import type { Transaction } from "./connect.ts";
import { COUNTED, columnsOf, countOf } from "./recounts.ts";

interface OfMonth {
  log: string;
  month: string;
}

/** Relations that are read for what was used. */
export const ROLLUPS = [
  "usage_buckets",
  "ci_namespace_monthly_usages",
  "ci_project_monthly_usages",
  "ci_gitlab_hosted_runner_monthly_usages",
] as const;
export type Rollup = (typeof ROLLUPS)[number];

/** Counts as integers, amounts with six decimals; net ones maybe below zero. */
export interface RollupSums {
  jobs: string;
  duration_ms: string;
  gross_compute_ms: string;
  adjustment_compute_ms: string;
  net_compute_ms: string;
  billable_compute_ms: string;
}

/** What a public view shows of the month, added up. */
export async function sumRollup(
  tx: Transaction,
  view: Exclude<Rollup, "usage_buckets">,
  { log, month }: OfMonth,
): Promise<RollupSums> {
  const [row] = await tx<[RollupSums]>`
    select
      coalesce(sum(jobs), 0)::text as jobs,
      coalesce(sum(duration_ms), 0)::text as duration_ms,
      coalesce(sum(gross_compute_ms), 0)::numeric(46, 6)::text as gross_compute_ms,
      coalesce(sum(adjustment_compute_ms), 0)::numeric(46, 6)::text as adjustment_compute_ms,
      coalesce(sum(net_compute_ms), 0)::numeric(46, 6)::text as net_compute_ms,
      coalesce(sum(billable_compute_ms), 0)::numeric(46, 6)::text as billable_compute_ms
    from ${tx(view)}
    where log = ${log} and ${tx(monthColumn(view))} = ${month}`;
  return row;
}

/** How many rows of the month differ in any column from a count over entries 0 … below−1. */
export async function countDiffering(
  tx: Transaction,
  rollup: Rollup,
  { log, month, below }: OfMonth & { below: bigint },
): Promise<bigint> {
  const count = countedAs(rollup);
  const source = tx`
    select *
    from (${charges(tx, log, { from: 0n, to: below })}) as charge
    where billing_month = ${month}`;
  const columns = tx.unsafe(columnsOf(count).join(", "));
  const [row] = await tx<[{ rows: bigint }]>`
    with counted as (
      select ${columns} from (${countOf(tx, count, source)}) as counted
    ), stands as (
      select ${columns} from ${tx(rollup)} where log = ${log} and ${tx(monthColumn(rollup))} = ${month}
    )
    select greatest(
      (select count(*) from (table counted except all table stands) as missing),
      (select count(*) from (table stands except all table counted) as surplus)
    ) as rows`;
  return row.rows;
}

/**
 * How many usages of entries 0 … below−1 that are posted to the month have another instant or job in their columns
 * than in the statement that was signed: no sum is by these, and files of days are.
 */
export async function countMisplaced(
  tx: Transaction,
  { log, month, below }: OfMonth & { below: bigint },
): Promise<bigint> {
  // Canonical JSON of a strict reader: a member is found by its name and the order of its siblings. Bytes that say
  // neither differ.
  const [row] = await tx<[{ rows: bigint }]>`
    select count(*) as rows
    from (
      select
        job_id, finished_at,
        substring(encode(bytes, 'escape') from '"jws":"[^".]+[.]([A-Za-z0-9_-]+)[.]') as payload
      from entries
      where log = ${log} and index < ${below} and kind = 'usage' and billing_month = ${month}
      offset 0
    ) as usage
    cross join lateral (
      select encode(
        decode(rpad(translate(payload, '-_', '+/'), (length(payload) + 3) / 4 * 4, '='), 'base64'),
        'escape'
      ) as said
      offset 0
    ) as statement
    where substring(said from '"job":{"id":"([0-9]+)"') is distinct from job_id::text
      or substring(said from '"finished_at":"([^"]+)"') is distinct from
        to_char(finished_at at time zone 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS.MS"Z"')`;
  return row.rows;
}

function countedAs(rollup: Rollup) {
  const count = COUNTED.get(rollup);
  if (count === undefined) throw new Error(`tie-out: nobody says how ${rollup} is counted`);
  return count;
}

function monthColumn(rollup: Rollup): string {
  const [column] =
    Object.entries(countedAs(rollup).keys).find(([, as]) => as === "billing_month") ?? [];
  if (column === undefined) throw new Error(`tie-out: ${rollup} is of no month`);
  return column;
}
