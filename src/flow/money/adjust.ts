/** A correction of what was charged: never of an entry, always by another one. */
import type { z } from "zod";
import {
  assertLeft,
  assertLines,
  type MonthFigures,
  scopeName,
  scopesOf,
} from "../../core/adjustment.ts";
import { formatSignedComputeMs, parseSignedComputeMs } from "../../core/charge.ts";
import { BODY, type Body } from "../../core/entry.ts";
import type { Prefix } from "../../core/prefix.ts";
import { misshapen } from "../../core/problem.ts";
import { readMonthFigures, readStanding } from "../../store/adjustments.ts";
import type { Transaction } from "../../store/connect.ts";
import type { Random } from "../clock.ts";
import type { Appender } from "../log/append.ts";
import { salt } from "../log/chain.ts";
import type { Receipt } from "../log/commit-entry.ts";

/** Without `billing_month`: where usage of the first line's month would be posted that came now. */
export const NewAdjustment = BODY.adjustment
  .omit({ approval: true, by: true, credit_run: true, first_line: true, salt: true })
  .extend({ billing_month: BODY.adjustment.shape.billing_month.exactOptional() });
export type NewAdjustment = z.infer<typeof NewAdjustment>;

/** The log up to its head. */
interface Standing {
  readonly tx: Transaction;
  readonly prefix: Prefix;
  /** Of the entry that would be written now. */
  readonly at: string;
}

/**
 * Where one person decides. Under dual control it takes a proposal and its approval.
 *
 * @param by opaque id of the principal who asks
 * @throws Problem `not-found`, `approval-required`, and as `assertAdjustable` does
 */
export async function adjust(
  { appender, random }: { appender: Appender; random: Random },
  { log, by }: { log: string; by: string },
  { billing_month, ...input }: NewAdjustment,
): Promise<Receipt> {
  const sealed = { approval: "", by, credit_run: "", first_line: "0", salt: salt(random) };
  return await appender.control(log, "adjustment", async (prefix, at, tx) => {
    const [first] = input.lines;
    const open = first && prefix.postingMonth(first.usage_month);
    const body = { ...input, ...sealed, billing_month: billing_month ?? open ?? "" };
    await assertAdjustable({ tx, prefix, at }, body);
    return body;
  });
}

/** As `assertAdjustable`, of one that is no part of a credit run. */
export async function assertHandMade(standing: Standing, body: Body<"adjustment">): Promise<void> {
  if (body.credit_run !== "") misshapen("adjustment", "credit_run");
  if (body.first_line !== "0") misshapen("adjustment", "first_line");
  await assertAdjustable(standing, body);
}

/**
 * Whether it may be written now. Asked under the head's lock, so that of two that would take the same away
 * one finds the other.
 *
 * @throws Problem as core/adjustment.ts says
 */
export async function assertAdjustable(
  { tx, prefix, at }: Standing,
  body: Body<"adjustment">,
): Promise<void> {
  const { lines } = body;
  assertLines(prefix, body, at, await readStanding(tx, prefix.id, lines));
  assertLeft(body, await readMonthFigures(tx, prefix.id, lines.flatMap(scopesOf)));
}

/** What the months that it is about come to. */
export interface AdjustmentEffect {
  total: string;
  months: {
    namespace_id: string;
    usage_month: string;
    /** Net billable usage, wherever it was posted. */
    from: string;
    to: string;
  }[];
}

export async function adjustmentEffect(
  { tx, prefix }: Pick<Standing, "tx" | "prefix">,
  { lines }: Pick<Body<"adjustment">, "lines">,
): Promise<AdjustmentEffect> {
  const whole = lines.map((line) => ({ ...line, project_id: "" }));
  const scopes = [...new Map(whole.map((line) => [scopeName(line), line])).values()];
  const figures = await readMonthFigures(tx, prefix.id, scopes);
  const months = scopes.map(({ namespace_id, usage_month, ...rest }) => {
    const name = scopeName({ namespace_id, usage_month, ...rest });
    const { charged, adjusted } = figures.get(name) ?? NOTHING;
    const net = charged + adjusted;
    const to = net + totalOf(whole.filter((line) => scopeName(line) === name));
    const [before, after] = [formatSignedComputeMs(net), formatSignedComputeMs(to)];
    return { namespace_id, usage_month, from: before, to: after };
  });
  return { total: formatSignedComputeMs(totalOf(lines)), months };
}

const NOTHING: MonthFigures = { charged: 0n, adjusted: 0n };

function totalOf(lines: readonly { amount: string }[]): bigint {
  return lines.reduce((sum, { amount }) => sum + parseSignedComputeMs(amount), 0n);
}
