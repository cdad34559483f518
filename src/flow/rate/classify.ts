/** A project's class, from an instant on. */
import type { z } from "zod";
import { BODY } from "../../core/entry.ts";
import type { Random } from "../clock.ts";
import type { Appender } from "../log/append.ts";
import { salt } from "../log/chain.ts";
import type { Receipt } from "../log/commit-entry.ts";

export const NewClass = BODY.project_class.omit({ approval: true, by: true, salt: true });
export type NewClass = z.infer<typeof NewClass>;

/**
 * @param by opaque id of the principal who asks
 * @throws Problem `not-found`, `starts-in-the-past`, `approval-required`
 */
export async function classify(
  { appender, random }: { appender: Appender; random: Random },
  { log, by }: { log: string; by: string },
  input: NewClass,
): Promise<Receipt> {
  const body = { ...input, approval: "", by, salt: salt(random) };
  return await appender.control(log, "project_class", () => body);
}
