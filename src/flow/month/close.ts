/** Cuts a month off: what comes later is posted to the next one. */
import type { z } from "zod";
import { assertNextMonth } from "../../core/admit.ts";
import { BODY } from "../../core/entry.ts";
import type { Prefix } from "../../core/prefix.ts";
import { Problem } from "../../core/problem.ts";
import type { Transaction } from "../../store/connect.ts";
import { readHeads } from "../../store/heads.ts";
import type { Random } from "../clock.ts";
import type { Appender } from "../log/append.ts";
import { salt } from "../log/chain.ts";
import type { Receipt } from "../log/commit-entry.ts";
import { type Condition, conditions, missingIn } from "./conditions.ts";
import { matching } from "./matching.ts";

export const NewClosing = BODY.month_closing.pick({ month: true });
export type NewClosing = z.infer<typeof NewClosing>;

/** A log up to its head, where the cut-off would go. */
export interface AtHead {
  tx: Transaction;
  prefix: Prefix;
  /** Of the entry that would be written now. */
  at: string;
  closeDelayDays: bigint;
}

/**
 * @param by opaque id of the principal who asks
 * @throws Problem `not-found`, `months-in-order`, `month-not-ready` with all that is missing,
 *   `approval-required`
 */
export async function close(
  {
    appender,
    random,
    closeDelayDays,
  }: { appender: Appender; random: Random; closeDelayDays: bigint },
  { log, by }: { log: string; by: string },
  { month }: NewClosing,
): Promise<Receipt> {
  const body = { approval: "", by, month, salt: salt(random) };
  return await appender.control(log, "month_closing", async (prefix, at, tx) => {
    await assertClosing({ tx, prefix, at, closeDelayDays }, body);
    return body;
  });
}

/**
 * What refuses a cut-off, but that it may need a second person: nobody is to be asked for one that may not be.
 *
 * @throws Problem `months-in-order`, `month-not-ready`
 */
export async function assertClosing(head: AtHead, closing: NewClosing): Promise<void> {
  // Whose turn it is comes first: of another month it does not matter what is missing.
  assertNextMonth(head.prefix, closing.month);
  await assertReady(head, closing);
}

/** @throws Problem `month-not-ready` */
export async function assertReady(head: AtHead, { month }: NewClosing): Promise<void> {
  const missing = missingIn(await conditionsAtHead(head, month));
  if (missing.length > 0) throw new Problem("month-not-ready", { missing });
}

export async function conditionsAtHead(
  { tx, prefix, at, closeDelayDays }: AtHead,
  month: string,
): Promise<Condition<string>[]> {
  const { id: log, lastClosing: before } = prefix;
  const head = (await readHeads(tx, [log])).get(log);
  if (head === undefined) throw new Problem("not-found");
  const below = head.size;
  const seen = await conditions({ tx, log, month, below, at, prefix, before, closeDelayDays });
  return [...seen, await matching(tx, { log, month })];
}
