/** A month's cut-off, what must have come before it, and its end (docs/months.md). */
import type { Body } from "../../src/core/entry.ts";
import type { Rules, Turn } from "../prefix/rule.ts";
import { inForceDuring, type Key, type State } from "../prefix/state.ts";
import { monthAfter } from "../rating.ts";

export const MONTH_RULES = {
  month_closing: close,
  month_closing_withdrawn: withdraw,
  month_closed: end,
} satisfies Rules;

const DAY_MS = 86_400_000;

function close(state: State, { month }: Body<"month_closing">, turn: Turn): void {
  const { closings, money } = state;
  const last = closings.at(-1);
  const follows = last === undefined || month === monthAfter(last.month);
  const over = `${monthAfter(month)}T00:00:00.000Z`;
  const detail = `${month} after ${last?.month ?? "none"}`;
  turn.expect(follows && turn.at >= over, "months-in-order", detail);
  const before = last === undefined ? money.firstPosted >= month : last.closed;
  const first = money.firstPosted === "" && last === undefined;
  turn.expect(before || first, "month-before", `before ${month}`);
  const billed = `${state.billingFrom.slice(0, 7)}-01`;
  const begins = last !== undefined || month >= billed || month === money.firstPosted;
  turn.expect(begins, "month-before", `${month}, billed from ${billed}`);
  for (const missing of missingAt(state, month, over))
    turn.expect(false, "month-not-ready", missing);
  closings.push({ index: turn.index, at: turn.at, month, closed: false });
}

/** What the prefix lacks for the month to be complete. */
function* missingAt(state: State, month: string, over: string): Generator<string> {
  const { breaks, conflicts, holds } = state.evidence;
  for (const [index, { finished_at }] of [...holds, ...conflicts]) {
    if (finished_at < over) yield `entry ${index} is open`;
  }
  for (const [index, open] of breaks) if (open.month <= month) yield `break ${index} is open`;
  // Of a month before anything was billed nobody owes anything.
  if (month.slice(0, 7) < state.billingFrom.slice(0, 7)) return;
  const start = `${month}T00:00:00.000Z`;
  const keys = [...state.keys.values()].filter((key) => isOwing(state, key, { start, over }));
  for (const key of keys) {
    const { attested, kid } = key;
    if (attested < over && !hasAccounted(key)) {
      yield `key ${kid} has attested nothing since ${over}`;
    }
  }
  yield* uncovered(state, keys, { start, over });
}

interface Month {
  start: string;
  over: string;
}

/** One that could speak of what the vendor's runners did in the month, whenever it was enrolled. */
function isOwing(state: State, { endedAt, enrolment }: Key, month: Month): boolean {
  const lived = endedAt === "" || endedAt >= month.start;
  return lived && spokenOf(state, enrolment, month).length > 0;
}

/** What the vendor's runners of an enrolment were in the month; any enrolment may say it. */
function spokenOf({ enrolments, runners }: State, enrolment: bigint, month: Month) {
  const uuids = new Set(enrolments.get(enrolment)?.runners.map(({ uuid }) => uuid));
  const lines = [...uuids].flatMap((uuid) => inForceDuring(runners.get(uuid), month));
  return lines.filter(({ tracking }) => tracking === "hosted");
}

/**
 * Of a key that has ended, that nothing more is to come but what persons have said what becomes of. Whoever revokes
 * one alone says nothing of what it has signed: only two do.
 */
function hasAccounted({ came, claimed, decided, end, excused, final }: Key): boolean {
  if (end === undefined || decided) return decided;
  if (final === undefined) {
    return excused !== undefined && excused >= came.last && excused >= claimed;
  }
  return claimed >= final || came.reach((excused ?? 0n) + 1n, final);
}

function* uncovered(state: State, keys: readonly Key[], month: Month): Generator<string> {
  const { start, over } = month;
  const begins = new Map<string, string>();
  for (const { enrolment } of keys) {
    for (const line of spokenOf(state, enrolment, month)) {
      const known = begins.get(line.runner_id) ?? line.effective_from;
      if (line.effective_from <= known) begins.set(line.runner_id, line.effective_from);
    }
  }
  for (const [runner, begin] of begins) {
    const from = begin > start ? begin : start;
    const spans = state.evidence.coverage.get(runner) ?? [];
    if (!spans.some((span) => span.from <= from && span.to >= over)) {
      yield `runner ${runner} is not covered from ${from} to ${over}`;
    }
  }
}

function withdraw({ closings }: State, { closing }: Body<"month_closing_withdrawn">, turn: Turn) {
  const last = closings.at(-1);
  const pinned = last?.index === BigInt(closing) && !last.closed;
  turn.expect(pinned, "months-in-order", `entry ${closing} is not the last closing, or is closed`);
  if (pinned) closings.pop();
}

function end({ closings, evidence, money }: State, body: Body<"month_closed">, turn: Turn): void {
  const last = closings.at(-1);
  const pinned = last?.index === BigInt(body.closing) && last.month === body.month && !last.closed;
  turn.expect(pinned, "month-closed", `entry ${body.closing} is no cut-off of ${body.month}`);
  const size = BigInt(body.size);
  const covered = size > BigInt(body.closing) && size <= turn.index;
  turn.expect(covered, "month-closed", `the checkpoint of ${size} entries`);
  const held = (body.anchor === "none") === (body.anchored_by.length === 0);
  turn.expect(held, "month-closed", `${body.anchor}, by ${body.anchored_by.length} outside`);
  if (last === undefined || !pinned) return;
  const over = Date.parse(monthAfter(body.month)) + Number(body.close_delay_days) * DAY_MS;
  const late = Date.parse(last.at) >= over;
  turn.expect(late, "month-closed", `cut off at ${last.at}, by ${body.close_delay_days} days`);
  for (const [index, { month }] of evidence.breaks) {
    const since = index > last.index && month <= body.month;
    turn.expect(!since, "month-not-ready", `break ${index} is open since the cut-off`);
  }
  last.closed = true;
  money.closed.push({ index: turn.index, closing: last, body });
}
