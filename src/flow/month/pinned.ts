/** A cut-off that stands: what it was seen by, and what has come up since. */
import type { EntryOf } from "../../core/entry.ts";
import type { Closing } from "../../core/month.ts";
import type { Prefix } from "../../core/prefix.ts";
import { readOpenBreaks } from "../../store/breaks.ts";
import type { Transaction } from "../../store/connect.ts";
import { readEntry } from "../../store/entries.ts";
import { decodedAs } from "../usage/show.ts";
import { type Condition, conditions, missingIn } from "./conditions.ts";
import { matching } from "./matching.ts";
import { prefixAt, readStanding } from "./standing.ts";

export interface Pinned {
  closing: EntryOf<"month_closing">;
  /** Of the entries up to it. */
  prefix: Prefix;
  before: Closing | undefined;
  conditions: readonly Condition[];
}

/** All that held when a month was cut off, or did not, is asked again by the entries before. */
export async function readPinned(
  tx: Transaction,
  log: string,
  { index, closeDelayDays }: { index: bigint; closeDelayDays: bigint },
): Promise<Pinned> {
  const closing = decodedAs("month_closing", (await readEntry(tx, log, index)).bytes);
  const prefix = await prefixAt(tx, log, index);
  const { closings } = await readStanding(tx, log);
  const before = closings.findLast((each) => each.index < index);
  const { at, body } = closing;
  const place = { month: body.month, below: index, at, prefix, before };
  const seen = await conditions({ tx, log, closeDelayDays, ...place });
  return { closing, prefix, before, conditions: seen };
}

const LAST = 2n ** 63n - 1n;

/** What keeps a month that is cut off from being closed, for reasons that came after its cut-off. */
export async function missingSince(
  tx: Transaction,
  log: string,
  { index, month }: Closing,
): Promise<string[]> {
  const open = await readOpenBreaks(tx, log, LAST, month);
  const since = open.filter((each) => each.index > index);
  const [first] = since;
  const late =
    first === undefined
      ? []
      : [`breaks: ${since.length} opened since the cut-off, the first is entry ${first.index}`];
  return [...late, ...missingIn([await matching(tx, { log, month })])];
}
