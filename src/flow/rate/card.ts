/** Rates by machine type and project class, from an instant on. */
import type { z } from "zod";
import { BODY } from "../../core/entry.ts";
import type { Random } from "../clock.ts";
import type { Appender } from "../log/append.ts";
import { salt } from "../log/chain.ts";
import type { Receipt } from "../log/commit-entry.ts";

export const NewCard = BODY.rate_card.omit({ approval: true, by: true, salt: true });
export type NewCard = z.infer<typeof NewCard>;

/**
 * @param by opaque id of the principal who asks
 * @throws Problem `not-found`, `invalid-factor`, `project-factors-not-applicable`,
 *   `starts-in-the-past`, `approval-required`, `too-large`
 */
export async function card(
  { appender, random }: { appender: Appender; random: Random },
  { log, by }: { log: string; by: string },
  input: NewCard,
): Promise<Receipt> {
  const body = { ...input, approval: "", by, salt: salt(random) };
  return await appender.control(log, "rate_card", () => body);
}
