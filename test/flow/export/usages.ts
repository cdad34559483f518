/** Rows of a log without the log: here only what is read out of columns is looked at. */
import type { Format, Row } from "../../../src/core/export/tables.ts";
import { type Content, contentOf } from "../../../src/flow/export/content.ts";
import type { Origin, Sheet } from "../../../src/flow/export/source.ts";
import type { Sql, Transaction } from "../../../src/store/connect.ts";
import { transact } from "../../../src/store/transact.ts";
import { bytesOf } from "../../format/sheet.ts";

/**
 * Usages from … to−1 of a log; of each the machine type in turn, and two decimals beyond a third of a
 * millisecond.
 */
export async function insertUsages(
  sql: Sql,
  log: string,
  { from, to }: { from: number; to: number },
  machineTypes: readonly string[] = ["small"],
): Promise<void> {
  await sql`
    insert into entries (
      log, index, kind, at, prev, leaf, bytes, tracking, job_id, project_id, namespace_id,
      runner_uuid, runner_id, machine_type, duration_ms, compute_ms, not_billable, usage_month,
      billing_month, finished_at
    )
    select
      ${log}, n, 'usage', '2026-11-02Z'::timestamptz + n * interval '1 ms', sha256(n::text::bytea),
      sha256((n + 1)::text::bytea), '\\x00', case when n % 3 = 0 then 'self_managed' else 'hosted' end,
      n + 9007199254740993, n % 7, n % 5, 'r-' || n % 2, 7,
      (${sql.array([...machineTypes], TEXT_ARRAY)})[1 + n % ${machineTypes.length}], n, n / 3.0,
      case when n % 3 = 0 then 'self_managed' else '' end, '2026-10-01', '2026-11-01',
      '2026-10-31Z'::timestamptz + n * interval '1 ms'
    from generate_series(${from}::bigint, ${to - 1}::bigint) as n`;
}

const TEXT_ARRAY = 1009;

/** Lines of an adjustment whose entry stands. */
export async function insertLines(
  sql: Sql,
  log: string,
  index: number,
  lines: number,
): Promise<void> {
  await sql`
    insert into adjustments (
      log, index, line, namespace_id, project_id, usage_month, billing_month, amount
    )
    select ${log}, ${index}, n, n % 5, nullif(n % 7, 0), '2026-10-01', '2026-11-01', -n / 8.0
    from generate_series(0, ${lines - 1}::bigint) as n`;
}

export const inSnapshot = async <T>(sql: Sql, look: (tx: Transaction) => Promise<T>): Promise<T> =>
  await transact(sql, look, "isolation level repeatable read read only");

export async function rowsOf({ pages }: Sheet): Promise<Row[]> {
  const rows: Row[] = [];
  for await (const page of pages) rows.push(...page);
  return rows;
}

/** A file made whole, in a transaction of its own. */
export async function made(
  sql: Sql,
  source: (origin: Origin) => Sheet,
  origin: Omit<Origin, "tx">,
  format: Format = "csv",
): Promise<{ bytes: Buffer } & Awaited<ReturnType<Content["figures"]>>> {
  return await inSnapshot(sql, async (tx) => {
    const { bytes, figures } = contentOf(source({ tx, ...origin }), format);
    return { bytes: await bytesOf(bytes), ...(await figures()) };
  });
}
