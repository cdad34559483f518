/** Which months of a log are cut off, and which of those are closed for ever. */
import type { Closing } from "../../core/month.ts";
import type { Prefix } from "../../core/prefix.ts";
import type { Transaction } from "../../store/connect.ts";
import { type MonthEnd, readMonthEnds } from "../../store/month-ends.ts";
import { catchUp, recall } from "../log/recall.ts";
import { readCommon } from "../quota/facts.ts";

export interface StandingMonths {
  /** Cut-offs that were not withdrawn, oldest first. */
  closings: readonly Closing[];
  ends: readonly MonthEnd[];
}

export async function readStanding(tx: Transaction, log: string): Promise<StandingMonths> {
  const [{ closings }, ends] = await Promise.all([readCommon(tx, log), readMonthEnds(tx, log)]);
  return { closings, ends };
}

/** The month that is cut off and not closed yet. */
export function pinnedIn({ closings, ends }: StandingMonths): Closing | undefined {
  const last = closings.at(-1);
  return ends.some(({ closing }) => closing === last?.index) ? undefined : last;
}

/** The prefix of entries 0 … index, of which the last is of a control kind. */
export async function prefixAt(tx: Transaction, log: string, index: bigint): Promise<Prefix> {
  const prefix = await recall(tx, log);
  await catchUp(tx, prefix, index);
  return prefix;
}
