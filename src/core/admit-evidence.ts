/** The rules of `admit` for what others saw and what controls did: about what is over, and of one piece. */
import type { Rule } from "./admit.ts";
import { FEED_DIFFERING_MAX } from "./evidence.ts";
import { differencesIn } from "./feed/acknowledgement.ts";
import { SERVICE } from "./healing.ts";
import { misshapen, Problem } from "./problem.ts";
import { monthOf } from "./unit.ts";

const dayOf = (at: string): string => at.slice(0, "YYYY-MM-DD".length);

/** A list of what was done until a moment that has not come would not be all of it. */
const coverage: Rule<"coverage"> = (_, { from, to }, at) => {
  if (from >= to || to > at) misshapen("coverage", "to");
};

/** Whether the entry that it names shows it those say who see the entries before (flow/reconcile/end.ts). */
const breakResolved: Rule<"break_resolved"> = (_, { by, evidence, outcome }) => {
  if (outcome !== "healed") return;
  if (evidence === "") misshapen("break_resolved", "evidence");
  // No person heals anything: what they decide is `accepted` or `corrected`.
  if (by !== SERVICE) misshapen("break_resolved", "by");
};

const sourceCount: Rule<"source_count"> = (_, { day }, at) => {
  if (day > dayOf(at)) misshapen("source_count", "day");
};

/** What the entries before say of its figures and its consumer, those ask who see them (flow/feed/acknowledge.ts). */
const feedAck: Rule<"feed_ack"> = (prefix, { months }, at) => {
  for (const [i, { billing_month, counted_events }] of months.entries()) {
    const before = months[i - 1]?.billing_month ?? "";
    if (billing_month <= before) misshapen("feed_ack", `months.${i}.billing_month`);
    // A clock that is within its skew may have brought events of the next month.
    const isBilled = billing_month <= monthOf(at) && billing_month >= monthOf(prefix.billingFrom);
    if (!isBilled && counted_events === "0") throw new Problem("unknown-month", { billing_month });
  }
  if (differencesIn(months).size > FEED_DIFFERING_MAX) throw new Problem("too-many-differ");
};

/** Rows may still come to a day that is not over. */
const accessDigest: Rule<"access_digest"> = (_, { day, lines }, at) => {
  if (day >= dayOf(at)) misshapen("access_digest", "day");
  if (lines === "0") misshapen("access_digest", "lines");
};

const accessReview: Rule<"access_review"> = (_, { from, kept, principals, to }, at) => {
  if (from > to || to > dayOf(at)) misshapen("access_review", "to");
  if (BigInt(kept) > BigInt(principals)) misshapen("access_review", "kept");
};

const verification: Rule<"verification"> = (_, { day, findings, from, outcome, to }, at) => {
  if (day > dayOf(at)) misshapen("verification", "day");
  const [first, end] = [BigInt(from), BigInt(to)];
  if (outcome === "nothing" ? first !== end : first >= end) misshapen("verification", "to");
  if ((outcome === "failed") !== (findings !== "0")) misshapen("verification", "findings");
};

export const EVIDENCE_RULES = {
  coverage,
  break_resolved: breakResolved,
  source_count: sourceCount,
  feed_ack: feedAck,
  access_digest: accessDigest,
  access_review: accessReview,
  verification,
} as const;
