/** What a run would do, kept line by line until two persons have decided about just these lines. */
import { createHash } from "node:crypto";
import type { z } from "zod";
import { formatSignedComputeMs } from "../../core/charge.ts";
import { CreditForm, type CreditLine, Selection } from "../../core/credit-run.ts";
import { canonical } from "../../core/json.ts";
import { lastMonth } from "../../core/pack.ts";
import { misshapen, Problem } from "../../core/problem.ts";
import { encodeHex } from "../../core/text.ts";
import { instantText, monthOf } from "../../core/unit.ts";
import type { Sql, Transaction } from "../../store/connect.ts";
import { insertCreditLines } from "../../store/credit-lines.ts";
import {
  type CreditPreview,
  deleteCreditPreviews,
  insertCreditPreview,
} from "../../store/credit-previews.ts";
import { readHead } from "../../store/heads.ts";
import { transact } from "../../store/transact.ts";
import { avoidNestedLoops, limitTransaction } from "../../store/transaction.ts";
import type { Clock, Random } from "../clock.ts";
import { type FoundLine, selectLines } from "./select.ts";
import { Summing } from "./summary.ts";

const ID_BYTES = 16;
const BATCH_LINES = 2_000;
/** Of a log of any length, milliseconds. */
const PATIENCE_MS = 600_000;
/** No proposal lasts longer than 31 days. */
const KEPT_MS = 32 * 86_400_000;

/** Without `as_of`: all that there is now. Packs are good from this month on, for twelve of them. */
export const NewCreditPreview = Selection.extend({
  as_of: Selection.shape.as_of.exactOptional(),
  form: CreditForm,
});
export type NewCreditPreview = z.infer<typeof NewCreditPreview>;

export interface Previewing {
  /** As writer. */
  sql: Sql;
  clock: Clock;
  random: Random;
}

/** @throws Problem `not-found`, `invalid-request` as `selectLines` says, and for more than the log has */
export async function preview(
  previewing: Previewing,
  log: string,
  { form, ...asked }: NewCreditPreview,
): Promise<CreditPreview> {
  const { sql, clock } = previewing;
  const head = await readHead(sql, log);
  if (head === undefined) throw new Problem("not-found");
  const { as_of = String(head.size), ...rest } = asked;
  if (BigInt(as_of) > head.size) misshapen("credit_run", "as_of");
  const selection = { ...(form === "goodwill_pack" && months(clock, rest)), ...rest, as_of };
  const text = canonical(selection);
  return await keep(previewing, { log, form, selection: text, reverses: null }, (tx) => {
    return selectLines(tx, { log, form, selection });
  });
}

function months(
  clock: Clock,
  { purchased_in = monthOf(instantText(clock.now())) }: Pick<Selection, "purchased_in">,
): Pick<Selection, "expires_in" | "purchased_in"> {
  return { purchased_in, expires_in: lastMonth(purchased_in) };
}

type Named = Pick<CreditPreview, "log" | "form" | "selection" | "reverses">;

/** Finds the lines and keeps them as they come, all as of one moment. */
export async function keep(
  { sql, clock, random }: Previewing,
  named: Named,
  find: (tx: Transaction) => AsyncIterable<FoundLine>,
): Promise<CreditPreview> {
  const patient = { statement: PATIENCE_MS, idle: PATIENCE_MS };
  const now = clock.now();
  // By itself: what two throw away at once would be a conflict of the other transaction.
  await transact(sql, (tx) => deleteCreditPreviews(tx, instantText(now - KEPT_MS)));
  const finding = async (tx: Transaction): Promise<CreditPreview> => {
    await limitTransaction(tx, patient);
    await avoidNestedLoops(tx);
    const id = encodeHex(random(ID_BYTES));
    const sums = await keepLines(tx, { log: named.log, preview: id }, find(tx));
    const kept = { ...named, id, ...sums };
    await insertCreditPreview(tx, kept, instantText(now));
    return kept;
  };
  return await transact(sql, finding, "isolation level repeatable read");
}

async function keepLines(
  tx: Transaction,
  key: { log: string; preview: string },
  found: AsyncIterable<FoundLine>,
): Promise<Pick<CreditPreview, "lines" | "lines_sha256" | "total" | "summary">> {
  const digest = createHash("sha256");
  const sums = new Summing();
  let count = 0n;
  let batch: CreditLine[] = [];
  const flush = async (): Promise<void> => {
    await insertCreditLines(tx, key, count, batch);
    count += BigInt(batch.length);
    batch = [];
  };
  for await (const { line, machineType } of found) {
    digest.update(`${line.text}\n`);
    sums.add(line, machineType);
    batch.push(line);
    if (batch.length === BATCH_LINES) await flush();
  }
  await flush();
  const { total } = sums;
  return {
    lines: count,
    lines_sha256: digest.digest("base64"),
    total: formatSignedComputeMs(total),
    summary: canonical(sums.summary()),
  };
}
