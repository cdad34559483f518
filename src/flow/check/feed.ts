/** What consumers of the feed acknowledged: counted again, and held against what stands behind it (docs/feed.md). */
import { breakBody } from "../../core/break.ts";
import { type Body, decodeEntry, type Entry, type EntryOf } from "../../core/entry.ts";
import { compared, type Judged, judgeAck } from "../../core/feed/acknowledgement.ts";
import { canonical } from "../../core/json.ts";
import type { Sql } from "../../store/connect.ts";
import { readEntries } from "../../store/entries.ts";
import { readAckBefore, readNewestAck, readPortalBreaks } from "../../store/feed-acks.ts";
import { standing } from "../control/standing.ts";
import { countFed } from "../feed/count.ts";
import { healedBy } from "../reconcile/open.ts";
import { decodedAs } from "../usage/show.ts";
import type { Misjudged } from "./event.ts";

type Ack = EntryOf<"feed_ack">;

/** The rows that are read here were compared with their entries already. */
export async function* feedRules(entry: Entry, sql: Sql): AsyncGenerator<Misjudged> {
  if (entry.kind === "feed_ack") {
    yield* figures(entry, sql);
    yield* behind(entry, sql);
  } else if (await isOfPortal(entry, sql)) yield* placed(entry, sql);
}

async function* figures({ body, index, log }: Ack, sql: Sql): AsyncGenerator<Misjudged> {
  const { consumer, months, up_to } = body;
  const before = await readNewestAck(sql, log, consumer, index);
  const least = before === undefined ? "0" : decodedAs("feed_ack", before.bytes).body.up_to;
  if (BigInt(up_to) < BigInt(least)) yield [`up_to ${least} or more`, `up_to ${up_to}`];
  if (BigInt(up_to) > index) {
    yield [`up_to ${index} or less`, `up_to ${up_to}`];
    return;
  }
  const expected = compared(months, await countFed(sql, log, BigInt(up_to), index));
  for (const [i, month] of expected.entries()) {
    const [counted, stands] = [canonical(month), canonical(months[i] ?? {})];
    if (counted !== stands) yield [counted, stands];
  }
}

/** Every end and every break that follows from it, and in their order. */
async function* behind(ack: Ack, sql: Sql): AsyncGenerator<Misjudged> {
  const { index, log } = ack;
  const expected = bodiesOf(ack, await judged(ack, sql));
  const found = await readEntries(sql, log, index + 1n, index + 1n + BigInt(expected.length));
  for (const [i, body] of expected.entries()) {
    const entry = decodeEntry(found[i]?.bytes ?? new Uint8Array());
    const stands = typeof entry === "string" ? {} : { ...entry.body, salt: "" };
    if (canonical(stands) !== canonical(body)) yield [canonical(body), canonical(stands)];
  }
}

/** Nobody but a consumer says that it differs, or no longer does. */
async function* placed({ index, kind, log }: Entry, sql: Sql): AsyncGenerator<Misjudged> {
  const found = await readAckBefore(sql, log, index);
  const ack = found && decodedAs("feed_ack", found.bytes);
  const count = ack === undefined ? 0 : bodiesOf(ack, await judged(ack, sql)).length;
  const last = (ack?.index ?? 0n) + BigInt(count);
  if (index > last) yield ["an acknowledgement that it follows from", kind];
}

async function judged({ body, index, log }: Ack, sql: Sql): Promise<Judged> {
  const { consumer, months } = body;
  const before = await readNewestAck(sql, log, consumer, index);
  const last = before && decodedAs("feed_ack", before.bytes).body;
  const stands = await readPortalBreaks(sql, log, consumer, index);
  return judgeAck(index, months, last?.months ?? [], stands);
}

/** Without salt. */
function bodiesOf(
  { index }: Ack,
  { ended, opened }: Judged,
): (Body<"break"> | Body<"break_resolved">)[] {
  return [
    ...ended.map((each) => healedBy(each, index, "")),
    ...opened.map((finding) => breakBody(finding, "")),
  ];
}

async function isOfPortal({ body, kind, log }: Entry, sql: Sql): Promise<boolean> {
  if (kind === "break") return body.code === "portal-difference";
  if (kind !== "break_resolved" || body.outcome !== "healed") return false;
  const broken = await standing(sql, log, "break", BigInt(body.break));
  return broken?.body.code === "portal-difference";
}
