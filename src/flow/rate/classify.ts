/** A project's class, from an instant on. */
import type { z } from "zod";
import { BODY } from "../../core/entry.ts";
import type { Random } from "../clock.ts";
import { assertOwnWord } from "../control/own-word.ts";
import type { Appender } from "../log/append.ts";
import { salt } from "../log/chain.ts";
import type { Receipt } from "../log/commit-entry.ts";

export const NewClass = BODY.project_class.omit({ approval: true, by: true, salt: true });
export type NewClass = z.infer<typeof NewClass>;

/**
 * @param asker.by opaque id of the principal who asks
 * @param asker.isPerson who asks is no system, whichever source is named
 * @throws Problem `not-found`, `starts-in-the-past`, `approval-required`
 */
export async function classify(
  { appender, random }: { appender: Appender; random: Random },
  asker: { log: string; by: string; isPerson?: boolean },
  input: NewClass,
): Promise<Receipt> {
  const { log, by, isPerson = false } = asker;
  const body = { ...input, approval: "", by, salt: salt(random) };
  return await appender.control(log, "project_class", (prefix) => {
    assertOwnWord(prefix, isPerson);
    return body;
  });
}
