/** Tables `namespace_days` and `runner_hours`: hosted usage by what a day or an hour is compared with. */
import type { LongJob } from "../core/anomaly.ts";
import { plainColumn } from "./columns.ts";
import type { Transaction } from "./connect.ts";

interface Range {
  from: bigint;
  to: bigint;
}

/** A day of a namespace that has changed; amounts are compute-milliseconds with six decimals. */
export interface NamespaceDay {
  namespace: bigint;
  day: string;
  amount: string;
  /** Of the 28 days before together. */
  before: string;
  /** Of which so many had any. */
  days_before: bigint;
}

/** Adds what entries from … to−1 say, and answers with the days that changed. */
export async function addNamespaceDays(
  tx: Transaction,
  log: string,
  { from, to }: Range,
): Promise<NamespaceDay[]> {
  const changed = await tx<{ namespace: bigint; day: string }[]>`
    insert into namespace_days as kept (log, namespace_id, day, compute_ms)
    select log, namespace_id, (finished_at at time zone 'UTC')::date, sum(compute_ms)
    from entries
    where log = ${log} and index >= ${from} and index < ${to}
      and kind = 'usage' and tracking = 'hosted'
    group by 1, 2, 3
    on conflict on constraint namespace_days_pkey do update
      set compute_ms = kept.compute_ms + excluded.compute_ms
    returning namespace_id as namespace, day
  `;
  // A statement of its own: the one above does not see what it has written.
  return await tx<NamespaceDay[]>`
    select asked.namespace, asked.day, sums.amount, sums.before, sums.days_before
    from unnest(
      ${plainColumn(changed.map(({ namespace }) => namespace))}::text::bigint[],
      ${plainColumn(changed.map(({ day }) => day))}::text::date[]
    ) as asked (namespace, day)
    cross join lateral (
      select
        coalesce(sum(compute_ms) filter (where day = asked.day), 0.000000) as amount,
        coalesce(sum(compute_ms) filter (where day < asked.day), 0.000000) as before,
        count(*) filter (where day < asked.day) as days_before
      from namespace_days
      where log = ${log} and namespace_id = asked.namespace
        and day between asked.day - 28 and asked.day
      offset 0
    ) as sums
    order by 1, 2
  `;
}

/** An hour of a runner that has changed. */
interface RunnerHour {
  runner: bigint;
  hour: Date;
  /** Of all its jobs together, as far as they ran within the hour, milliseconds. */
  duration: bigint;
  /** The most of any hour of the 28 days before. */
  before: bigint;
  /** Of which so many had any job. */
  hours_before: bigint;
}

/** As `addNamespaceDays`. A job is taken to have run up to its end without a rest. */
export async function addRunnerHours(
  tx: Transaction,
  log: string,
  { from, to }: Range,
): Promise<RunnerHour[]> {
  const changed = await tx<{ runner: bigint; hour: Date }[]>`
    insert into runner_hours as kept (log, runner_id, hour, duration_ms)
    select
      log,
      runner_id,
      hour,
      sum(
        extract(epoch from least(finished_at, hour + interval '1 hour') - greatest(started, hour))
        * 1000
      )::bigint
    from entries
    cross join lateral (values (finished_at - duration_ms * interval '1 ms')) as job (started)
    cross join lateral generate_series(
      date_trunc('hour', started, 'UTC'), finished_at, interval '1 hour'
    ) as hour
    where log = ${log} and index >= ${from} and index < ${to}
      and kind = 'usage' and tracking = 'hosted' and duration_ms > 0 and hour < finished_at
    group by 1, 2, 3
    on conflict on constraint runner_hours_pkey do update
      set duration_ms = kept.duration_ms + excluded.duration_ms
    returning runner_id as runner, hour
  `;
  return await tx<RunnerHour[]>`
    select asked.runner, asked.hour, sums.duration, sums.before, sums.hours_before
    from unnest(
      ${plainColumn(changed.map(({ runner }) => runner))}::text::bigint[],
      ${plainColumn(changed.map(({ hour }) => hour.toISOString()))}::text::timestamptz[]
    ) as asked (runner, hour)
    cross join lateral (
      select
        coalesce(max(duration_ms) filter (where hour = asked.hour), 0) as duration,
        coalesce(max(duration_ms) filter (where hour < asked.hour), 0) as before,
        count(*) filter (where hour < asked.hour) as hours_before
      from runner_hours
      where log = ${log} and runner_id = asked.runner
        and hour between asked.hour - interval '28 days' and asked.hour
      offset 0
    ) as sums
    order by 1, 2
  `;
}

/** Usage of entries from … to−1 that took longer. @param timeout milliseconds */
export async function readLongUsages(
  tx: Transaction,
  log: string,
  { from, to }: Range,
  timeout: bigint,
): Promise<LongJob[]> {
  return await tx<LongJob[]>`
    select index, job_id::text, namespace_id::text, runner_id::text, duration_ms, usage_month
    from entries
    where log = ${log} and index >= ${from} and index < ${to}
      and kind = 'usage' and tracking = 'hosted' and duration_ms > ${timeout}
    order by index
  `;
}
