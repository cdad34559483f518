/** A correction of what was charged: never of an entry, always by another one. */
import {
  assertLeft,
  assertLines,
  type MonthFigures,
  scopeName,
  scopesOf,
} from "../../core/adjustment.ts";
import { formatSignedComputeMs, parseSignedComputeMs } from "../../core/charge.ts";
import type { Body } from "../../core/entry.ts";
import type { Prefix } from "../../core/prefix.ts";
import { misshapen } from "../../core/problem.ts";
import { readMonthFigures, readStanding } from "../../store/adjustments.ts";
import type { Transaction } from "../../store/connect.ts";
import { assertNoneUnderWay } from "../credit/written.ts";

/** The log up to its head. */
interface Standing {
  readonly tx: Transaction;
  readonly prefix: Prefix;
  /** Of the entry that would be written now. */
  readonly at: string;
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
 * @throws Problem `credit-run-under-way`, and as core/adjustment.ts says
 */
export async function assertAdjustable(
  { tx, prefix, at }: Standing,
  body: Body<"adjustment">,
): Promise<void> {
  const { lines } = body;
  await assertNoneUnderWay(tx, prefix.id);
  assertLines(prefix, body, at, await readStanding(tx, prefix.id, lines));
  assertLeft(body, await readMonthFigures(tx, prefix.id, lines.flatMap(scopesOf)));
}

/** What the months that it is about come to. */
export type AdjustmentEffect = {
  total: string;
  months: {
    namespace_id: string;
    usage_month: string;
    /** Net billable usage, wherever it was posted. */
    from: string;
    to: string;
  }[];
};

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
