/**
 * A run's lines become entries, so many at a time. How far it has come is asked of the log under the head's
 * lock before each step: whoever is killed goes on where the log ends, and two at once take turns.
 */

import { assertLines } from "../../core/adjustment.ts";
import { ADJUSTMENT_LINES_MAX, AdjustmentLine } from "../../core/control.ts";
import {
  adjustmentsOf,
  PackLine,
  packOfRun,
  packVersion,
  Selection,
} from "../../core/credit-run.ts";
import type { Body, EntryOf } from "../../core/entry.ts";
import { parseCanonical } from "../../core/json.ts";
import { Problem } from "../../core/problem.ts";
import { encodeUtf8 } from "../../core/text.ts";
import { readStanding } from "../../store/adjustments.ts";
import { readCreditLines } from "../../store/credit-lines.ts";
import { findCreditPreview } from "../../store/credit-previews.ts";
import type { CreditRunRow } from "../../store/credit-runs.ts";
import { readEntry } from "../../store/entries.ts";
import type { Appender } from "../log/append.ts";
import { salt } from "../log/chain.ts";
import type { Held, Put } from "../log/commit-entry.ts";
import { decodedAs } from "../usage/show.ts";
import { keep, type Previewing } from "./preview.ts";
import { reversalLines } from "./reversal.ts";
import { selectLines } from "./select.ts";
import { linesWritten, runAt } from "./written.ts";

/** Entries of one transaction, while which nobody else writes: some tenths of a second. */
const STEP_ENTRIES = 8;
const STEP_PACKS = 64;

export interface Applying extends Previewing {
  appender: Appender;
}

/** Lines 0 … written−1 of `lines` stand. */
export interface CreditProgress {
  written: bigint;
  lines: bigint;
}

/**
 * Until all lines stand, or nobody wants to wait any longer.
 *
 * @param goesOn asked after each step
 * @throws Problem `not-found`; `no-preview` where the lines are lost and its list of namespaces is not here;
 *   `busy` and the like, as the appender does: what stands stays, and the rest can be asked for again
 */
export async function applyRun(
  applying: Applying,
  { log, index }: { log: string; index: bigint },
  goesOn: (progress: CreditProgress) => boolean,
): Promise<CreditProgress> {
  const { sql } = applying;
  const row = await runAt(sql, log, index);
  const { body } = decodedAs("credit_run", (await readEntry(sql, log, index)).bytes);
  const run: Run = { log, row, body };
  let progress = { written: await linesWritten(sql, log, row), lines: row.lines };
  if (progress.written === row.lines) return progress;
  const preview = await linesOf(applying, run);
  do {
    progress = await step(applying, run, preview);
  } while (progress.written < row.lines && goesOn(progress));
  return progress;
}

interface Run {
  log: string;
  row: CreditRunRow;
  body: Body<"credit_run">;
}

/** The preview whose lines they are; found anew where it is gone, and then held to their digest. */
async function linesOf(applying: Applying, { log, row, body }: Run): Promise<string> {
  const { form, lines_sha256, selection: text } = body;
  const kept = await findCreditPreview(applying.sql, log, body);
  if (kept !== undefined) return kept.id;
  const named = { log, form, selection: text, reverses: row.reverses };
  const selection = parseCanonical(encodeUtf8(text));
  const found = await keep(applying, named, (tx) => {
    if (row.reverses === null) {
      return selectLines(tx, { log, form, selection: Selection.parse(selection) });
    }
    const original = { ...row, index: row.reverses };
    return reversalLines(tx, log, original, BigInt(Selection.parse(selection).as_of));
  });
  if (found.lines_sha256 !== lines_sha256) throw new Problem("no-preview");
  return found.id;
}

async function step(
  { appender, random }: Applying,
  { log, row, body }: Run,
  preview: string,
): Promise<CreditProgress> {
  return await appender.together(log, async (put, held) => {
    const written = await linesWritten(held.tx, log, row);
    const isPacks = row.form === "goodwill_pack";
    const most = isPacks ? STEP_PACKS : STEP_ENTRIES * ADJUSTMENT_LINES_MAX;
    const texts = await readCreditLines(held.tx, { log, preview }, written, written + BigInt(most));
    const sealed = { approval: body.approval, by: body.by };
    const write = { put, held, row, written, sealed: () => ({ ...sealed, salt: salt(random) }) };
    const more = isPacks ? await putPacks(write, texts) : await putLines(write, body, texts);
    if (more === 0 && written < row.lines) throw new Error("credit run: lines are missing");
    return { written: written + BigInt(more), lines: row.lines };
  });
}

interface Writing {
  put: Put;
  held: Held;
  row: CreditRunRow;
  written: bigint;
  sealed: () => { approval: string; by: string; salt: string };
}

/** How many were put. */
async function putLines(
  { put, held, row, written, sealed }: Writing,
  { reason, ticket }: Pick<Body<"credit_run">, "reason" | "ticket">,
  texts: readonly string[],
): Promise<number> {
  const { at, prefix, tx } = held;
  const lines = texts.map((text) => AdjustmentLine.parse(JSON.parse(text)));
  const months = (usageMonth: string): string => prefix.postingMonth(usageMonth);
  let more = 0;
  let entries = 0;
  for (const part of adjustmentsOf(lines, written, months)) {
    if (entries === STEP_ENTRIES) break;
    const credit_run = String(row.index);
    const body: EntryOf<"adjustment">["body"] = {
      ...part,
      ...sealed(),
      credit_run,
      reason,
      ticket,
    };
    // The preview has asked this of all of them, and left no month below zero. In those months nothing was
    // corrected from then until the run began, and nothing is while it is under way (rule.ts): so it still holds,
    // or the log must not have it.
    assertLines(prefix, body, at, await readStanding(tx, prefix.id, body.lines));
    await put("adjustment", body);
    more += part.lines.length;
    entries += 1;
  }
  return more;
}

async function putPacks(
  { put, row, written, sealed }: Writing,
  texts: readonly string[],
): Promise<number> {
  const run = String(row.reverses ?? row.index);
  const versions = { lines: row.lines, reverses: row.reverses !== null };
  for (const [i, text] of texts.entries()) {
    const line = PackLine.parse(JSON.parse(text));
    const source_version = packVersion(written + BigInt(i), versions);
    await put("pack", { ...line, ...packOfRun(run, line), ...sealed(), source_version });
  }
  return texts.length;
}
