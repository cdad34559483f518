/** Where a month is cut off as of some size of its log, or as if it were. */
import type { Transaction } from "../../store/connect.ts";
import { readEntry } from "../../store/entries.ts";
import { type Head, readHeads } from "../../store/heads.ts";
import { type CommonFacts, readCommon } from "../quota/facts.ts";

export interface CutOff {
  month: string;
  /** Entries from there on do not count. */
  index: bigint;
  common: CommonFacts;
  /** As of which facts are to be read. */
  head: Pick<Head, "at" | "size">;
}

/**
 * By entries 0 … asOf−1 alone: at the index of the cut-off that stands there, else at `asOf`, as if it were cut
 * off there now.
 */
export async function cutOffAt(
  tx: Transaction,
  log: string,
  { month, asOf }: { month: string; asOf: bigint },
): Promise<CutOff> {
  const [now, heads] = await Promise.all([readCommon(tx, log), readHeads(tx, [log])]);
  const head = heads.get(log);
  if (head === undefined) throw new Error("cut-off: no such log");
  const stands = now.closings.find((closing) => closing.month === month);
  // Nothing is posted to it, or to a month before, from there on: what is folded of them is what it was then.
  if (stands !== undefined && stands.index <= asOf) {
    return { month, index: stands.index, common: now, head };
  }
  const common = await readCommon(tx, log, asOf);
  const { at } = await readEntry(tx, log, asOf - 1n);
  const then = { month, head: { at, size: asOf } };
  // The first one of a log cuts off all months before it, too.
  const cut = common.closings.find((closing) => closing.month >= month);
  if (cut !== undefined) {
    return { ...then, index: cut.month === month ? cut.index : asOf, common };
  }
  const closings = [...common.closings, { index: asOf, month }];
  return { ...then, index: asOf, common: { ...common, closings } };
}
