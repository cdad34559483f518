/** A billing month as its entries have it, counted anew; and its rows, once it is closed. */
import { charges } from "./charges.ts";
import { insertClosed } from "./closed.ts";
import type { Transaction } from "./connect.ts";
import { pagesOf } from "./pages.ts";
import { refreshViews, waitForRefresh } from "./rollups.ts";
import { readWatermark } from "./watermarks.ts";

/** Exact sums; amounts in 10⁻⁶ compute-milliseconds. `adjustment` is signed, and in none of the others. */
export interface MonthUsage {
  namespace_id: string;
  usage_month: string;
  tracking: "hosted" | "self_managed";
  /** `""`: adjustments of a namespace's month. */
  machine_type: string;
  jobs: bigint;
  duration_ms: bigint;
  compute_ms: bigint;
  billable_compute_ms: bigint;
  adjustment: bigint;
}

const PAGE_ROWS = 1_000;

/**
 * What is posted to a billing month, of entries 0 … upTo−1: in the order of namespace (as a number), usage
 * month, tracking and machine type (by code points).
 */
export async function* readMonthUsage(
  tx: Transaction,
  log: string,
  month: string,
  upTo: bigint,
): AsyncGenerator<MonthUsage> {
  const query = tx`
    select
      namespace_id::text,
      usage_month,
      tracking,
      machine_type,
      sum(jobs) as jobs,
      sum(duration_ms)::text as duration_ms,
      (sum(compute_ms) * 1000000)::numeric(46, 0)::text as compute_ms,
      (sum(case when not_billable = '' then compute_ms else 0 end) * 1000000)::numeric(46, 0)::text
        as billable_compute_ms,
      (sum(adjustment_compute_ms) * 1000000)::numeric(46, 0)::text as adjustment
    from (${charges(tx, log, { from: 0n, to: upTo })}) as charge
    where billing_month = ${month}
    group by charge.namespace_id, usage_month, tracking, machine_type
    order by charge.namespace_id, usage_month, tracking collate "C", machine_type collate "C"
  `;
  const pages = pagesOf<Row>(tx, query, PAGE_ROWS);
  for await (const page of pages) yield* page.map(exact);
}

/**
 * The rows of a closed month, from entries 0 … upTo−1, and the open views without it: in one transaction,
 * so that no reader finds it twice or not at all. Again it changes nothing.
 *
 * @throws Error where figures do not reach the cut-off yet: no answer may be of more than it says
 */
export async function closeMonth(
  tx: Transaction,
  log: string,
  month: string,
  upTo: bigint,
): Promise<void> {
  // Before the look: a refresh that goes on would show the month beside its rows.
  await waitForRefresh(tx);
  const folded = await readWatermark(tx, log);
  if (folded === undefined || folded.size < upTo) {
    throw new Error("months: figures do not reach the cut-off");
  }
  await insertClosed(tx, { log, month, size: upTo });
  await refreshViews(tx);
}

type Exact = "jobs" | "duration_ms" | "compute_ms" | "billable_compute_ms" | "adjustment";
type Row = Omit<MonthUsage, Exact> & Record<Exact, string | bigint>;

function exact(row: Row): MonthUsage {
  return {
    namespace_id: row.namespace_id,
    usage_month: row.usage_month,
    tracking: row.tracking,
    machine_type: row.machine_type,
    jobs: BigInt(row.jobs),
    duration_ms: BigInt(row.duration_ms),
    compute_ms: BigInt(row.compute_ms),
    billable_compute_ms: BigInt(row.billable_compute_ms),
    adjustment: BigInt(row.adjustment),
  };
}
