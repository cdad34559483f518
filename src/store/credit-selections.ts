/** What a credit run selects: billable hosted usage, as entries 0 … as_of−1 have it. */
import { scopeName } from "../core/adjustment.ts";
import { parseSignedComputeMs } from "../core/charge.ts";
import type { SelectedUsage, Selection } from "../core/credit-run.ts";
import { plainColumn, textColumn } from "./columns.ts";
import type { Transaction } from "./connect.ts";
import { pagesOf } from "./pages.ts";

const PAGE_ROWS = 2_000;
const BILLABLE = (tx: Transaction) => tx`
  kind = 'usage' and tracking = 'hosted' and not_billable = ''`;

/** In the order of usage month, namespace (as a number) and index. */
export async function* selectUsages(
  tx: Transaction,
  log: string,
  selection: Selection,
): AsyncGenerator<SelectedUsage> {
  const query = tx`
    with adjusted as (
      select entry, sum(amount) as amount
      from adjustments
      where log = ${log} and index < ${selection.as_of} and entry is not null
      group by entry
    )
    select
      usage.index::text as entry,
      usage.namespace_id::text,
      usage.project_id::text,
      usage.usage_month,
      usage.machine_type,
      usage.compute_ms + coalesce(adjusted.amount, 0) as left
    from entries as usage
    left join adjusted on adjusted.entry = usage.index
    where usage.log = ${log} and usage.index < ${selection.as_of} and ${BILLABLE(tx)}
      ${filters(tx, log, selection)}
    order by usage.usage_month, usage.namespace_id, usage.index
  `;
  const pages = pagesOf<Omit<SelectedUsage, "left"> & { left: string }>(tx, query, PAGE_ROWS);
  for await (const page of pages) {
    for (const { left, ...usage } of page) yield { ...usage, left: parseSignedComputeMs(left) };
  }
}

function filters(tx: Transaction, log: string, selection: Selection) {
  const { failure_reasons, from, machine_types, namespaces_sha256, projects, runners, to } =
    selection;
  return tx`
    ${from === undefined ? tx`` : tx`and finished_at >= ${from}::text::timestamptz`}
    ${to === undefined ? tx`` : tx`and finished_at < ${to}::text::timestamptz`}
    ${runners ? tx`and runner_id = any(${plainColumn(runners)}::text::bigint[])` : tx``}
    ${projects ? tx`and project_id = any(${plainColumn(projects)}::text::bigint[])` : tx``}
    ${machine_types ? tx`and machine_type = any(${textColumn(machine_types)}::text::text[])` : tx``}
    ${
      failure_reasons
        ? tx`and ${failureReason(tx)} = any(${textColumn(failure_reasons)}::text::text[])`
        : tx``
    }
    ${
      namespaces_sha256 === undefined
        ? tx``
        : tx`and usage.namespace_id in (
            select unnest(namespaces)
            from namespace_lists
            where log = ${log} and sha256 = ${namespaces_sha256}
          )`
    }`;
}

/** It stands in no column: of the report inside the entry's JWS (RFC 7515 §3.1), whose base64url has no padding. */
function failureReason(tx: Transaction) {
  const payload = tx`
    translate(
      split_part(convert_from(bytes, 'UTF8')::json -> 'body' ->> 'jws', '.', 2), '-_', '+/'
    )`;
  return tx`
    convert_from(
      decode(rpad(${payload}, (length(${payload}) + 3) / 4 * 4, '='), 'base64'), 'UTF8'
    )::json -> 'usage' ->> 'failure_reason'`;
}

/**
 * What is left of each month, and in it of each project, that was credited as a whole: there less may be left
 * than of its usage one by one. By `scopeName`; usually there are none.
 */
export async function readRoom(
  tx: Transaction,
  log: string,
  { as_of }: Selection,
): Promise<Map<string, bigint>> {
  const rows = await tx<
    { namespace_id: string; project_id: string; usage_month: string; left: string }[]
  >`
    with lines as (
      select namespace_id, project_id, usage_month, entry, amount
      from adjustments
      where log = ${log} and index < ${as_of}
    ), scopes as (
      select namespace_id, usage_month, null::bigint as project_id
      from lines
      where entry is null
      group by namespace_id, usage_month
      union
      select namespace_id, usage_month, project_id
      from lines
      where entry is null and project_id is not null
    ), parts as (
      select namespace_id, project_id, usage_month, amount
      from lines
      union all
      select namespace_id, project_id, usage_month, compute_ms
      from entries
      where log = ${log} and index < ${as_of} and ${BILLABLE(tx)}
        and namespace_id in (select namespace_id from scopes)
    )
    select
      scopes.namespace_id::text, coalesce(scopes.project_id::text, '') as project_id,
      scopes.usage_month, sum(parts.amount) as left
    from scopes
    join parts
      on parts.namespace_id = scopes.namespace_id and parts.usage_month = scopes.usage_month
        and (scopes.project_id is null or parts.project_id = scopes.project_id)
    group by scopes.namespace_id, scopes.project_id, scopes.usage_month`;
  return new Map(rows.map(({ left, ...scope }) => [scopeName(scope), parseSignedComputeMs(left)]));
}
