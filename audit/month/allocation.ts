/**
 * A namespace's usage of a billing month, split (docs/months.md, "Allocation"). A second implementation:
 * each figure is what it stands at after the month, less what it stood at before.
 */
import type { Posting } from "../money/ledger.ts";
import { writeMicro } from "../tally/record.ts";
import { above, type Quota, type Terms } from "./quota.ts";

/** One line of an allocation. Amounts are texts with six decimals. */
export type AllocationLine = Record<
  "absorbed" | "included" | "not_billable" | "overage" | "usage" | "usage_month",
  string
> & { packs: { drawn: string; pack: string }[] };

interface Figures {
  included: bigint;
  overage: bigint;
  absorbed: bigint;
}

/** Draws packs for all that was used before a month: those of them that nobody has asked about yet. */
export function drawBefore(quota: Quota, month: string, postings: readonly Posting[]): void {
  const used = new Set(postings.map(({ usage_month }) => usage_month));
  for (const each of [...used].sort()) if (each < month) termsOf(quota, each, postings);
}

/** In the order of usage months. Months are asked about in their order, all that were used in turn. */
export function* allocate(
  quota: Quota,
  month: string,
  postings: readonly Posting[],
): Generator<AllocationLine> {
  const months = [...new Set(postings.map(({ usage_month }) => usage_month)), month];
  for (const used of [...new Set(months)].sort()) {
    if (used > month) break;
    const terms = termsOf(quota, used, postings);
    const own = postings.filter((p) => p.usage_month === used && p.billing_month === month);
    if (own.length === 0) continue;
    const before = netOf(postings, used, (billing) => billing < month);
    const after = netOf(postings, used, (billing) => billing <= month);
    // Packs were drawn with the month's own line: before that, nothing stood.
    const stood = split(terms, used === month ? 0n : before - drawnOf(terms));
    const stands = split(terms, after - drawnOf(terms));
    const tracked = own.reduce((sum, p) => sum + p.compute - p.billable, 0n);
    yield {
      absorbed: writeMicro(stands.absorbed - stood.absorbed),
      included: writeMicro(stands.included - stood.included),
      not_billable: writeMicro(tracked),
      overage: writeMicro(stands.overage - stood.overage),
      packs: used === month ? terms.drawn.map(packOf) : [],
      usage: writeMicro(after - before + tracked),
      usage_month: used,
    };
  }
}

function termsOf(quota: Quota, used: string, postings: readonly Posting[]): Terms {
  return quota.month(
    used,
    netOf(postings, used, (billing) => billing === used),
  );
}

function packOf({ amount, index }: Terms["drawn"][number]): AllocationLine["packs"][number] {
  return { drawn: writeMicro(amount), pack: String(index) };
}

function split({ cap, limit, unlimited }: Terms, amount: bigint): Figures {
  if (unlimited && amount > 0n) return { included: amount, overage: 0n, absorbed: 0n };
  const included = amount < limit ? above(amount) : limit;
  const rest = amount - included;
  const overage = cap !== undefined && cap < rest ? cap : rest;
  return { included, overage, absorbed: rest - overage };
}

function drawnOf({ drawn }: Terms): bigint {
  return drawn.reduce((sum, { amount }) => sum + amount, 0n);
}

/** Billable, with adjustments, of a usage month and some billing months. */
function netOf(
  postings: readonly Posting[],
  used: string,
  within: (billing: string) => boolean,
): bigint {
  return postings
    .filter(({ billing_month, usage_month }) => usage_month === used && within(billing_month))
    .reduce((sum, { adjustment, billable }) => sum + billable + adjustment, 0n);
}
