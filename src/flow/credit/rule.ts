/** Which run may be written, and what it would do: asked when it is proposed and when it is written. */
import { z } from "zod";
import { parseSignedComputeMs } from "../../core/charge.ts";
import type { Body } from "../../core/entry.ts";
import { parseCanonical } from "../../core/json.ts";
import type { Prefix } from "../../core/prefix.ts";
import { misshapen, Problem } from "../../core/problem.ts";
import { encodeUtf8 } from "../../core/text.ts";
import { PositiveText } from "../../core/unit.ts";
import type { Transaction } from "../../store/connect.ts";
import { isAdjustedSince, isGivenSince } from "../../store/credit-lines.ts";
import { type CreditPreview, findCreditPreview } from "../../store/credit-previews.ts";
import { type CreditRunRow, readCreditRun } from "../../store/credit-runs.ts";
import type { CreditSummary } from "./summary.ts";
import { assertNoneUnderWay } from "./written.ts";

/** The log up to its head. */
interface Deciding {
  readonly tx: Transaction;
  readonly prefix: Prefix;
}

type Asked = Pick<
  Body<"credit_run">,
  "form" | "lines" | "lines_sha256" | "reverses" | "selection" | "total"
>;

const AsOf = z.object({ as_of: PositiveText });

/**
 * Under the head's lock: from here on nothing else is corrected until all of its lines stand.
 *
 * @throws Problem `no-preview`, `invalid-request` for a run of no line, `not-found`, `cannot-be-reversed` or
 *   `already-reversed` for the run that it takes back, `credit-run-under-way`, `preview-outdated`
 */
export async function assertRun({ tx, prefix }: Deciding, run: Asked): Promise<void> {
  const preview = await previewOf(tx, prefix.id, run);
  if (preview.lines === 0n) misshapen("credit_run", "lines");
  await assertNoneUnderWay(tx, prefix.id);
  if (run.reverses !== "") await assertReversible(tx, prefix.id, run);
  if (await isOutdated(tx, run, preview)) throw new Problem("preview-outdated");
}

/**
 * So that nothing is taken or given twice: what a preview's own run put on the log outdates it, and every other
 * that was made before.
 */
async function isOutdated(
  tx: Transaction,
  { form, reverses, selection }: Asked,
  { id, log }: CreditPreview,
): Promise<boolean> {
  const asOf = BigInt(AsOf.parse(parseCanonical(encodeUtf8(selection))).as_of);
  const key = { log, preview: id };
  if (form !== "goodwill_pack") return await isAdjustedSince(tx, key, asOf);
  // What was given is taken back whatever was corrected meanwhile, and once.
  if (reverses !== "") return false;
  return (await isGivenSince(tx, key, asOf)) || (await isAdjustedSince(tx, key, asOf));
}

export async function creditRunEffect(
  { tx, prefix }: Deciding,
  run: Asked,
): Promise<CreditSummary> {
  return summaryOf(await previewOf(tx, prefix.id, run));
}

export function summaryOf({ summary }: Pick<CreditPreview, "summary">): CreditSummary {
  return JSON.parse(summary);
}

async function previewOf(tx: Transaction, log: string, run: Asked): Promise<CreditPreview> {
  const preview = await findCreditPreview(tx, log, run);
  const same =
    preview !== undefined &&
    String(preview.lines) === run.lines &&
    parseSignedComputeMs(preview.total) === parseSignedComputeMs(run.total) &&
    String(preview.reverses ?? "") === run.reverses;
  if (!same) throw new Problem("no-preview");
  return preview;
}

/** Once, and what takes back is not taken back again: another run says the same with a new selection. */
async function assertReversible(
  tx: Transaction,
  log: string,
  { form, reverses }: Asked,
): Promise<void> {
  const original = await readCreditRun(tx, log, BigInt(reverses));
  if (original?.form !== form) throw new Problem("not-found");
  assertOriginal(original);
}

/** @throws Problem `cannot-be-reversed`, `already-reversed` */
export function assertOriginal({
  reversed,
  reverses,
}: Pick<CreditRunRow, "reversed" | "reverses">): void {
  if (reverses !== null) throw new Problem("cannot-be-reversed");
  if (reversed !== null) throw new Problem("already-reversed");
}
