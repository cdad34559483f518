/** A consumer says what it has of the feed, and each month that differs becomes a break (docs/feed.md). */
import { z } from "zod";
import { breakBody } from "../../core/break.ts";
import type { Body } from "../../core/entry.ts";
import { FEED_CONSUMERS_MAX, FEED_MONTHS_MAX } from "../../core/evidence.ts";
import {
  type AckMonth,
  compared,
  differencesIn,
  judgeAck,
  monthsAtStake,
} from "../../core/feed/acknowledgement.ts";
import { canonical } from "../../core/json.ts";
import { Problem } from "../../core/problem.ts";
import { IntegerText, MonthText, NonEmptyText, SignedComputeMsText } from "../../core/unit.ts";
import type { Archive } from "../../store/archive.ts";
import type { Transaction } from "../../store/connect.ts";
import { readEntry } from "../../store/entries.ts";
import { countConsumers, readNewestAck, readPortalBreaks } from "../../store/feed-acks.ts";
import { listLogs } from "../../store/logs.ts";
import { assertOwnWord } from "../control/own-word.ts";
import { salt } from "../log/chain.ts";
import type { Put, Receipt } from "../log/commit-entry.ts";
import { healedBy, type Opening } from "../reconcile/open.ts";
import { decodedAs } from "../usage/show.ts";
import { countFed } from "./count.ts";
import { assertReached } from "./reach.ts";

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
 * @param asker.by opaque id of the principal who asks
 * @param asker.isPerson who asks decides about money here: under dual control nobody ends a difference alone
 * @throws Problem `not-found`, `approval-required`, `consumer-taken`, `too-many-consumers`, `ack-backwards`,
 *   `beyond-checkpoint`, `unknown-month`, `too-many-differ`, and as an appender does
 */
export async function acknowledge(
  opening: Opening & { archive: Pick<Archive, "latestCheckpoint"> },
  { log, by, isPerson = false }: { log: string; by: string; isPerson?: boolean },
  { consumer, months: stated, up_to }: Acknowledgement,
): Promise<Acknowledged> {
  const { appender, archive, sql } = opening;
  const upTo = BigInt(up_to);
  const [listed] = await listLogs(sql, log);
  if (listed === undefined) throw new Problem("not-found");
  await assertReached(archive, listed, upTo);
  // Sealed entries stay as they are: nobody has to wait at the log's head while they are counted.
  const months = compared(stated, await countFed(sql, log, upTo));
  const receipt = await appender.together(log, async (put, { prefix, size, tx }) => {
    assertOwnWord(prefix, isPerson);
    const before = await newestOf(tx, log, consumer);
    await assertName(tx, log, { by, size, before: before?.body });
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
    const then = last?.months ?? [];
    const asked = { consumer, months: monthsAtStake(months, then), below: size };
    const standing = await readPortalBreaks(tx, log, asked);
    await settle(put, opening, judgeAck(size, months, then, standing), size);
    return written;
  });
  return { ...receipt, months, differing: [...differencesIn(months).keys()] };
}

/** A name is who came by it first: another one's sums would end or open what is theirs. */
async function assertName(
  tx: Transaction,
  log: string,
  { before, by, size }: { by: string; size: bigint; before: Body<"feed_ack"> | undefined },
): Promise<void> {
  if (before !== undefined) {
    if (before.by !== by) throw new Problem("consumer-taken");
    return;
  }
  const names = await countConsumers(tx, log, size);
  if (names >= FEED_CONSUMERS_MAX) throw new Problem("too-many-consumers");
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
