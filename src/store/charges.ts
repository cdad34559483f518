/**
 * What entries charge and adjust, one row for each usage and for each line of an adjustment, in the columns
 * of a bucket: the one source of all that is summed.
 */
import type { Sql, Transaction } from "./connect.ts";

/** Tables to read from: those that stand, or the same made anew. */
export interface ChargeTables {
  readonly usages: string;
  readonly adjustments: string;
}

const STANDING: ChargeTables = { usages: "entries", adjustments: "adjustments" };

/** What one charge has of its own: by these it is summed. */
export const CHARGE_KEYS = [
  "log",
  "tracking",
  "billing_month",
  "usage_month",
  "namespace_id",
  "project_id",
  "runner_id",
  "runner_uuid",
  "machine_type",
  "not_billable",
] as const;

/**
 * Of entries from … to−1 of a log: `CHARGE_KEYS`, `index`, `jobs`, `duration_ms`, `compute_ms`,
 * `adjustment_compute_ms`. A line that names a usage is of its runner; of no project and no runner are
 * those of a namespace's month, which is told by 0 and by nothing.
 */
export function charges(
  sql: Sql | Transaction,
  log: string,
  { from, to }: { from: bigint; to: bigint },
  tables: ChargeTables = STANDING,
) {
  const isEntry = tables.usages === STANDING.usages ? sql`and kind = 'usage'` : sql``;
  return sql`
    select
      log, tracking, billing_month, usage_month, namespace_id, project_id, runner_id, runner_uuid,
      machine_type, not_billable, index, 1 as jobs, duration_ms, compute_ms,
      0.000000 as adjustment_compute_ms
    from ${sql(tables.usages)}
    where log = ${log} and index >= ${from} and index < ${to} ${isEntry}
    union all
    select
      line.log, 'hosted', line.billing_month, line.usage_month, line.namespace_id,
      coalesce(line.project_id, 0), coalesce(usage.runner_id, 0), coalesce(usage.runner_uuid, ''),
      coalesce(usage.machine_type, ''), '', line.index, 0, 0, 0.000000, line.amount
    from ${sql(tables.adjustments)} as line
    left join ${sql(tables.usages)} as usage
      on usage.log = line.log and usage.index = line.entry
    where line.log = ${log} and line.index >= ${from} and line.index < ${to}`;
}
