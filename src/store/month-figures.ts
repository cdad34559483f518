/** What a closed month is counted from, beside its own usage (store/months.ts). */
import { charges } from "./charges.ts";
import { plainColumn } from "./columns.ts";
import type { Transaction } from "./connect.ts";
import { pagesOf } from "./pages.ts";
import { between } from "./quotas.ts";

interface OfMonth {
  log: string;
  month: string;
}

/** Net billable usage of one usage month that was posted to billing months before; a decimal, maybe below zero. */
export interface PostedBefore {
  namespace_id: string;
  usage_month: string;
  amount: string;
}

/** Of these namespaces, by usage month. @param tail from where the view has come to, to the size that is asked about */
export async function readPostedBefore(
  tx: Transaction,
  { log, month }: OfMonth,
  namespaces: readonly string[],
  tail: { from: bigint; to: bigint },
): Promise<PostedBefore[]> {
  const { low, high, sign } = between(tail);
  // One way to plan it, as in readPostedUsage (quotas.ts).
  return await tx<PostedBefore[]>`
    with asked as (
      select *
      from unnest(${plainColumn(namespaces)}::text::bigint[]) as asked (namespace_id)
    )
    select namespace_id::text, usage_month, sum(amount)::text as amount
    from (
      select namespace_id, usage_month, amount
      from asked
      cross join lateral (
        select usage_month, billable_compute_ms as amount
        from ci_namespace_monthly_usages
        where log = ${log} and namespace_id = asked.namespace_id and tracking = 'hosted'
          and date < ${month}
        offset 0
      ) as view
      union all
      select namespace_id, usage_month, ${sign} * (compute_ms + adjustment_compute_ms)
      from (${charges(tx, log, { from: low, to: high })}) as charge
      where not_billable = '' and billing_month < ${month}
        and (namespace_id in (select namespace_id from asked)) is true
    ) as posted
    group by posted.namespace_id, usage_month`;
}

/** Namespaces that a pack was ever written for below an index, in the order of their numbers. */
export async function readPackNamespaces(
  tx: Transaction,
  log: string,
  below: bigint,
): Promise<string[]> {
  const rows = await tx<{ namespace_id: string }[]>`
    select namespace_id::text
    from (
      select distinct entry_namespace(bytes)::bigint as namespace_id
      from entries
      where log = ${log} and kind = 'pack' and index < ${below}
    ) as packs
    order by packs.namespace_id`;
  return rows.map(({ namespace_id }) => namespace_id);
}

/** What adjustments' entries add to a month, each of them; a decimal, maybe below zero. */
export async function readCorrections(
  tx: Transaction,
  { log, month }: OfMonth,
  below: bigint,
): Promise<{ lines: bigint; amount: string; bytes: Uint8Array }[]> {
  return await tx<{ lines: bigint; amount: string; bytes: Uint8Array }[]>`
    select lines, amount, bytes
    from (
      select index, count(*) as lines, sum(amount)::text as amount
      from adjustments
      where log = ${log} and billing_month = ${month} and index < ${below}
      group by index
    ) as corrected
    join entries using (index)
    where log = ${log}
    order by index`;
}

/** A row of the public view of a month; amounts as decimals with six digits, net ones maybe below zero. */
export interface ShownRollup {
  namespace_id: string;
  usage_month: string;
  tracking: "hosted" | "self_managed";
  jobs: string;
  duration_ms: string;
  gross: string;
  adjustment: string;
  billable: string;
}

const PAGE_ROWS = 1_000;

/** In the order of namespace (as a number), usage month and tracking. */
export async function* readShown(
  tx: Transaction,
  { log, month }: OfMonth,
): AsyncGenerator<ShownRollup> {
  const query = tx`
    select
      namespace_id::text, usage_month, tracking, jobs::text, duration_ms::text,
      gross_compute_ms::numeric(46, 6)::text as gross,
      adjustment_compute_ms::numeric(46, 6)::text as adjustment,
      billable_compute_ms::numeric(46, 6)::text as billable
    from ci_namespace_monthly_usages as shown
    where log = ${log} and date = ${month}
    order by shown.namespace_id, usage_month, tracking collate "C"
  `;
  const pages = pagesOf<ShownRollup>(tx, query, PAGE_ROWS);
  for await (const page of pages) yield* page;
}
