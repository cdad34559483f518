/** Says on the log who looks after a break: an opaque id, since no name of a person is ever hashed. */
import { z } from "zod";
import { Problem } from "../../core/problem.ts";
import { isBreak, readEnded } from "../../store/breaks.ts";
import type { Random } from "../clock.ts";
import type { Appender } from "../log/append.ts";
import { salt } from "../log/chain.ts";
import type { Receipt } from "../log/commit-entry.ts";

/** Left out: whoever says so. */
export const NewOwner = z.strictObject({
  owner: z
    .string()
    .regex(/^p_[A-Za-z0-9_-]{22}$/)
    .exactOptional(),
});

/** @throws Problem `not-found` for no break, `already-decided` for one that has ended; `busy` */
export async function assignBreak(
  { appender, random }: { appender: Appender; random: Random },
  { by, index, log }: { log: string; index: bigint; by: string },
  { owner = by }: z.infer<typeof NewOwner>,
): Promise<Receipt> {
  return await appender.control(log, "break_assigned", async (_, __, tx) => {
    if (!(await isBreak(tx, log, index))) throw new Problem("not-found");
    if ((await readEnded(tx, log, [index])).has(index)) throw new Problem("already-decided");
    return { break: String(index), by, owner, salt: salt(random) };
  });
}
