/** What is posted to a month of some namespaces, split by the terms that they have (core/month/allocation.ts). */
import { parseSignedComputeMs } from "../../core/charge.ts";
import { allocate, type Posted, type Share } from "../../core/month/allocation.ts";
import type { QuotaFacts } from "../../core/quota/quota.ts";
import type { Transaction } from "../../store/connect.ts";
import { readPostedBefore } from "../../store/month-figures.ts";
import { readWatermark } from "../../store/watermarks.ts";
import { type OwnFacts, readOwn, together } from "../quota/facts.ts";
import type { CutOff } from "./cut-off.ts";

/** Of one namespace; a usage month whose figure is not here is split another time. */
export interface Posting {
  namespace: string;
  posted: readonly Posted[];
}

export interface Split {
  own: OwnFacts;
  facts: QuotaFacts;
  /** One for each that is posted, in the order of usage months. */
  shares: Share[];
}

/** By namespace. */
export async function split(
  tx: Transaction,
  log: string,
  cutOff: CutOff,
  postings: readonly Posting[],
): Promise<Map<string, Split>> {
  if (postings.length === 0) return new Map();
  const { common, head, month } = cutOff;
  const known = await readOwn(
    tx,
    log,
    head,
    postings.map(({ namespace }) => namespace),
  );
  const earlier = await readEarlier(tx, log, cutOff, postings);
  return new Map(
    postings.map(({ namespace, posted }) => {
      const own = known.get(namespace);
      if (own === undefined) throw new Error("split: a namespace without facts");
      const facts = together(common, own);
      const before = earlier.get(namespace) ?? new Map();
      return [
        namespace,
        { own, facts, shares: allocate({ facts, month, posted, earlier: before }) },
      ];
    }),
  );
}

/** By namespace and usage month, of those that something came late for. */
async function readEarlier(
  tx: Transaction,
  log: string,
  { head, month }: CutOff,
  postings: readonly Posting[],
): Promise<Map<string, Map<string, bigint>>> {
  const late = postings.filter(({ posted }) => posted.some((each) => each.usage_month < month));
  const sums = new Map(late.map(({ namespace }) => [namespace, new Map<string, bigint>()]));
  if (late.length === 0) return sums;
  const folded = await readWatermark(tx, log);
  const tail = { from: folded?.size ?? 0n, to: head.size };
  for (const before of await readPostedBefore(tx, { log, month }, [...sums.keys()], tail)) {
    const { namespace_id, usage_month, amount } = before;
    sums.get(namespace_id)?.set(usage_month, parseSignedComputeMs(amount));
  }
  return sums;
}
