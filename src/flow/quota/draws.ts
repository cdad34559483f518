/** A namespace's limit and packs, and how the packs came to be drawn, month by month. */
import { MINUTE } from "../../core/charge.ts";
import {
  type DrawnPack,
  type LimitFact,
  type Quota,
  type QuotaFacts,
  quotaAt,
} from "../../core/quota/quota.ts";
import { epochMs, instantText, nextMonth } from "../../core/unit.ts";
import { type Amount, amountOf } from "./amount.ts";

export interface QuotaLimit {
  index: string;
  effective_from: string;
  monthly_minutes: string;
  amount: Amount;
  /** Absent: none. */
  cap_minutes?: string;
  grace_minutes: string;
}

export interface QuotaPack {
  /** Of the version that counts. */
  index: string;
  source: string;
  pack_id: string;
  minutes: string;
  expires_in: string;
  /** By month, oldest first, the current one last; months without a draw are left out. */
  draws: (Amount & { month: string })[];
  /** When the month began: what it adds to what is available. */
  undrawn: Amount;
  /** Now. */
  left: Amount;
}

/** `over` is what was used beyond the limit that the month ended with. */
export interface EarlierMonth {
  month: string;
  /** Index of the entry; absent: there was none. */
  limit?: string;
  limit_minutes: string;
  used: Amount;
  over: Amount;
}

export function limitOf(limit: LimitFact): QuotaLimit {
  return {
    index: String(limit.index),
    effective_from: limit.effective_from,
    monthly_minutes: String(limit.monthly_minutes),
    amount: amountOf(limit.monthly_minutes * MINUTE),
    ...(limit.cap !== undefined && { cap_minutes: String(limit.cap) }),
    grace_minutes: String(limit.grace_minutes),
  };
}

/** Only those of months of use can have drawn on a pack, and only those that did are told. */
export function earlierMonths(
  facts: QuotaFacts,
  { month, packs }: Pick<Quota, "month" | "packs">,
): Quota[] {
  const names = new Set(packs.map(({ pack }) => pack));
  return [...facts.used.keys()]
    .filter((used) => used < month)
    .sort()
    .map((used) => quotaAt(facts, instantText(startOf(nextMonth(used)) - 1)))
    .filter((quota) => quota.packs.some(({ pack, drawn }) => drawn > 0n && names.has(pack)));
}

export function earlierMonth({ month, limit, used }: Quota): EarlierMonth {
  const minutes = limit?.monthly_minutes ?? 0n;
  return {
    month,
    ...(limit && { limit: String(limit.index) }),
    limit_minutes: String(minutes),
    used: amountOf(used),
    over: amountOf(used - minutes * MINUTE),
  };
}

export function packOf(pack: DrawnPack, month: string, earlier: readonly Quota[]): QuotaPack {
  const [source = "", pack_id = ""] = pack.pack.split("\n");
  const before = earlier.flatMap((quota) => {
    const same = quota.packs.find((other) => other.pack === pack.pack);
    return same === undefined ? [] : [{ month: quota.month, drawn: same.drawn }];
  });
  // Made smaller than what is drawn, it has nothing left and owes nothing.
  const undrawn = pack.drawnBefore < pack.capacity ? pack.capacity - pack.drawnBefore : 0n;
  return {
    index: String(pack.index),
    source,
    pack_id,
    minutes: String(pack.minutes),
    expires_in: pack.expires_in,
    draws: [...before, { month, drawn: pack.drawn }]
      .filter(({ drawn }) => drawn > 0n)
      .map((draw) => ({ month: draw.month, ...amountOf(draw.drawn) })),
    undrawn: amountOf(undrawn),
    left: amountOf(undrawn - pack.drawn),
  };
}

/** Epoch milliseconds of its first instant. */
export function startOf(month: string): number {
  return epochMs(`${month}T00:00:00.000Z`);
}
