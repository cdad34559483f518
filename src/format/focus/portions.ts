/**
 * A line of the portal's file as the charges of FOCUS: one for each way in which minutes of it are paid for, or
 * are not, because no row of FOCUS may have two prices. What they have together is the line's gross and adjustment.
 *
 * Amounts are in units of 10⁻⁶ compute-milliseconds, and signed.
 */
import { parseSignedComputeMs } from "../../core/charge.ts";
import { type Row, TABLES } from "../../core/export/tables.ts";
import type { Pack, PackDeal } from "./packs.ts";

/** In the order in which a line is told. */
export const PORTIONS = [
  "included",
  "pack",
  "overage",
  "absorbed",
  "not_billable",
  "discount",
] as const;
export type Portion = (typeof PORTIONS)[number];

export interface Line {
  readonly account_id: string | null;
  readonly subscription_id: string | null;
  readonly namespace_id: string;
  /** `"0"`: none, of an adjustment. */
  readonly project_id: string;
  readonly machine_type: string | null;
  readonly tracking: string;
  readonly usage_month: string;
  readonly day: string | null;
  readonly jobs: bigint;
  readonly duration_ms: bigint;
  readonly adjustment: bigint;
  readonly amounts: Readonly<Record<Portion, bigint>>;
}

export interface Part {
  readonly portion: Portion;
  readonly amount: bigint;
  /** Of `pack` alone. */
  readonly pack?: Pack;
  /** How much of the line's duration falls to it. */
  readonly duration_ms: bigint;
}

const AT = new Map(TABLES.portal.map(({ name }, at) => [name, at]));

/** @param row of `portal`, as core/export/tables.ts has it */
export function lineOf(row: Row): Line {
  const cell = (name: string) => row[AT.get(name) ?? -1] ?? null;
  const amount = (name: string) => parseSignedComputeMs(cell(`${name}_compute_ms`) ?? "");
  return {
    account_id: cell("account_id"),
    subscription_id: cell("subscription_id"),
    namespace_id: cell("namespace_id") ?? "",
    project_id: cell("project_id") ?? "",
    machine_type: cell("machine_type"),
    tracking: cell("tracking") ?? "",
    usage_month: cell("usage_month") ?? "",
    day: cell("day"),
    jobs: BigInt(cell("jobs") ?? ""),
    duration_ms: BigInt(cell("duration_ms") ?? ""),
    adjustment: amount("adjustment"),
    amounts: {
      included: amount("included"),
      pack: amount("pack"),
      overage: amount("overage"),
      absorbed: amount("absorbed"),
      not_billable: amount("not_billable"),
      discount: amount("discount"),
    },
  };
}

/** What is nothing is left out, unless there were jobs and nothing else to say of them. */
export function partsOf(line: Line, packs: PackDeal): Part[] {
  const parts = PORTIONS.flatMap((portion): Omit<Part, "duration_ms">[] => {
    const amount = line.amounts[portion];
    if (portion === "pack") {
      return packs.deal(amount).map(({ pack, drawn }) => ({ portion, amount: drawn, pack }));
    }
    return amount === 0n ? [] : [{ portion, amount }];
  });
  if (parts.length > 0) return timed(parts, line.duration_ms);
  if (line.jobs === 0n) return [];
  // Of a factor of nothing.
  const portion = line.tracking === "hosted" ? "included" : "not_billable";
  return [{ portion, amount: 0n, duration_ms: line.duration_ms }];
}

/** The duration in proportion to the amounts, in whole milliseconds that add up; none to what takes back. */
function timed(parts: readonly Omit<Part, "duration_ms">[], duration: bigint): Part[] {
  const weights = parts.map(({ amount }) => (amount > 0n ? amount : 0n));
  const total = weights.reduce((sum, weight) => sum + weight, 0n);
  let [sum, dealt] = [0n, 0n];
  return parts.map((part, at) => {
    sum += weights[at] ?? 0n;
    const due = total === 0n ? duration : (duration * sum) / total;
    const duration_ms = due - dealt;
    dealt = due;
    return { ...part, duration_ms };
  });
}
