/**
 * Closes a month that is cut off, for ever: as soon as its checkpoint is where it has to be, an entry says
 * what the month is, and its rows and its statement are written. Any process may do any step, and again.
 */
import type { Closing } from "../../core/month.ts";
import { Problem } from "../../core/problem.ts";
import { readEntry } from "../../store/entries.ts";
import { readHead } from "../../store/heads.ts";
import { readMonthEnds, readStatement } from "../../store/month-ends.ts";
import { readWatermark } from "../../store/watermarks.ts";
import type { Random } from "../clock.ts";
import { type ClosingSet, closingSet } from "../export/closing-set.ts";
import type { Anchoring } from "../log/anchor.ts";
import type { Appender } from "../log/append.ts";
import { salt } from "../log/chain.ts";
import type { Receipt } from "../log/commit-entry.ts";
import { snapshot } from "../usage/show.ts";
import { missingIn } from "./conditions.ts";
import { type Counted, countMonth, digestShown, figuresFrom } from "./count.ts";
import { missingSince, readPinned } from "./pinned.ts";
import { writeRows } from "./rows.ts";
import { settledAt } from "./settled.ts";
import { pinnedIn, readStanding } from "./standing.ts";
import { draftOf, stateAt } from "./statement.ts";

export interface Finishing extends Anchoring {
  appender: Appender;
  random: Random;
  closeDelayDays: bigint;
}

/** `month_closed` of the service itself. */
const SERVICE = "service";

export interface Finished {
  month: string;
  /** Absent while it has to wait, for what `missing` says. */
  receipt?: Receipt;
  /** With the receipt: its files, as they were made for the entry. */
  exports?: ClosingSet;
  missing: readonly string[];
}

/**
 * The log's month that is cut off, if one is; and the rows of those that have none yet.
 *
 * @param by opaque id of the principal who asks; the service itself, if absent
 * @throws Problem `not-found`, `busy` and what an appender throws; ArchiveError `archive-unavailable`
 */
export async function finish(
  finishing: Finishing,
  log: string,
  by: string = SERVICE,
): Promise<Finished | undefined> {
  const { sql } = finishing;
  const standing = await snapshot(sql, (tx) => readStanding(tx, log));
  const pinned = pinnedIn(standing);
  const finished = pinned && (await closeFor(finishing, { log, by }, pinned));
  for (const end of await readMonthEnds(sql, log)) {
    const { closing, month } = end;
    if ((await readStatement(sql, log, month)) !== undefined) continue;
    // Made for this very entry a moment ago, or made anew: of what was closed at another time, rows may not differ.
    const made = closing === pinned?.index ? finished?.exports : undefined;
    await writeRows(sql, log, end, made ?? (await closingSet(sql, { log, month, closing })));
  }
  return finished;
}

/**
 * The entry that closed this month, whoever wrote it: a loop may have been faster.
 *
 * @throws Problem `month-not-ready` with what it waits for, `months-in-order` for a month that is not cut off,
 *   and as `finish`
 */
export async function finishMonth(
  finishing: Finishing,
  { log, month }: { log: string; month: string },
  by: string,
): Promise<Receipt> {
  const finished = await finish(finishing, log, by);
  if (finished?.month === month && finished.receipt === undefined) {
    throw new Problem("month-not-ready", { missing: finished.missing });
  }
  const end = (await readMonthEnds(finishing.sql, log)).find((each) => each.month === month);
  if (end === undefined) throw new Problem("months-in-order");
  const { index, leaf, at } = await readEntry(finishing.sql, log, end.index);
  return { index, leaf, at, written: false };
}

/** Writes `month_closed`, or says what it waits for. */
async function closeFor(
  finishing: Finishing,
  { log, by }: { log: string; by: string },
  pinned: Closing,
): Promise<Finished> {
  const { sql, appender, random, closeDelayDays } = finishing;
  const { index, month } = pinned;
  const unmet = await unmetBy(finishing, log, pinned);
  if (unmet.length > 0) return { month, missing: unmet };
  const covering = index + 1n;
  const settled = await settledAt(finishing, log, covering);
  if (typeof settled === "string") return { month, missing: [settled] };
  const folded = await readWatermark(sql, log);
  if (folded === undefined || folded.size < covering) {
    return { month, missing: [`rollups: they reach ${folded?.size ?? 0n} of ${covering} entries`] };
  }
  const counted = await countedAs(finishing, { log, month, closing: index });
  if (typeof counted === "string") return { month, missing: [counted] };
  const exports = await closingSet(sql, { log, month, closing: index });
  const place = { closing: String(index), month, close_delay_days: String(closeDelayDays) };
  const said = { ...figuresFrom(counted), ...settled, ...place, exports };
  const draft = await snapshot(sql, (tx) => draftOf({ tx, log, body: said, counted }));
  if (typeof draft === "string") return { month, missing: [draft] };
  const body = { ...said, by, salt: salt(random) };
  const receipt = await appender.control(log, "month_closed", async (prefix, at, tx) => {
    const ends = await readMonthEnds(tx, log);
    const end = ends.find(({ closing }) => closing === index);
    if (end !== undefined) return end.index;
    if (prefix.lastClosing?.index !== index) throw new Problem("months-in-order");
    const missing = await missingSince(tx, log, pinned);
    if (missing.length > 0) throw new Problem("month-not-ready", { missing });
    const head = await readHead(tx, log);
    if (head === undefined) throw new Problem("not-found");
    return { ...body, statement_sha256: stateAt(draft, { at, index: head.size }).sha256 };
  });
  return { month, receipt, exports, missing: [] };
}

/**
 * By the days of delay that are to be said of the month, and by what came up since: where anything is missing, it
 * has to end, or the cut-off to be withdrawn.
 */
async function unmetBy(
  { sql, closeDelayDays }: Finishing,
  log: string,
  pinned: Closing,
): Promise<string[]> {
  return await snapshot(sql, async (tx) => {
    const { index } = pinned;
    const { conditions } = await readPinned(tx, log, { index, closeDelayDays });
    return [...missingIn(conditions), ...(await missingSince(tx, log, pinned))];
  });
}

/** A string: the views show something else. */
async function countedAs(
  { sql }: Finishing,
  of: { log: string; month: string; closing: bigint },
): Promise<Counted | string> {
  const counted = await snapshot(sql, (tx) => countMonth({ tx, ...of }));
  const shown = await digestShown(sql, of.log, of.month);
  if (shown !== counted.rollups.sha256) return "rollups: they are not equal to a recount";
  return counted;
}
