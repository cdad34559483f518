/**
 * Credit runs (DESIGN §7): one correction of many charges, previewed, approved, applied and taken back as a
 * whole. What it takes or gives is a list of lines whose digest two persons have seen.
 */
import { z } from "zod";
import { scopeName, scopesOf } from "./adjustment.ts";
import { CREDIT_RUN_SOURCE } from "./beside.ts";
import { formatSignedComputeMs, MINUTE, parseSignedComputeMs, portion } from "./charge.ts";
import { ADJUSTMENT_LINES_MAX, type AdjustmentLine } from "./control.ts";
import { BODY, type Body } from "./entry.ts";
import { type Factor, ONE, parseFactor } from "./factor.ts";
import { canonical } from "./json.ts";
import { misshapen } from "./problem.ts";
import {
  computeMs,
  HashText,
  InstantText,
  IntegerText,
  MonthText,
  NonEmptyText,
  PositiveText,
  Word,
} from "./unit.ts";

export const CreditForm = BODY.credit_run.shape.form;
export type CreditForm = z.infer<typeof CreditForm>;

/** Names in each list of a selection; of namespaces there are more, in a list of their own. */
const NAMES_MAX = 256;
/** Namespaces of one list. */
export const NAMESPACES_MAX = 100_000;
const FACTOR_CHARS_MAX = 39;

/**
 * What a run is about: billable hosted usage that finished in [from, to), of these runners, machine types and
 * so on, each where it is named; as entries 0 … as_of−1 have it.
 */
export const Selection = z.strictObject({
  as_of: PositiveText,
  /** Of packs: the last month that they are good for, and the first. */
  expires_in: MonthText.exactOptional(),
  failure_reasons: z.array(Word).min(1).max(NAMES_MAX).exactOptional(),
  from: InstantText.exactOptional(),
  machine_types: z.array(NonEmptyText).min(1).max(NAMES_MAX).exactOptional(),
  /** Minutes of each namespace's pack. */
  minutes: PositiveText.exactOptional(),
  /** Of a list that was uploaded. */
  namespaces_sha256: HashText.exactOptional(),
  projects: z.array(IntegerText).min(1).max(NAMES_MAX).exactOptional(),
  purchased_in: MonthText.exactOptional(),
  /** The platform's numbers. */
  runners: z.array(IntegerText).min(1).max(NAMES_MAX).exactOptional(),
  /** Of what is left of each charge, as a decimal or `a/b`. */
  share: z.string().max(FACTOR_CHARS_MAX).exactOptional(),
  to: InstantText.exactOptional(),
});
export type Selection = z.infer<typeof Selection>;

/** What a run does with each charge, or for each namespace. */
export type Terms =
  | { readonly kind: "credit"; readonly share: Factor }
  | { readonly kind: "pack"; readonly share: Factor }
  | { readonly kind: "minutes"; readonly minutes: bigint };

/** @throws Problem `invalid-request` for what the form does not go with */
export function termsOf(form: CreditForm, { minutes, share: text }: Selection): Terms {
  const share = text === undefined ? ONE : parseFactor(text);
  if (share === undefined || share.n === 0n) misshapen("credit_run", "share");
  if (form === "goodwill_pack") {
    if ((minutes === undefined) === (text === undefined)) misshapen("credit_run", "minutes");
    return minutes === undefined
      ? { kind: "pack", share }
      : { kind: "minutes", minutes: BigInt(minutes) };
  }
  if (minutes !== undefined) misshapen("credit_run", "minutes");
  const isWhole = form === "zero_rate" && text === undefined;
  const isShare = form === "credit" && text !== undefined && share.n <= share.d;
  if (!(isWhole || isShare)) misshapen("credit_run", "share");
  return { kind: "credit", share };
}

/** Usage that a selection takes in. */
export interface SelectedUsage
  extends Pick<AdjustmentLine, "entry" | "namespace_id" | "project_id" | "usage_month"> {
  readonly machine_type: string;
  /** What was charged, less what earlier lines about it took; in 10⁻⁶ compute-milliseconds. */
  readonly left: bigint;
}

/**
 * The line that takes back a share of what is left of a usage; undefined: nothing is.
 *
 * @param room what is left of months that were credited as a whole, by `scopeName`; made less by what is taken
 */
export function creditLine(
  { entry, left, namespace_id, project_id, usage_month }: SelectedUsage,
  share: Factor,
  room: Map<string, bigint>,
): AdjustmentLine | undefined {
  const scope = { namespace_id, project_id, usage_month };
  const bounds = scopesOf(scope)
    .map(scopeName)
    .filter((name) => room.has(name));
  let amount = left > 0n ? (portion(computeMs(left), share) as bigint) : 0n;
  for (const name of bounds) amount = lesser(amount, room.get(name) ?? 0n);
  if (amount <= 0n) return undefined;
  for (const name of bounds) room.set(name, (room.get(name) ?? 0n) - amount);
  return { amount: formatSignedComputeMs(-amount), entry, ...scope, reverses: "" };
}

/** What a pack's line says; the rest of its entry follows from the run. */
export const PackLine = BODY.pack.pick({
  expires_in: true,
  minutes: true,
  namespace_id: true,
  purchased_in: true,
});
export type PackLine = z.infer<typeof PackLine>;

/** Minutes of a share of what was used, in 10⁻⁶ compute-milliseconds: whole ones, and none is cut off. */
export function wholeMinutes(used: bigint, share: Factor): bigint {
  const divisor = MINUTE * share.d;
  return (used * share.n + divisor - 1n) / divisor;
}

/** The line that takes another one back. @param name `<index>/<line>` of it */
export function reversalLine(line: AdjustmentLine, name: string): AdjustmentLine {
  const amount = formatSignedComputeMs(-parseSignedComputeMs(line.amount));
  return { ...line, amount, reverses: name };
}

/** Of packs the number of a version counts lines: those that give them, then those that take them back. */
export function packVersion(
  line: bigint,
  { lines, reverses }: { lines: bigint; reverses: boolean },
) {
  return String(line + 1n + (reverses ? lines : 0n));
}

/** A line as it is hashed, and what it adds to the run's total, in 10⁻⁶ compute-milliseconds. */
export interface CreditLine {
  readonly text: string;
  readonly namespace_id: string;
  /** Null: of a pack. */
  readonly usage_month: string | null;
  readonly amount: bigint;
}

export function ofAdjustment(line: AdjustmentLine): CreditLine {
  const { namespace_id, usage_month } = line;
  const amount = parseSignedComputeMs(line.amount);
  return { text: canonical(line), namespace_id, usage_month, amount };
}

/** @param before minutes of the version that it follows; a pack of no minutes takes them back */
export function ofPack(line: PackLine, before = 0n): CreditLine {
  const { namespace_id } = line;
  const amount = (BigInt(line.minutes) - before) * MINUTE;
  return { text: canonical(line), namespace_id, usage_month: null, amount };
}

/**
 * The entries that lines make, in their order: each as many as go together, which have one posting month.
 *
 * @param first number of the first line
 */
export function* adjustmentsOf(
  lines: readonly AdjustmentLine[],
  first: bigint,
  postingMonth: (usageMonth: string) => string,
): Generator<Pick<Body<"adjustment">, "billing_month" | "first_line" | "lines">> {
  let at = 0;
  while (at < lines.length) {
    const billing_month = postingMonth(lines[at]?.usage_month ?? "");
    let end = at + 1;
    while (
      end < lines.length &&
      end - at < ADJUSTMENT_LINES_MAX &&
      postingMonth(lines[end]?.usage_month ?? "") === billing_month
    ) {
      end += 1;
    }
    const first_line = String(first + BigInt(at));
    yield { billing_month, first_line, lines: lines.slice(at, end) };
    at = end;
  }
}

/** By which a run's pack is found: the run that gave it, whichever takes it back, and its namespace. */
export function packOfRun(run: string, { namespace_id }: Pick<PackLine, "namespace_id">) {
  return { source: CREDIT_RUN_SOURCE, pack_id: `${run}/${namespace_id}` };
}

function lesser(a: bigint, b: bigint): bigint {
  return a < b ? a : b;
}
