/**
 * What an adjustment may say (DESIGN §7): about what was charged, never more than that, each line taken back
 * once, and posted where usage of its month would be that came now.
 */
import { parseSignedComputeMs } from "./charge.ts";
import type { AdjustmentLine } from "./control.ts";
import type { Body } from "./entry.ts";
import type { Prefix } from "./prefix.ts";
import { misshapen, Problem } from "./problem.ts";
import { type ComputeMs, monthOf } from "./unit.ts";

/** The usage that a line is about. */
export type AdjustedUsage = Pick<AdjustmentLine, "namespace_id" | "project_id" | "usage_month"> & {
  readonly billable: boolean;
  readonly charged: ComputeMs;
};

/** A line that stands: what a reversal is held against. */
export type StandingLine = Pick<
  AdjustmentLine,
  "entry" | "namespace_id" | "project_id" | "usage_month"
> & {
  /** In 10⁻⁶ compute-milliseconds, signed. */
  readonly amount: bigint;
  /** Index of the run that it is part of, or `""`. */
  readonly credit_run: string;
  readonly reversed: boolean;
};

/** What stood before the entry, of all that its lines name. */
export interface Standing {
  /** Usage by its index; an index of no usage is absent. */
  readonly usages: ReadonlyMap<string, AdjustedUsage>;
  /** Lines by `<index>/<line>`. */
  readonly lines: ReadonlyMap<string, StandingLine>;
  /** Sum of the lines about a usage, by its index; absent: there is none. */
  readonly adjusted: ReadonlyMap<string, bigint>;
}

/** A namespace's month, or in it a project's. Text as `scopeName` gives it. */
export interface Scope {
  readonly namespace_id: string;
  /** `""`: all projects, and what is of none. */
  readonly project_id: string;
  readonly usage_month: string;
}

/** Of billable usage of a month, wherever it was posted; in 10⁻⁶ compute-milliseconds. */
export interface MonthFigures {
  readonly charged: bigint;
  readonly adjusted: bigint;
}

/**
 * All that can be asked of each line by itself and of the usage that it names.
 *
 * @param at of the entry
 * @throws Problem `invalid-request`, `months-in-order`, `not-found`, `not-billable-usage`, `already-reversed`,
 *   `part-of-credit-run`, `exceeds-original`
 */
export function assertLines(
  prefix: Prefix,
  body: Body<"adjustment">,
  at: string,
  { adjusted, lines, usages }: Standing,
): void {
  const sums = new Map(adjusted);
  const reversed = new Set<string>();
  for (const [i, line] of body.lines.entries()) {
    const amount = parseSignedComputeMs(line.amount);
    if (amount === 0n) misshapen("adjustment", `lines.${i}.amount`);
    assertMonth(prefix, body, line, at);
    if (line.reverses !== "") {
      assertReversal(body, line, i, lines.get(line.reverses));
      // Two lines of one entry are as two entries.
      if (reversed.has(line.reverses)) throw new Problem("already-reversed");
      reversed.add(line.reverses);
    }
    if (line.entry === "") continue;
    const usage = usages.get(line.entry);
    if (usage === undefined) throw new Problem("not-found");
    if (!usage.billable) throw new Problem("not-billable-usage");
    assertSame(usage, line, i, NAMED_BY_USAGE);
    const sum = (sums.get(line.entry) ?? 0n) + amount;
    if (sum > 0n || sum < -usage.charged) throw new Problem("exceeds-original");
    sums.set(line.entry, sum);
  }
}

/**
 * That what is left of each month, and of each project's, is not below zero after all lines.
 *
 * @param figures by `scopeName`, of all `scopesOf` the lines, before the entry
 * @throws Problem `not-billable-usage`, `exceeds-original`
 */
export function assertLeft(
  { lines }: Body<"adjustment">,
  figures: ReadonlyMap<string, MonthFigures>,
): void {
  const sums = new Map<string, { scope: Scope; sum: bigint }>();
  for (const line of lines) {
    for (const scope of scopesOf(line)) {
      const { sum } = sums.get(scopeName(scope)) ?? { sum: 0n };
      sums.set(scopeName(scope), { scope, sum: sum + parseSignedComputeMs(line.amount) });
    }
  }
  for (const [name, { scope, sum }] of sums) {
    const { charged, adjusted } = figures.get(name) ?? { charged: 0n, adjusted: 0n };
    // Of what: of a namespace that was charged it may be the project alone.
    if (charged === 0n) throw new Problem("not-billable-usage", { ...scope });
    if (charged + adjusted + sum < 0n) throw new Problem("exceeds-original");
  }
}

/** The namespace's month, and the project's if the line is about one. */
export function scopesOf({
  namespace_id,
  project_id,
  usage_month,
}: Pick<AdjustmentLine, "namespace_id" | "project_id" | "usage_month">): Scope[] {
  const whole = { namespace_id, project_id: "", usage_month };
  return project_id === "" ? [whole] : [whole, { ...whole, project_id }];
}

/** None of its parts has a space. */
export function scopeName({ namespace_id, project_id, usage_month }: Scope): string {
  return `${usage_month} ${namespace_id} ${project_id}`;
}

/** As for usage that comes now; of a month that has not begun nothing was used. */
function assertMonth(
  prefix: Prefix,
  { billing_month }: Body<"adjustment">,
  { usage_month }: AdjustmentLine,
  at: string,
): void {
  if (usage_month > monthOf(at)) throw new Problem("not-billable-usage");
  const next = prefix.postingMonth(usage_month);
  if (billing_month !== next) throw new Problem("months-in-order", { next });
}

/** Names what the line named that it takes back, and is of the other sign and no larger. */
function assertReversal(
  { credit_run }: Body<"adjustment">,
  line: AdjustmentLine,
  i: number,
  stands: StandingLine | undefined,
): void {
  if (stands === undefined) throw new Problem("not-found");
  if (stands.reversed) throw new Problem("already-reversed");
  // A run is taken back as a whole, by another run.
  if ((stands.credit_run === "") !== (credit_run === "")) throw new Problem("part-of-credit-run");
  assertSame(stands, line, i, NAMED_BY_LINE);
  const left = stands.amount + parseSignedComputeMs(line.amount);
  const isWithin = stands.amount < 0n ? left <= 0n : left >= 0n;
  const isOpposite = stands.amount < 0n !== line.amount.startsWith("-");
  if (!(isWithin && isOpposite)) throw new Problem("exceeds-original");
}

type Named = "entry" | "namespace_id" | "project_id" | "usage_month";
const NAMED_BY_USAGE = ["namespace_id", "project_id", "usage_month"] as const;
const NAMED_BY_LINE = ["entry", ...NAMED_BY_USAGE] as const;

function assertSame<N extends Named>(
  original: Readonly<Record<N, string>>,
  line: AdjustmentLine,
  i: number,
  names: readonly N[],
): void {
  const other = names.find((name) => original[name] !== line[name]);
  if (other !== undefined) misshapen("adjustment", `lines.${i}.${other}`);
}
