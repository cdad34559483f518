/** Table `quota_stops`: each no of a quota, with what it was computed from. Bounded, and never on the log. */
import { plainColumn, textColumn } from "./columns.ts";
import type { Sql, Transaction } from "./connect.ts";

export type StopAsk = "start" | "go_on" | "run";

export interface Stop {
  namespace: string;
  job: string;
  ask: StopAsk;
  /** An opaque principal id, or a kid. */
  by: string;
  reason: string;
  /** Since it was last recorded. */
  times: bigint;
}

/** What the stops of one namespace were computed from. */
export interface Stopping {
  namespace: string;
  source: string;
  asOf: bigint;
  /** Compute milliseconds, as decimal text. */
  live: string;
  reserved: string;
  /** As of core/quota/figures. */
  figures: string;
}

/** As it is read: without its namespace, which was asked for. */
export type RecordedStop = Omit<Stop, "namespace"> &
  Omit<Stopping, "namespace"> & { firstAt: Date; lastAt: Date };

/** Of a namespace's stops, which are in the order of this: what came up last is the greatest. */
export type StopPlace = Pick<RecordedStop, "lastAt" | "job" | "ask">;

interface Bounds {
  /** Rows of a namespace that are kept beside those of this statement. */
  rowsMax: number;
  /** An `InstantText`: what happened last before it goes. */
  keptFrom: string;
}

/** Of what is too old, so much goes with each statement. */
const OLD_MAX = 1_000;

/**
 * Adds to the counts, and removes what is too much or too old, in one statement.
 * @param stops distinct by namespace, job and ask
 * @param stoppings of all their namespaces
 */
export async function recordStops(
  sql: Sql,
  log: string,
  { stops, stoppings, at }: { stops: readonly Stop[]; stoppings: readonly Stopping[]; at: string },
  { rowsMax, keptFrom }: Bounds,
): Promise<void> {
  await sql`
    with stop as materialized (
      select *
      from unnest(
        ${plainColumn(stops.map((stop) => stop.namespace))}::text::bigint[],
        ${plainColumn(stops.map((stop) => stop.job))}::text::bigint[],
        ${plainColumn(stops.map((stop) => stop.ask))}::text::text[],
        ${textColumn(stops.map((stop) => stop.by))}::text::text[],
        ${plainColumn(stops.map((stop) => stop.reason))}::text::text[],
        ${plainColumn(stops.map((stop) => stop.times))}::text::bigint[]
      ) as stop (namespace_id, job_id, ask, asked_by, reason, times)
    ),
    stopping as materialized (
      select *
      from unnest(
        ${plainColumn(stoppings.map((each) => each.namespace))}::text::bigint[],
        ${plainColumn(stoppings.map((each) => each.source))}::text::text[],
        ${plainColumn(stoppings.map((each) => each.asOf))}::text::bigint[],
        ${plainColumn(stoppings.map((each) => each.live))}::text::numeric[],
        ${plainColumn(stoppings.map((each) => each.reserved))}::text::numeric[],
        ${textColumn(stoppings.map((each) => each.figures))}::text::text[]
      ) as stopping (namespace_id, source, as_of, live, reserved, figures)
    ),
    surplus as (
      select kept.*
      from (select namespace_id, count(*) as rows from stop group by namespace_id) as fresh
      cross join lateral (
        select log, namespace_id, job_id, ask
        from quota_stops as kept
        where log = ${log} and namespace_id = fresh.namespace_id
          and not exists (
            select from stop
            where stop.namespace_id = kept.namespace_id and stop.job_id = kept.job_id
              and stop.ask = kept.ask
          )
        order by last_at desc, job_id desc, ask desc
        offset greatest(${rowsMax} - fresh.rows, 0)
      ) as kept
      union all
      (
        select log, namespace_id, job_id, ask
        from quota_stops as kept
        where last_at < ${keptFrom}
          and (log, namespace_id, job_id, ask) not in (
            select ${log}, namespace_id, job_id, ask from stop
          )
        order by last_at
        limit ${OLD_MAX}
      )
    ),
    removed as (
      delete from quota_stops
      where (log, namespace_id, job_id, ask) in (
        -- What another process is at is left to it: two that wait for each other would hold up answers.
        select log, namespace_id, job_id, ask
        from quota_stops
        where (log, namespace_id, job_id, ask) in (table surplus)
        for update skip locked
      )
    )
    insert into quota_stops as known (
      log, namespace_id, job_id, ask, first_at, last_at, times, asked_by, reason,
      source, as_of, live_compute_ms, reserved_compute_ms, figures
    )
    select
      ${log}, namespace_id, job_id, ask, ${at}, ${at}, times, asked_by, reason,
      source, as_of, live, reserved, figures
    from stop
    join stopping using (namespace_id)
    order by namespace_id, job_id, ask -- two processes that meet the same rows take them in one order
    on conflict on constraint quota_stops_pkey do update
    set last_at = greatest(known.last_at, excluded.last_at),
      times = known.times + excluded.times,
      asked_by = excluded.asked_by,
      reason = excluded.reason,
      source = excluded.source,
      as_of = excluded.as_of,
      live_compute_ms = excluded.live_compute_ms,
      reserved_compute_ms = excluded.reserved_compute_ms,
      figures = excluded.figures
  `;
}

/** Those that came up last first; `before`: only such as are below that place. */
export async function readStops(
  sql: Sql | Transaction,
  { log, namespace }: { log: string; namespace: bigint },
  { before, keptFrom, limit }: { before: StopPlace | undefined; keptFrom: string; limit: number },
): Promise<RecordedStop[]> {
  return await sql<RecordedStop[]>`
    select
      job_id::text as job, ask, asked_by as by, reason, times, source, as_of as "asOf",
      live_compute_ms as live, reserved_compute_ms as reserved, figures,
      first_at as "firstAt", last_at as "lastAt"
    from quota_stops
    where log = ${log} and namespace_id = ${namespace} and last_at >= ${keptFrom}
      ${before === undefined ? sql`` : below(sql, before)}
    order by last_at desc, job_id desc, ask desc
    limit ${limit}
  `;
}

function below(sql: Sql | Transaction, { lastAt, job, ask }: StopPlace): ReturnType<Sql> {
  return sql`and (last_at, job_id, ask) < (${lastAt}, ${job}::text::bigint, ${ask})`;
}
