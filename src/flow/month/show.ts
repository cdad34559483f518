/** The months of a log, and one of them: where it stands, and what its closing waits for. */

import type { ConditionCode, Evidence } from "../../core/month/statement.ts";
import type { Closing } from "../../core/month.ts";
import { Problem } from "../../core/problem.ts";
import { instantText, nextMonth } from "../../core/unit.ts";
import type { Transaction } from "../../store/connect.ts";
import { readEntry } from "../../store/entries.ts";
import { readHeads } from "../../store/heads.ts";
import { listLogs } from "../../store/logs.ts";
import { readPostedMonths } from "../../store/month-ends.ts";
import type { Clock } from "../clock.ts";
import { laterOf } from "../log/held.ts";
import { recall } from "../log/recall.ts";
import { type AsOf, asOf, decodedAs, type Showing, snapshot } from "../usage/show.ts";
import { type UsageAnswer, usage } from "../usage/usage.ts";
import { type Condition, conditions } from "./conditions.ts";
import { matching } from "./matching.ts";
import { prefixAt, readStanding, type StandingMonths } from "./standing.ts";

/** `cut_off`: by an entry that can still be withdrawn. */
export type MonthState = "open" | "cut_off" | "closed";

export interface ShownMonth {
  month: string;
  state: MonthState;
  /** Index of the cut-off. */
  closing?: string;
  /** Index of `month_closed`. */
  closed?: string;
}

export interface ShownCondition {
  code: ConditionCode | "matching";
  holds: boolean;
  evidence: Evidence;
  missing?: string;
}

export interface MonthDetail extends ShownMonth {
  log: string;
  /** As of its cut-off, or else of the whole log; `matching` of now, until the month is closed. */
  preconditions: ShownCondition[];
  /** By tracking, as rollups have it. */
  usage: UsageAnswer;
}

export interface ShowingMonths extends Showing {
  clock: Clock;
  closeDelayDays: bigint;
}

/** Those that anything is posted to, or that are cut off. @throws Problem `not-found` */
export async function showMonths(
  { sql }: Showing,
  log: string,
): Promise<AsOf & { months: ShownMonth[] }> {
  return await snapshot(sql, async (tx) => {
    const [listed] = await listLogs(tx, log);
    if (listed === undefined) throw new Problem("not-found");
    const standing = await readStanding(tx, log);
    const posted = await readPostedMonths(tx, log);
    const names = new Set([...posted, ...standing.closings.map(({ month }) => month)]);
    const months = [...names].sort().map((month) => shownMonth(standing, month));
    return { ...asOf(listed), months };
  });
}

/** @throws Problem `not-found` for a log that there is not */
export async function showMonth(
  { sql, clock, closeDelayDays }: ShowingMonths,
  { log, month }: { log: string; month: string },
): Promise<MonthDetail> {
  const shown = await snapshot(sql, async (tx) => {
    const head = (await readHeads(tx, [log])).get(log);
    if (head === undefined) throw new Problem("not-found");
    const standing = await readStanding(tx, log);
    const cutOff = standing.closings.find((closing) => closing.month === month);
    const before = standing.closings.findLast((each) => each !== cutOff && each.month < month);
    const place =
      cutOff === undefined
        ? { below: head.size, at: laterOf(instantText(clock.now()), head.at) }
        : await placeOf(tx, log, cutOff);
    const prefix = await prefixUpTo(tx, log, cutOff?.index ?? head.controlIndex);
    const found = await conditions({ tx, log, month, prefix, before, closeDelayDays, ...place });
    const state = shownMonth(standing, month);
    const beside = state.closed === undefined ? [await matching(tx, { log, month })] : [];
    return { ...state, preconditions: [...found, ...beside].map(shownCondition) };
  });
  const months = { from: month, to: nextMonth(month) };
  return {
    log,
    ...shown,
    usage: await usage({ sql, clock }, { log, group: ["tracking"], ...months }),
  };
}

async function prefixUpTo(tx: Transaction, log: string, index: bigint) {
  return index < 0n ? await recall(tx, log) : await prefixAt(tx, log, index);
}

async function placeOf(tx: Transaction, log: string, { index }: Closing) {
  const { bytes } = await readEntry(tx, log, index);
  return { below: index, at: decodedAs("month_closing", bytes).at };
}

export function shownMonth({ closings, ends }: StandingMonths, month: string): ShownMonth {
  const cutOff = closings.find((closing) => closing.month === month);
  const end = ends.find((each) => each.month === month);
  return {
    month,
    state: end !== undefined ? "closed" : cutOff !== undefined ? "cut_off" : "open",
    ...(cutOff !== undefined && { closing: String(cutOff.index) }),
    ...(end !== undefined && { closed: String(end.index) }),
  };
}

function shownCondition({
  code,
  evidence,
  missing,
}: Condition<ShownCondition["code"]>): ShownCondition {
  const holds = missing === undefined;
  return { code, holds, evidence, ...(missing !== undefined && { missing }) };
}
