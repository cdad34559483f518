/** What a namespace's quota is made of, where it stands: entries, and what rollups have summed of them. */
import { plainColumn } from "./columns.ts";
import type { Transaction } from "./connect.ts";

/** Above every index that an entry can have. */
const ANY_INDEX = 2n ** 63n - 1n;

/** Bytes of all `quota` and `pack` entries of these namespaces below an index, oldest first. */
export async function readQuotaEntries(
  tx: Transaction,
  log: string,
  namespaces: readonly string[],
  below: bigint = ANY_INDEX,
): Promise<Uint8Array[]> {
  // LATERAL and OFFSET 0, here and below: whatever the statistics say, a look by the index for each.
  const rows = await tx<{ bytes: Uint8Array }[]>`
    select e.bytes
    from unnest(${plainColumn(namespaces)}::text::text[]) as asked (namespace)
    cross join lateral (
      select index, bytes
      from entries
      where log = ${log} and kind in ('quota', 'pack') and entry_namespace(bytes) = asked.namespace
        and index < ${below}
      offset 0
    ) as e
    order by e.index
  `;
  return rows.map(({ bytes }) => bytes);
}

/** Bytes of all cut-offs and withdrawals of cut-offs below an index, oldest first. */
export async function readCutOffEntries(
  tx: Transaction,
  log: string,
  below: bigint = ANY_INDEX,
): Promise<Uint8Array[]> {
  const rows = await tx<{ bytes: Uint8Array }[]>`
    select bytes
    from entries
    where log = ${log} and kind in ('month_closing', 'month_closing_withdrawn')
      and index < ${below}
    order by index
  `;
  return rows.map(({ bytes }) => bytes);
}

/** What was posted to one month; `month` is absent for all months before `since` together. */
export interface PostedUsage {
  namespace: string;
  month: string | null;
  /** Of billable usage whose usage month it is, net of adjustments; six decimals, signed. */
  amount: string;
  /**
   * Index of the last entry of hosted usage, billable or not, or adjustment, of whatever usage month; of all
   * that were looked at.
   */
  last: bigint;
}

/**
 * What the view has, and of the entries that it does not have yet those `from` … `to`−1; or, where `to` is the
 * lesser, without those `to` … `from`−1 that it has.
 *
 * @param asked months from `since` on are told apart
 */
export async function readPostedUsage(
  tx: Transaction,
  log: string,
  tail: { from: bigint; to: bigint },
  asked: readonly { namespace: string; since: string }[],
): Promise<PostedUsage[]> {
  const { low, high, sign } = between(tail);
  // IS TRUE, here and below, leaves the planner one way: a table of what is asked, looked into once for each
  // entry. An array would be parsed anew each time, and a join is planned for a handful of namespaces.
  return await tx<PostedUsage[]>`
    with asked as (
      select *
      from unnest(
        ${plainColumn(asked.map(({ namespace }) => namespace))}::text::bigint[],
        ${plainColumn(asked.map(({ since }) => since))}::text::date[]
      ) as asked (namespace_id, since)
    ), tail as (
      select
        namespace_id,
        billing_month as month,
        usage_month,
        ${sign} * sum(case when not_billable = '' then compute_ms else 0.000000 end) as amount,
        max(index) as last_index
      from entries
      where log = ${log} and index >= ${low} and index < ${high}
        and kind = 'usage' and tracking = 'hosted'
        and (namespace_id in (select namespace_id from asked)) is true
      group by 1, 2, 3
      union all
      select namespace_id, billing_month, usage_month, ${sign} * sum(amount), max(index)
      from adjustments
      where log = ${log} and index >= ${low} and index < ${high}
        and (namespace_id in (select namespace_id from asked)) is true
      group by 1, 2, 3
    ), parts as (
      select asked.*, v.*
      from asked
      cross join lateral (
        select date as month, usage_month, billable_compute_ms as amount, last_index
        from ci_namespace_monthly_usages
        where log = ${log} and namespace_id = asked.namespace_id and tracking = 'hosted'
        offset 0
      ) as v
      union all
      select namespace_id, since, month, usage_month, amount, last_index
      from asked
      join tail using (namespace_id)
    )
    select
      namespace_id::text as namespace,
      case when month >= since then month end as month,
      sum(case when usage_month = month then amount else 0.000000 end) as amount,
      max(last_index) as last
    from parts
    group by 1, 2
  `;
}

/** Entries low … high−1 that lead from figures of one size to those of another: added, or with −1 taken away. */
export function between({ from, to }: { from: bigint; to: bigint }) {
  return from <= to ? { low: from, high: to, sign: 1n } : { low: to, high: from, sign: -1n };
}

/** An entry that moves somebody's quota. Of a cut-off the namespace is absent: it is everybody's. */
export type TailEntry =
  | { kind: "quota" | "pack"; index: bigint; namespace: string }
  | { kind: "month_closing" | "month_closing_withdrawn"; index: bigint }
  | PostedEntry;

/** Hosted usage, or a line of an adjustment. */
export interface PostedEntry {
  kind: "usage" | "adjustment";
  index: bigint;
  namespace: string;
  /** Null: of an adjustment. */
  job: bigint | null;
  /** That the amount counts in; null: in none. */
  month: string | null;
  amount: string;
}

/** Entries `from` … `to`−1 in their order: what is posted for these namespaces, and all that is no usage. */
export async function readTail(
  tx: Transaction,
  log: string,
  range: { from: bigint; to: bigint },
  namespaces: readonly string[],
): Promise<TailEntry[]> {
  const asked = tx`select unnest(${plainColumn(namespaces)}::text::bigint[])`;
  return await tx<TailEntry[]>`
    select
      kind,
      index,
      coalesce(namespace_id::text, entry_namespace(bytes)) as namespace,
      job_id as job,
      case when not_billable = '' and usage_month = billing_month then usage_month end as month,
      compute_ms as amount
    from entries
    where log = ${log} and index >= ${range.from} and index < ${range.to}
      and (
        kind = 'usage' and tracking = 'hosted' and (namespace_id in (${asked})) is true
        or kind in ('quota', 'pack', 'month_closing', 'month_closing_withdrawn')
      )
    union all
    select
      'adjustment', index, namespace_id::text, null,
      case when usage_month = billing_month then usage_month end, amount
    from adjustments
    where log = ${log} and index >= ${range.from} and index < ${range.to}
      and (namespace_id in (${asked})) is true
    order by index
  `;
}
