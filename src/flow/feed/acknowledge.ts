/** A consumer says what it has of the feed, and each month that differs becomes a break (docs/feed.md). */
import { z } from "zod";
import { breakBody } from "../../core/break.ts";
import type { Body } from "../../core/entry.ts";
import { FEED_MONTHS_MAX } from "../../core/evidence.ts";
import {
  type AckMonth,
  compared,
  differencesIn,
  judgeAck,
} from "../../core/feed/acknowledgement.ts";
import { canonical } from "../../core/json.ts";
import { Problem } from "../../core/problem.ts";
import { IntegerText, MonthText, NonEmptyText, SignedComputeMsText } from "../../core/unit.ts";
import type { Transaction } from "../../store/connect.ts";
import { readEntry } from "../../store/entries.ts";
import { readNewestAck, readPortalBreaks } from "../../store/feed-acks.ts";
import { listLogs } from "../../store/logs.ts";
import { salt } from "../log/chain.ts";
import type { Put, Receipt } from "../log/commit-entry.ts";
import { healedBy, type Opening } from "../reconcile/open.ts";
import { decodedAs } from "../usage/show.ts";
import { countFed } from "./count.ts";

const Stated = z.strictObject({
  billing_month: MonthText,
  compute_ms: SignedComputeMsText,
  events: IntegerText,
});

/** The consumer's own sums over the events of entries 0 … up_to−1. */
export const Acknowledgement = z.strictObject({
  consumer: NonEmptyText,
  months: z
    .array(Stated)
    .max(FEED_MONTHS_MAX)
    .refine((months) => isOnce(months.map(({ billing_month }) => billing_month))),
  up_to: IntegerText,
});
export type Acknowledgement = z.infer<typeof Acknowledgement>;

export interface Acknowledged extends Receipt {
  months: AckMonth[];
  /** Of which the consumer has something else. */
  differing: string[];
}

/**
 * Answered by the entry that stands if the consumer's newest says the same.
 *
 * @param by opaque id of the principal who asks
 * @throws Problem `not-found`, `ack-backwards`, `beyond-checkpoint`, `unknown-month`, and as an appender does
 */
export async function acknowledge(
  opening: Opening,
  { log, by }: { log: string; by: string },
  { consumer, months: stated, up_to }: Acknowledgement,
): Promise<Acknowledged> {
  const { appender, sql } = opening;
  const upTo = BigInt(up_to);
  const [listed] = await listLogs(sql, log);
  if (listed === undefined) throw new Problem("not-found");
  if (upTo > listed.sealed) throw new Problem("beyond-checkpoint");
  // Sealed entries stay as they are: nobody has to wait at the log's head while they are counted.
  const months = compared(stated, await countFed(sql, log, upTo));
  const receipt = await appender.together(log, async (put, { size, tx }) => {
    const before = await newestOf(tx, log, consumer);
    const last = before?.body;
    if (last !== undefined && upTo < BigInt(last.up_to)) {
      throw new Problem("ack-backwards", { up_to: last.up_to });
    }
    if (before !== undefined && isSame(before.body, { months, up_to })) {
      const { at, index, leaf } = await readEntry(tx, log, before.index);
      return { at, index, leaf, written: false };
    }
    const body = { by, consumer, months, salt: salt(opening.random), up_to };
    const written = await put("feed_ack", body);
    const standing = await readPortalBreaks(tx, log, consumer, size);
    await settle(put, opening, judgeAck(size, months, last?.months ?? [], standing), size);
    return written;
  });
  return { ...receipt, months, differing: [...differencesIn(months).keys()] };
}

async function newestOf(tx: Transaction, log: string, consumer: string) {
  const found = await readNewestAck(tx, log, consumer);
  return found && decodedAs("feed_ack", found.bytes);
}

function isSame(
  before: Body<"feed_ack">,
  { months, up_to }: Pick<Body<"feed_ack">, "months" | "up_to">,
): boolean {
  return before.up_to === up_to && canonical(before.months) === canonical(months);
}

/** What is over first, so that no two of a month are open at once. */
async function settle(
  put: Put,
  { hash, random }: Opening,
  { ended, opened }: ReturnType<typeof judgeAck>,
  ack: bigint,
): Promise<void> {
  for (const index of ended) await put("break_resolved", healedBy(index, ack, salt(random)));
  for (const finding of opened) await put("break", breakBody(finding, salt(random), hash));
}

function isOnce(names: readonly string[]): boolean {
  return new Set(names).size === names.length;
}
