/** Runs and how far they have come, for whoever reads. */
import { formatSignedComputeMs, parseSignedComputeMs } from "../../core/charge.ts";
import type { CreditForm } from "../../core/credit-run.ts";
import { Problem } from "../../core/problem.ts";
import type { Transaction } from "../../store/connect.ts";
import type { CreditPreview } from "../../store/credit-previews.ts";
import { type CreditRunRow, readCreditRuns } from "../../store/credit-runs.ts";
import { readEntry } from "../../store/entries.ts";
import { listLogs } from "../../store/logs.ts";
import { type AsOf, asOf, decodedAs, type Showing, snapshot } from "../usage/show.ts";
import { summaryOf } from "./rule.ts";
import type { CreditSummary } from "./summary.ts";
import { linesWritten, runAt } from "./written.ts";

export interface ShownPreview extends CreditSummary {
  preview: string;
  form: CreditForm;
  selection: string;
  lines: string;
  lines_sha256: string;
  total: string;
}

export function shownPreview(preview: CreditPreview): ShownPreview {
  const { form, id, lines, lines_sha256, selection, total } = preview;
  return {
    preview: id,
    form: form as CreditForm,
    selection,
    lines: String(lines),
    lines_sha256,
    total: formatSignedComputeMs(parseSignedComputeMs(total)),
    ...summaryOf(preview),
  };
}

export interface ShownCreditRun {
  index: string;
  at: string;
  form: CreditForm;
  selection: string;
  lines: string;
  lines_sha256: string;
  /** Of `lines`, those that stand. */
  written: string;
  total: string;
  reason: string;
  ticket: string;
  approval: string;
  /** The run that it takes back, or that takes it back; `""`. */
  reverses: string;
  reversed: string;
}

const PAGE = 50;
const ANY_INDEX = 2n ** 63n - 1n;

/** Newest first. @throws Problem `not-found` */
export async function showRuns(
  { sql }: Showing,
  { log, below = ANY_INDEX }: { log: string; below?: bigint },
): Promise<AsOf & { credit_runs: ShownCreditRun[]; next?: string }> {
  return await snapshot(sql, async (tx) => {
    const [listed] = await listLogs(tx, log);
    if (listed === undefined) throw new Problem("not-found");
    const rows = await readCreditRuns(tx, log, { below, limit: PAGE + 1 });
    const credit_runs: ShownCreditRun[] = [];
    for (const row of rows.slice(0, PAGE)) credit_runs.push(await shown(tx, log, row));
    const last = credit_runs.at(-1);
    const more = rows.length > PAGE && last !== undefined && { next: last.index };
    return { ...asOf(listed), credit_runs, ...more };
  });
}

/** @throws Problem `not-found` */
export async function showRun(
  { sql }: Showing,
  { log, index }: { log: string; index: bigint },
): Promise<AsOf & ShownCreditRun> {
  return await snapshot(sql, async (tx) => {
    const [listed] = await listLogs(tx, log);
    if (listed === undefined) throw new Problem("not-found");
    return { ...asOf(listed), ...(await shown(tx, log, await runAt(tx, log, index))) };
  });
}

async function shown(tx: Transaction, log: string, row: CreditRunRow): Promise<ShownCreditRun> {
  const { at, body } = decodedAs("credit_run", (await readEntry(tx, log, row.index)).bytes);
  const { approval, form, lines, lines_sha256, reason, reverses, selection, ticket, total } = body;
  return {
    ...{ at, approval, form, lines, lines_sha256, reason, reverses, selection, ticket, total },
    index: String(row.index),
    written: String(await linesWritten(tx, log, row)),
    reversed: String(row.reversed ?? ""),
  };
}
