/** Table `credit_lines`: what a credit run takes or gives, from its preview until it stands on the log. */
import type { CreditLine } from "../core/credit-run.ts";
import { plainColumn, textColumn } from "./columns.ts";
import type { Sql, Transaction } from "./connect.ts";

type Reader = Sql | Transaction;

/** @param first number of the first line */
export async function insertCreditLines(
  tx: Transaction,
  { log, preview }: { log: string; preview: string },
  first: bigint,
  lines: readonly CreditLine[],
): Promise<void> {
  await tx`
    insert into credit_lines (log, preview, line, namespace_id, usage_month, text)
    select ${log}, ${preview}, ${first} + place - 1, namespace_id, usage_month, text
    from unnest(
      ${plainColumn(lines.map(({ namespace_id }) => namespace_id))}::text::bigint[],
      ${plainColumn(lines.map(({ usage_month }) => usage_month ?? undefined))}::text::date[],
      ${textColumn(lines.map(({ text }) => text))}::text::text[]
    ) with ordinality as line (namespace_id, usage_month, text, place)`;
}

/** Lines from … to−1, as they are hashed, in their order. */
export async function readCreditLines(
  sql: Reader,
  { log, preview }: { log: string; preview: string },
  from: bigint,
  to: bigint,
): Promise<string[]> {
  const rows = await sql<{ text: string }[]>`
    select text
    from credit_lines
    where log = ${log} and preview = ${preview} and line >= ${from} and line < ${to}
    order by line`;
  return rows.map(({ text }) => text);
}

/**
 * Whether anything was adjusted from entry `asOf` on in a namespace's month that these lines are about; a pack's
 * is about all of its namespace's, whichever its minutes were found from.
 */
export async function isAdjustedSince(
  tx: Transaction,
  { log, preview }: { log: string; preview: string },
  asOf: bigint,
): Promise<boolean> {
  const rows = await tx`
    select
    from adjustments as later
    where later.log = ${log} and later.index >= ${asOf}
      and exists (
        select
        from credit_lines as line
        where line.log = ${log} and line.preview = ${preview}
          and line.namespace_id = later.namespace_id
          and (line.usage_month = later.usage_month or line.usage_month is null)
      )
    limit 1`;
  return rows.length > 0;
}

/** Whether a run gave a pack, or took one back, from entry `asOf` on to a namespace that these lines are about. */
export async function isGivenSince(
  tx: Transaction,
  { log, preview }: { log: string; preview: string },
  asOf: bigint,
): Promise<boolean> {
  const rows = await tx`
    select
    from credit_runs as run
    join entries as given
      on given.log = ${log} and given.kind = 'pack' and given.index >= ${asOf}
        and entry_credit_run(given.bytes) is not null
        and entry_credit_run(given.bytes) = run.index
    where run.log = ${log} and run.form = 'goodwill_pack'
      and exists (
        select
        from credit_lines as line
        where line.log = ${log} and line.preview = ${preview}
          and line.namespace_id = entry_namespace(given.bytes)::bigint
      )
    limit 1`;
  return rows.length > 0;
}
