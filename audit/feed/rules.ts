/** Acknowledgements of the feed, and the breaks that they open and end (docs/feed.md, "Exactly"). */
import type { Body } from "../../src/core/entry.ts";
import { canonical } from "../../src/core/json.ts";
import { encodeBase64, encodeUtf8 } from "../../src/core/text.ts";
import type { ReadEntry } from "../archive/block.ts";
import type { Findings } from "../finding.ts";
import type { Turn } from "../prefix/rule.ts";
import type { State } from "../prefix/state.ts";
import { micro, writeMicro } from "../tally/record.ts";
import type { Consumer, Differing, Feed, Follower } from "./state.ts";

const CODE = "portal-difference";
const MICRO = 1_000_000n;
const INTEGER_MAX = 2n ** 63n - 1n;

/** Months of one acknowledgement that differ, and names by which a log is acknowledged: no more than these. */
const [DIFFERING_MAX, CONSUMERS_MAX] = [25, 100];

export function acknowledge(state: State, body: Body<"feed_ack">, turn: Turn): void {
  const { feed, tools } = state;
  const { consumer, months } = body;
  const upTo = BigInt(body.up_to);
  const before = feed.consumers.get(consumer);
  const onward = upTo <= turn.index && upTo >= (before?.upTo ?? 0n);
  turn.expect(onward, "feed-ack", `up to ${upTo}, after ${before?.upTo ?? 0n}`);
  const by = before?.by ?? body.by;
  turn.expect(body.by === by, "feed-ack", `${consumer} is ${by}'s`);
  const isName = before !== undefined || feed.consumers.size < CONSUMERS_MAX;
  turn.expect(isName, "feed-ack", `${consumer} is one too many`);
  judgeMonths(state, body, turn);
  const differing = new Map<string, Differing>();
  for (const said of months) {
    const [events, amount] = [BigInt(said.counted_events), micro(said.counted_compute_ms)];
    feed.counts.claim(said.billing_month, upTo, { events, amount, by: turn.index });
    const more = { events: BigInt(said.events) - events, amount: micro(said.compute_ms) - amount };
    if (more.events !== 0n || more.amount !== 0n) differing.set(said.billing_month, more);
  }
  turn.expect(differing.size <= DIFFERING_MAX, "feed-ack", `${differing.size} months differ`);
  const now: Consumer = { by, upTo, differing, breaks: before?.breaks ?? new Map() };
  feed.consumers.set(consumer, now);
  Object.assign(feed, { newest: now, index: turn.index });
  feed.due = followers(now, before, turn.index, (text) =>
    encodeBase64(tools.hash(encodeUtf8(text))),
  );
}

/** Each once, in their order: all that have an event, and no later one that has none. */
function judgeMonths(
  { billingFrom, feed: { counts } }: State,
  { months, up_to }: Body<"feed_ack">,
  turn: Turn,
): void {
  const listed = months.map((said) => said.billing_month);
  const ascend = listed.every((month, at) => at === 0 || (listed[at - 1] ?? "") < month);
  turn.expect(ascend, "feed-ack", "its months do not ascend");
  for (const [month, first] of counts.firsts) {
    const needed = first < BigInt(up_to) && !listed.includes(month);
    turn.expect(!needed, "feed-ack", `${month} has events, and is not listed`);
  }
  for (const { billing_month, counted_events } of months) {
    const isBilled =
      billing_month <= turn.at && billing_month.slice(0, 7) >= billingFrom.slice(0, 7);
    const isOne = isBilled || counted_events !== "0";
    turn.expect(isOne, "feed-ack", `${billing_month} has not begun, or is not billed`);
  }
}

/** First those that end, then those that open, each by month. */
function followers(
  { breaks, differing }: Consumer,
  before: Consumer | undefined,
  index: bigint,
  digest: (text: string) => string,
): Follower[] {
  const [ends, opens]: [Follower[], Follower[]] = [[], []];
  for (const month of [...new Set([...breaks.keys(), ...differing.keys()])].sort()) {
    const more = differing.get(month);
    const stands = breaks.get(month);
    const covered = stands?.stands === "open" || stands?.stands === "accepted";
    if (more && covered && isSame(more, before?.differing.get(month))) continue;
    if (stands?.stands === "open") ends.push(endOf(stands.index, index));
    if (more !== undefined) opens.push(openingOf(month, more, index, digest));
  }
  return [...ends, ...opens];
}

function isSame(a: Differing, b: Differing | undefined): boolean {
  return a.events === b?.events && a.amount === b.amount;
}

function endOf(index: bigint, by: bigint): Follower {
  const cause = { approval: "", by: "service", reason: "came", ticket: "none" };
  const body = { ...cause, break: String(index), evidence: String(by), outcome: "healed" } as const;
  return { kind: "break_resolved", body };
}

function openingOf(
  month: string,
  { amount, events }: Differing,
  by: bigint,
  digest: (text: string) => string,
): Follower {
  const tracking = "hosted";
  const about = { ack: String(by), billing_month: month };
  const nothing = { job_id: "", kid: "", namespace_id: "", runner_id: "", usage: "" };
  const body = {
    ...({ code: CODE, month, tracking, ...nothing } as const),
    detail: `events ${events}, compute_ms ${writeMicro(amount)}`,
    difference_ms: String(bounded(amount / MICRO)),
    fingerprint: digest(canonical({ about, code: CODE, tracking })),
  };
  return { kind: "break", body };
}

function bounded(ms: bigint): bigint {
  if (ms > INTEGER_MAX) return INTEGER_MAX;
  return ms < -INTEGER_MAX ? -INTEGER_MAX : ms;
}

/** Asked of every entry before its own rule: what is due stands here, and what is not due nowhere. */
export function judgeFollower({ feed }: State, entry: ReadEntry, turn: Turn): void {
  const due = feed.due.shift();
  const stands = due !== undefined && isFollower(entry, due);
  if (due !== undefined && !stands) {
    feed.due = [];
    turn.expect(false, "feed-break", `behind entry ${feed.index} a ${due.kind} is due`);
  }
  const { body, kind } = entry;
  if (kind === "break" && body.code === CODE) {
    turn.expect(stands, "feed-break", `no acknowledgement opens it: ${body.detail}`);
    note(feed, body.month, turn.index);
  }
  if (kind === "break_resolved") end(feed, body, stands, turn);
}

function note({ newest, open }: Feed, month: string, index: bigint): void {
  const opened = { index, stands: "open" } as const;
  newest?.breaks.set(month, opened);
  open.set(index, opened);
}

function end(feed: Feed, body: Body<"break_resolved">, isDue: boolean, turn: Turn): void {
  const index = BigInt(body.break);
  const ended = feed.open.get(index);
  if (ended === undefined) return;
  const decided = body.outcome !== "healed";
  turn.expect(isDue || decided, "feed-break", `no acknowledgement heals entry ${index}`);
  ended.stands = body.outcome === "accepted" ? "accepted" : "ended";
  feed.open.delete(index);
}

/** Letter by letter, but for its salt. */
function isFollower({ body, kind }: ReadEntry, due: Follower): boolean {
  if (kind !== due.kind) return false;
  const { salt: _, ...said } = body;
  return canonical(said) === canonical(due.body);
}

/** The log has ended before what its last acknowledgement needs behind it. */
export function missFollowers({ feed }: State, findings: Findings): void {
  const [due] = feed.due;
  if (due === undefined) return;
  findings.add(
    "feed-break",
    { index: feed.index },
    `behind it a ${due.kind} is due, and nothing stands`,
  );
}
