/** Entries of a log as rows of a file, and lines of adjustments behind theirs. */
import { type Page, TABLES } from "../core/export/tables.ts";
import type { Figures } from "../core/export/totals.ts";
import type { Transaction } from "./connect.ts";
import { copyPieces } from "./copy.ts";
import { cellPages, cellsOf, csvCellsOf, literal } from "./export-cells.ts";

/** Entries from … to−1 of a log. */
interface Range {
  log: string;
  from: bigint;
  to: bigint;
}

/** What one COPY is of: so many entries, or lines of adjustments, of which an entry may have hundreds. */
const PIECE_ENTRIES = 10_000n;
const PIECE_LINES = 10_000;

export function entryPages(tx: Transaction, range: Range): AsyncIterable<Page> {
  return cellPages(tx, tx.unsafe(rowsOf(range, cellsOf(TABLES.entries), true)));
}

/** The same rows as CSV, each line ended by LF; whole lines at a time. */
export function copyEntries(tx: Transaction, range: Range): AsyncIterable<Buffer> {
  return copyPieces(tx, queries(tx, range));
}

async function* queries(tx: Transaction, { log, from, to }: Range): AsyncGenerator<string> {
  const cells = csvCellsOf(TABLES.entries);
  for (let at = from; at < to; ) {
    const { end, adjusted } = await nextPiece(tx, { log, from: at, to });
    yield rowsOf({ log, from: at, to: end }, cells, adjusted);
    at = end;
  }
}

/** Where it ends, and whether there are any lines in it. */
async function nextPiece(
  tx: Transaction,
  { log, from, to }: Range,
): Promise<{ end: bigint; adjusted: boolean }> {
  const most = from + PIECE_ENTRIES < to ? from + PIECE_ENTRIES : to;
  const lines = tx`from adjustments where log = ${log} and index >= ${from} and index < ${most}`;
  const [row] = await tx<{ adjusted: boolean; end: bigint | null }[]>`
    select
      exists (select ${lines}) as adjusted,
      (
        select index
        ${lines} and index > ${from}
        order by index
        offset ${PIECE_LINES}
        limit 1
      ) as end`;
  return { end: row?.end ?? most, adjusted: row?.adjusted === true };
}

/**
 * Without parameters, for COPY. Entries alone need no sort; and for each line its entry is looked up by the key:
 * left to choose, a planner whose statistics are of yesterday joins ranges in a loop, which is never over.
 */
function rowsOf({ log, from, to }: Range, cells: string, adjusted: boolean): string {
  const range = `log = ${literal(log)} and index >= ${from} and index < ${to}`;
  const lines = `
    union all
    select
      line.index, line.line, entry.kind, entry.at, encode(entry.leaf, 'base64'), 'hosted', null,
      line.project_id, line.namespace_id, null, null, null, null, null,
      null, line.amount, null, line.usage_month, line.billing_month
    from adjustments as line
    cross join lateral (
      select kind, at, leaf
      from entries
      where entries.log = line.log and entries.index = line.index
      offset 0
    ) as entry
    where ${range}`;
  return `
    select ${cells}
    from (
      select
        index, null::bigint as line, kind, at, encode(leaf, 'base64') as leaf, tracking, job_id,
        project_id, namespace_id, runner_id, runner_uuid, machine_type, finished_at, duration_ms,
        compute_ms, null::numeric as adjustment_compute_ms, not_billable, usage_month, billing_month
      from entries
      where ${range}
      ${adjusted ? lines : ""}
    ) as row
    order by row.index, row.line nulls first`;
}

export async function entryFigures(tx: Transaction, { log, from, to }: Range): Promise<Figures> {
  const range = tx`log = ${log} and index >= ${from} and index < ${to}`;
  const [row] = await tx<({ rows: bigint } & Record<string, string>)[]>`
    select
      entries + lines as rows,
      duration_ms::text,
      compute_ms::text,
      adjustment_compute_ms::text
    from (
      select
        count(*) as entries,
        coalesce(sum(duration_ms), 0) as duration_ms,
        coalesce(sum(compute_ms), 0.000000) as compute_ms
      from entries
      where ${range}
    ) as counted
    cross join (
      select count(*) as lines, coalesce(sum(amount), 0.000000) as adjustment_compute_ms
      from adjustments
      where ${range}
    ) as adjusted`;
  if (row === undefined) throw new Error("export: nothing was counted");
  const { rows, ...totals } = row;
  return { rows, totals };
}
