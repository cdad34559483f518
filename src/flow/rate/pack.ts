/** Minutes that a namespace has bought, beside those of each month. */
import type { z } from "zod";
import { BODY } from "../../core/entry.ts";
import { assertFollows, assertOutside, lastMonth } from "../../core/pack.ts";
import { monthOf } from "../../core/unit.ts";
import { readPack } from "../../store/packs.ts";
import type { Random } from "../clock.ts";
import { assertOwnWord } from "../control/own-word.ts";
import type { Appender } from "../log/append.ts";
import { salt } from "../log/chain.ts";
import type { Receipt } from "../log/commit-entry.ts";
import { decodedAs } from "../usage/show.ts";
import { repeats } from "./repeat.ts";

const { expires_in, purchased_in } = BODY.pack.shape;

/**
 * A pack, or a later version of one: without months it is bought now and good for twelve of them, or keeps those
 * that it has. What is taken back has no minutes.
 */
export const NewPack = BODY.pack
  .omit({ approval: true, by: true, salt: true })
  .extend({ expires_in: expires_in.exactOptional(), purchased_in: purchased_in.exactOptional() });
export type NewPack = z.infer<typeof NewPack>;

/**
 * Answered by the entry that stands if it is the pack's newest and says just this.
 *
 * @param asker.by opaque id of the principal who asks
 * @param asker.isPerson who asks is no system, whichever source is named
 * @throws Problem `not-found`, `invalid-request` for one that expires before it is bought,
 *   `stale-source-version`, `another-pack`, `approval-required`
 */
export async function pack(
  { appender, random }: { appender: Appender; random: Random },
  asker: { log: string; by: string; isPerson?: boolean },
  input: NewPack,
): Promise<Receipt> {
  const { log, by, isPerson = false } = asker;
  assertOutside(input);
  const sealed = { approval: "", by, salt: salt(random) };
  return await appender.control(log, "pack", async (prefix, at, tx) => {
    assertOwnWord(prefix, isPerson);
    const found = await readPack(tx, log, input);
    const newest = found && decodedAs("pack", found.bytes);
    if (newest !== undefined && repeats(newest.body, input)) return newest.index;
    const { purchased_in = newest?.body.purchased_in ?? monthOf(at) } = input;
    const { expires_in = newest?.body.expires_in ?? lastMonth(purchased_in) } = input;
    const body = { ...input, ...sealed, expires_in, purchased_in };
    assertFollows(newest?.body, body);
    return body;
  });
}
