/** What consumers of the feed acknowledged: counted again, and held against what stands behind it (docs/feed.md). */
import { breakBody } from "../../core/break.ts";
import { type Body, decodeEntry, type Entry, type EntryOf } from "../../core/entry.ts";
import { FEED_CONSUMERS_MAX } from "../../core/evidence.ts";
import { compared, type Judged, judgeAck, monthsAtStake } from "../../core/feed/acknowledgement.ts";
import { canonical } from "../../core/json.ts";
import type { Sql } from "../../store/connect.ts";
import { readEntries } from "../../store/entries.ts";
import {
  countConsumers,
  readAckBefore,
  readNewestAck,
  readPortalBreaks,
} from "../../store/feed-acks.ts";
import { standing } from "../control/standing.ts";
import { countFed } from "../feed/count.ts";
import { healedBy } from "../reconcile/open.ts";
import { decodedAs } from "../usage/show.ts";
import type { Misjudged } from "./event.ts";

type Ack = EntryOf<"feed_ack">;

/** Of one log, asked of its entries in turn. The rows that are read here were compared with their entries already. */
export class FeedRules {
  readonly #sql: Sql;
  /** Where the last entry stands that follows from the newest acknowledgement: each is judged once. */
  #last: bigint | undefined;

  constructor(sql: Sql) {
    this.#sql = sql;
  }

  async *judge(entry: Entry): AsyncGenerator<Misjudged> {
    const sql = this.#sql;
    if (entry.kind === "feed_ack") {
      yield* figures(entry, sql);
      const expected = bodiesOf(entry, await judged(entry, sql));
      this.#last = entry.index + BigInt(expected.length);
      yield* behind(entry, expected, sql);
    } else if (await isOfPortal(entry, sql)) {
      this.#last ??= await lastBehind(entry, sql);
      // Nobody but a consumer says that it differs, or no longer does.
      if (entry.index > this.#last) yield ["an acknowledgement that it follows from", entry.kind];
    }
  }
}

async function* figures({ body, index, log }: Ack, sql: Sql): AsyncGenerator<Misjudged> {
  const { by, consumer, months, up_to } = body;
  const found = await readNewestAck(sql, log, consumer, index);
  const before = found && decodedAs("feed_ack", found.bytes).body;
  if (before === undefined) {
    const names = await countConsumers(sql, log, index);
    if (names >= FEED_CONSUMERS_MAX) yield [`${FEED_CONSUMERS_MAX} consumers`, consumer];
  } else if (before.by !== by) yield [`by ${before.by}`, `by ${by}`];
  const least = before?.up_to ?? "0";
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
async function* behind(
  { index, log }: Ack,
  expected: readonly Follower[],
  sql: Sql,
): AsyncGenerator<Misjudged> {
  const found = await readEntries(sql, log, index + 1n, index + 1n + BigInt(expected.length));
  for (const [i, body] of expected.entries()) {
    const entry = decodeEntry(found[i]?.bytes ?? new Uint8Array());
    const stands = typeof entry === "string" ? {} : { ...entry.body, salt: "" };
    if (canonical(stands) !== canonical(body)) yield [canonical(body), canonical(stands)];
  }
}

/** Of the newest acknowledgement before an entry, where a walk began behind it. */
async function lastBehind({ index, log }: Entry, sql: Sql): Promise<bigint> {
  const found = await readAckBefore(sql, log, index);
  if (found === undefined) return -1n;
  const ack = decodedAs("feed_ack", found.bytes);
  return ack.index + BigInt(bodiesOf(ack, await judged(ack, sql)).length);
}

async function judged({ body, index, log }: Ack, sql: Sql): Promise<Judged> {
  const { consumer, months } = body;
  const before = await readNewestAck(sql, log, consumer, index);
  const last = before && decodedAs("feed_ack", before.bytes).body;
  const then = last?.months ?? [];
  const asked = { consumer, months: monthsAtStake(months, then), below: index };
  return judgeAck(index, months, then, await readPortalBreaks(sql, log, asked));
}

type Follower = Body<"break"> | Body<"break_resolved">;

/** Without salt. */
function bodiesOf({ index }: Ack, { ended, opened }: Judged): Follower[] {
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
