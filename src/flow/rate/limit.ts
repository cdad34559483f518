/** A namespace's monthly minutes and what happens beyond them, from an instant on. */
import type { z } from "zod";
import { justAfter } from "../../core/effective.ts";
import { BODY } from "../../core/entry.ts";
import { readEntry } from "../../store/entries.ts";
import type { Random } from "../clock.ts";
import { assertOwnWord } from "../control/own-word.ts";
import type { Appender } from "../log/append.ts";
import { salt } from "../log/chain.ts";
import type { Receipt } from "../log/commit-entry.ts";
import { decodedAs } from "../usage/show.ts";
import { repeats } from "./repeat.ts";

const { cap, effective_from, grace_minutes } = BODY.quota.shape;

/** Without `effective_from`: at once. */
export const NewLimit = BODY.quota
  .omit({ approval: true, by: true, namespace_id: true, salt: true })
  .extend({
    cap: cap.default(""),
    effective_from: effective_from.exactOptional(),
    grace_minutes: grace_minutes.default("1000"),
  });
export type NewLimit = z.infer<typeof NewLimit>;

interface Limiting {
  log: string;
  namespace_id: string;
  /** Opaque id of the principal who asks. */
  by: string;
  /** Who asks is no system, whichever source is named. */
  isPerson?: boolean;
}

/**
 * Answered by the entry that stands if it is the source's newest and says just this.
 *
 * @throws Problem `not-found`, `invalid-request` for a cap where nothing goes on beyond the limit,
 *   `stale-source-version`, `starts-in-the-past`, `approval-required`
 */
export async function limit(
  { appender, random }: { appender: Appender; random: Random },
  { log, namespace_id, by, isPerson = false }: Limiting,
  input: NewLimit,
): Promise<Receipt> {
  const sealed = { namespace_id, approval: "", by, salt: salt(random) };
  return await appender.control(log, "quota", async (prefix, at, tx) => {
    assertOwnWord(prefix, isPerson);
    const limits = prefix.limits(namespace_id);
    const newest = limits.findLast(({ source }) => source === input.source);
    if (newest?.source_version === input.source_version) {
      const { bytes } = await readEntry(tx, log, newest.index);
      if (repeats(decodedAs("quota", bytes).body, input)) return newest.index;
    }
    return { effective_from: limits.length === 0 ? at : justAfter(at), ...input, ...sealed };
  });
}
