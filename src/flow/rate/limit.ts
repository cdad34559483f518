/** A namespace's monthly minutes and what happens beyond them, from an instant on. */
import type { z } from "zod";
import { BODY } from "../../core/entry.ts";
import type { Random } from "../clock.ts";
import type { Appender } from "../log/append.ts";
import { salt } from "../log/chain.ts";
import type { Receipt } from "../log/commit.ts";

export const NewLimit = BODY.quota.omit({ approval: true, by: true, salt: true });
export type NewLimit = z.infer<typeof NewLimit>;

/**
 * @param by opaque id of the principal who asks
 * @throws Problem `not-found`, `stale-source-version`, `starts-in-the-past`, `approval-required`
 */
export async function limit(
  { appender, random }: { appender: Appender; random: Random },
  { log, by }: { log: string; by: string },
  input: NewLimit,
): Promise<Receipt> {
  const body = { ...input, approval: "", by, salt: salt(random) };
  return await appender.control(log, "quota", () => body);
}
