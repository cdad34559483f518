/** Usage with what it was charged, between the entries that decided how: for who rates it another way. */
import type { Tracking } from "../core/unit.ts";
import type { Sql } from "./connect.ts";

/** Typed columns are those of a usage, and null of an entry that decides about later ones. */
export interface RatedRow {
  index: bigint;
  kind: string;
  bytes: Uint8Array;
  machine_type: string | null;
  duration_ms: bigint | null;
  /** Six decimals. */
  compute_ms: string | null;
  not_billable: string | null;
  usage_month: string | null;
}

export interface RatedRange {
  tracking: Tracking;
  /** Usage months, half-open. */
  months: { from: string; to: string };
  /** Entries from … to−1. */
  from: bigint;
  to: bigint;
  limit: number;
}

/** In the order of the log, a page at a time. */
export async function readRated(sql: Sql, log: string, range: RatedRange): Promise<RatedRow[]> {
  const { from, limit, months, to, tracking } = range;
  return await sql<RatedRow[]>`
    select
      index, kind, bytes, machine_type, duration_ms, compute_ms, not_billable, usage_month
    from entries
    where log = ${log} and index >= ${from} and index < ${to}
      and (
        kind in ${sql(DECIDING)}
        or (
          kind = 'usage' and tracking = ${tracking}
          and usage_month >= ${months.from} and usage_month < ${months.to}
        )
      )
    order by index
    limit ${limit}`;
}

/** Of CONTROL_KINDS those that a rate is read from. */
const DECIDING = ["rate_card", "project_class", "quota", "mode"];

/** Index of the newest entry below another one that decides how reports are judged; −1: there is none. */
export async function readControlBefore(sql: Sql, log: string, below: bigint): Promise<bigint> {
  // The kinds stand in the text for the planner, as in readControl (entries.ts).
  const [row] = await sql<[{ index: bigint }]>`
    select coalesce(max(index), -1) as index
    from entries
    where log = ${log} and index < ${below}
      and kind in (
        'enrolment', 'key', 'key_rotated', 'key_revoked', 'rate_card', 'project_class', 'quota',
        'month_closing', 'month_closing_withdrawn', 'mode'
      )`;
  return row.index;
}
