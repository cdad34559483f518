/** Takes a cut-off back, so that what is to be corrected comes into the month. */
import type { z } from "zod";
import { admit } from "../../core/admit.ts";
import { BODY } from "../../core/entry.ts";
import { Problem } from "../../core/problem.ts";
import type { Transaction } from "../../store/connect.ts";
import { readMonthEnds } from "../../store/month-ends.ts";
import type { Random } from "../clock.ts";
import type { Appender } from "../log/append.ts";
import { salt } from "../log/chain.ts";
import type { Receipt } from "../log/commit-entry.ts";

export const NewWithdrawal = BODY.month_closing_withdrawn.pick({ closing: true });
export type NewWithdrawal = z.infer<typeof NewWithdrawal>;

/**
 * @param by opaque id of the principal who asks
 * @throws Problem `not-found`, `months-in-order` unless the month is the last that is cut off,
 *   `month-closed`, `approval-required`
 */
export async function withdraw(
  { appender, random }: { appender: Appender; random: Random },
  { log, by }: { log: string; by: string },
  month: string,
): Promise<Receipt> {
  return await appender.control(log, "month_closing_withdrawn", async (prefix, at, tx) => {
    const { lastClosing } = prefix;
    if (lastClosing?.month !== month) throw new Problem("months-in-order");
    const body = { approval: "", by, closing: String(lastClosing.index), salt: salt(random) };
    // Nobody is to ask a second person for what is closed for ever.
    await assertOpen(tx, log, body);
    admit(prefix, "month_closing_withdrawn", body, at);
    return body;
  });
}

/** @throws Problem `month-closed`: what is closed is never reopened */
export async function assertOpen(
  tx: Transaction,
  log: string,
  { closing }: NewWithdrawal,
): Promise<void> {
  const ends = await readMonthEnds(tx, log);
  const end = ends.find((each) => each.closing === BigInt(closing));
  if (end !== undefined) throw new Problem("month-closed", { closed: String(end.index) });
}
