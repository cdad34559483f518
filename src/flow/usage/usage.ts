/** What was used, from the views, with the size that it is as of (DESIGN §§3, 8). */
import {
  formatComputeMs,
  formatSignedComputeMs,
  parseComputeMs,
  parseSignedComputeMs,
  signedComputeMinutes,
} from "../../core/charge.ts";
import { Problem } from "../../core/problem.ts";
import { type ComputeMs, computeMs, type Tracking } from "../../core/unit.ts";
import { csv } from "../../format/csv.ts";
import type { Sql, Transaction } from "../../store/connect.ts";
import { readHead } from "../../store/heads.ts";
import { type Dimension, type Slice, type Sums, sumUsage } from "../../store/rollups.ts";
import { transact } from "../../store/transact.ts";
import { asViewer, type Viewer } from "../../store/viewer.ts";
import { readWatermark } from "../../store/watermarks.ts";
import type { Clock } from "../clock.ts";

/** What `group` may name; rows say their billing month even if nobody asks. */
export const USAGE_GROUPS = [
  "billing_month",
  "tracking",
  "namespace",
  "project",
  "runner",
  "machine_type",
  "usage_month",
] as const satisfies readonly Dimension[];
export type UsageGroup = (typeof USAGE_GROUPS)[number];

/** Months are billing months, `YYYY-MM-01`; `from` … `to` is half-open. Ids are the platform's numbers. */
export interface UsageQuery {
  log: string;
  group: readonly UsageGroup[];
  from?: string | undefined;
  to?: string | undefined;
  tracking?: Tracking | undefined;
  namespace?: bigint | undefined;
  project?: bigint | undefined;
  runner?: bigint | undefined;
  machineType?: string | undefined;
  /** What whoever asks may see; absent: all of the log. */
  visible?: readonly bigint[] | undefined;
  /** Of whoever is a viewer and nothing else: the database shows them no more either. */
  viewer?: Viewer | undefined;
  /** Entries that no checkpoint covers yet are counted too. */
  fresh?: boolean | undefined;
}

/**
 * Exact sums, and beside them the figures as GitLab shows them. `compute_ms` = gross + adjustment, and all but
 * gross may be below zero: a correction of a closed month stands in the month that it was posted to.
 */
export interface UsageFigures {
  jobs: string;
  duration_ms: string;
  gross_compute_ms: string;
  adjustment_compute_ms: string;
  compute_ms: string;
  billable_compute_ms: string;
  compute_minutes: string;
  amount_used: string;
  shared_runners_duration: string;
}

export type UsageRow = { billing_month: string } & { [G in UsageGroup]?: string } & UsageFigures;

/**
 * Which builds are summed: as asked, and as restricted to what whoever asks may see, so that an auditor
 * can sum them again. An absent member restricts nothing; no namespaces at all are none.
 */
export interface UsageFilter {
  from?: string;
  to?: string;
  tracking?: Tracking;
  namespaces?: string[];
  project?: string;
  runner?: string;
  machine_type?: string;
}

/**
 * `as_of`: entries 0 … as_of−1 are counted. `refreshed_at`: when the views came to hold them; absent
 * from a fresh answer, which is of now, and from one before any refresh, which has no age either.
 */
export interface UsageAnswer {
  log: string;
  as_of: string;
  sealed: boolean;
  refreshed_at?: string;
  age_ms?: string;
  query: UsageFilter;
  group: readonly Dimension[];
  rows: UsageRow[];
  totals: UsageFigures;
}

/** More is for an export, not for an answer that is held in memory. */
const USAGE_ROWS_MAX = 100_000;
const MS_PER_SECOND = 1_000n;

/** @throws Problem `not-found` (no such log), `too-many` (rows: ask for less) */
export async function usage(
  { sql, clock }: { sql: Sql; clock: Clock },
  query: UsageQuery,
): Promise<UsageAnswer> {
  // One snapshot: rows of one refresh under the watermark of another would be as of nothing.
  const mode = "isolation level repeatable read read only";
  return await transact(sql, (tx) => answer(tx, clock, query), mode);
}

async function answer(tx: Transaction, clock: Clock, query: UsageQuery): Promise<UsageAnswer> {
  if (query.viewer !== undefined) await asViewer(tx, query.viewer);
  const head = await readHead(tx, query.log);
  if (head === undefined) throw new Problem("not-found");
  const watermark = await readWatermark(tx, query.log);
  const folded = watermark?.size ?? 0n;
  const fresh = query.fresh === true;
  const slice = sliceOf(query);
  const tail = fresh ? { from: folded, to: head.size } : undefined;
  const sums = await sumUsage(tx, slice, tail, USAGE_ROWS_MAX + 1);
  if (sums.length > USAGE_ROWS_MAX) throw new Problem("too-many");
  return {
    log: query.log,
    as_of: String(fresh ? head.size : folded),
    sealed: !fresh,
    ...(fresh ? { age_ms: "0" } : watermark && age(watermark.refreshedAt, clock.now())),
    query: filterOf(query, slice),
    group: slice.group,
    rows: sums.map((sum) => rowOf(sum, slice.group)),
    totals: figures(total(sums)),
  };
}

/** A header and a line for each row; every line says as of which entry it is. */
export function usageCsv(answer: UsageAnswer): string {
  const header = [...answer.group, ...FIGURES];
  const lines = answer.rows.map((row) => [
    answer.log,
    answer.as_of,
    String(answer.sealed),
    ...header.map((name) => row[name] ?? ""),
  ]);
  return csv([["log", "as_of", "sealed", ...header], ...lines]);
}

const FIGURES = [
  "jobs",
  "duration_ms",
  "gross_compute_ms",
  "adjustment_compute_ms",
  "compute_ms",
  "billable_compute_ms",
  "compute_minutes",
  "amount_used",
  "shared_runners_duration",
] as const satisfies readonly (keyof UsageFigures)[];

function sliceOf(query: UsageQuery): Slice {
  const { log, from, to, tracking, namespace, project, runner, machineType, visible } = query;
  const asks = new Set<UsageGroup>(["billing_month", ...query.group]);
  const asked = namespace === undefined ? visible : [namespace].filter((id) => sees(visible, id));
  const filters = { from, to, tracking, namespaces: asked, project, runner, machineType };
  return { log, group: USAGE_GROUPS.filter((name) => asks.has(name)), ...filters };
}

function filterOf({ from, to, tracking, machineType }: UsageQuery, slice: Slice): UsageFilter {
  const { namespaces, project, runner } = slice;
  return {
    ...(from !== undefined && { from }),
    ...(to !== undefined && { to }),
    ...(tracking !== undefined && { tracking }),
    ...(namespaces !== undefined && { namespaces: namespaces.map(String) }),
    ...(project !== undefined && { project: String(project) }),
    ...(runner !== undefined && { runner: String(runner) }),
    ...(machineType !== undefined && { machine_type: machineType }),
  };
}

function sees(visible: readonly bigint[] | undefined, namespace: bigint): boolean {
  return visible === undefined || visible.includes(namespace);
}

function age(refreshedAt: Date, now: number): { refreshed_at: string; age_ms: string } {
  const ms = Math.max(0, now - refreshedAt.getTime());
  return { refreshed_at: refreshedAt.toISOString(), age_ms: String(ms) };
}

/** Amounts but gross are signed. */
interface Exact {
  jobs: bigint;
  duration: bigint;
  gross: ComputeMs;
  adjustment: bigint;
  billable: bigint;
}

function rowOf(sums: Sums, group: readonly Dimension[]): UsageRow {
  const keys = Object.fromEntries(group.map((name) => [name, String(sums[name])]));
  return { billing_month: String(sums.billing_month), ...keys, ...figures(exact(sums)) };
}

function figures({ jobs, duration, gross, adjustment, billable }: Exact): UsageFigures {
  const net = gross + adjustment;
  return {
    jobs: String(jobs),
    duration_ms: String(duration),
    gross_compute_ms: formatComputeMs(gross),
    adjustment_compute_ms: formatSignedComputeMs(adjustment),
    compute_ms: formatSignedComputeMs(net),
    billable_compute_ms: formatSignedComputeMs(billable),
    compute_minutes: signedComputeMinutes(net, 4),
    amount_used: signedComputeMinutes(net, 2),
    shared_runners_duration: String(duration / MS_PER_SECOND),
  };
}

function exact(sums: Sums): Exact {
  return {
    jobs: sums.jobs,
    duration: BigInt(sums.duration_ms),
    gross: parseComputeMs(sums.gross_compute_ms),
    adjustment: parseSignedComputeMs(sums.adjustment_compute_ms),
    billable: parseSignedComputeMs(sums.billable_compute_ms),
  };
}

/** Of the exact sums: shown parts are rounded, and rounded parts do not add up. */
function total(rows: readonly Sums[]): Exact {
  const sum = { jobs: 0n, duration: 0n, gross: 0n, adjustment: 0n, billable: 0n };
  for (const row of rows.map(exact)) {
    sum.jobs += row.jobs;
    sum.duration += row.duration;
    sum.gross += row.gross;
    sum.adjustment += row.adjustment;
    sum.billable += row.billable;
  }
  return { ...sum, gross: computeMs(sum.gross) };
}
