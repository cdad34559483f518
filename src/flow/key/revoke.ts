/** Ends a key from the outside: its reports up to a counter stay welcome, those above are held. */
import type { z } from "zod";
import { BODY } from "../../core/entry.ts";
import type { Random } from "../clock.ts";
import type { Appender } from "../log/append.ts";
import { salt } from "../log/chain.ts";
import type { Receipt } from "../log/commit-entry.ts";

export const Revocation = BODY.key_revoked.pick({ last_trusted_counter: true, reason: true });
export type Revocation = z.infer<typeof Revocation>;

/**
 * @param by opaque id of the principal who asks
 * @throws Problem `not-found` for a key that the log does not know; `key-has-ended` if it was revoked
 *   at this counter or a lower one
 */
export async function revoke(
  { appender, random }: { appender: Appender; random: Random },
  { log, kid, by }: { log: string; kid: string; by: string },
  { last_trusted_counter, reason }: Revocation,
): Promise<Receipt> {
  return await appender.control(log, "key_revoked", (_, instant) => {
    return { by, instant, kid, last_trusted_counter, reason, salt: salt(random) };
  });
}
