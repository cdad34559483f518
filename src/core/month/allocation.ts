/**
 * How a namespace's usage of a billing month is split (docs/months.md, "Allocation"): included, packs,
 * overage, absorbed, not billable. The terms are those that the quota has; sums are exact.
 *
 * Amounts are in units of 10⁻⁶ compute-milliseconds, and signed: what came late may take something back.
 */
import { MINUTE } from "../charge.ts";
import { type Quota, type QuotaFacts, quotaAt } from "../quota/quota.ts";
import { epochMs, instantText, nextMonth } from "../unit.ts";

/** What is posted to the billing month of one usage month, with its adjustments. */
export interface Posted {
  readonly usage_month: string;
  readonly billable: bigint;
  readonly not_billable: bigint;
}

/** By how much each part grew with the billing month: one line of an allocation. */
export interface Share {
  readonly usage_month: string;
  readonly usage: bigint;
  readonly included: bigint;
  /** By the index of the version that counts, in the order in which they were drawn. */
  readonly packs: readonly { readonly index: bigint; readonly drawn: bigint }[];
  readonly overage: bigint;
  /** Ran beyond what the limit lets be charged, its grace or the last moments above its cap: nobody is charged. */
  readonly absorbed: bigint;
  readonly not_billable: bigint;
}

export interface Allocating {
  /** As of the cut-off of `month`, which is the last of `closings`. */
  readonly facts: QuotaFacts;
  /** The billing month. */
  readonly month: string;
  readonly posted: readonly Posted[];
  /** By usage month: billable usage, with adjustments, that was posted to months before. */
  readonly earlier: ReadonlyMap<string, bigint>;
}

/** A line for each that is posted, in the order of usage months; each month once. */
export function allocate({ facts, month, posted, earlier }: Allocating): Share[] {
  const lines = [...posted].sort((a, b) => (a.usage_month < b.usage_month ? -1 : 1));
  return lines.map(({ usage_month, billable, not_billable }) => {
    const quota = quotaOfMonth(facts, usage_month);
    const packs = quota.packs.filter(({ drawn }) => drawn > 0n);
    const drawn = packs.reduce((sum, pack) => sum + pack.drawn, 0n);
    const isOwn = usage_month === month;
    // What packs were drawn for stood in the usage month's own line, and never moves.
    const stood = (earlier.get(usage_month) ?? 0n) - (isOwn ? 0n : drawn);
    const grown = (earlier.get(usage_month) ?? 0n) + billable - drawn;
    const [before, after] = [split(quota, stood), split(quota, grown)];
    return {
      usage_month,
      usage: billable + not_billable,
      included: after.included - before.included,
      packs: isOwn ? packs.map(({ index, drawn }) => ({ index, drawn })) : [],
      overage: after.overage - before.overage,
      absorbed: after.absorbed - before.absorbed,
      not_billable,
    };
  });
}

/** The quota that a month ended with. */
export function quotaOfMonth(facts: QuotaFacts, month: string): Quota {
  return quotaAt(facts, instantText(epochMs(`${nextMonth(month)}T00:00:00.000Z`) - 1));
}

/** A function of the sum alone, so that it does not matter in how many parts, or in which order, it came. */
function split(
  { limit, beyond, unlimited }: Quota,
  amount: bigint,
): Pick<Share, "included" | "overage" | "absorbed"> {
  if (amount <= 0n) return { included: 0n, overage: amount, absorbed: 0n };
  const minutes = (limit?.monthly_minutes ?? 0n) * MINUTE;
  const included = unlimited || amount < minutes ? amount : minutes;
  const rest = amount - included;
  if (beyond !== "bill") return { included, overage: 0n, absorbed: rest };
  const most = limit?.cap === undefined ? rest : limit.cap * MINUTE;
  const overage = rest < most ? rest : most;
  return { included, overage, absorbed: rest - overage };
}
