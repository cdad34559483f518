/** Who pays for a namespace, or for all others of the instance, from an instant on. */
import type { z } from "zod";
import { BODY, type Body } from "../../core/entry.ts";
import type { Prefix } from "../../core/prefix.ts";
import { Problem } from "../../core/problem.ts";
import { epochMs, instantText } from "../../core/unit.ts";
import { readAccountVersions } from "../../store/accounts.ts";
import type { Sql, Transaction } from "../../store/connect.ts";
import { readEntry } from "../../store/entries.ts";
import type { Random } from "../clock.ts";
import { assertOwnWord } from "../control/own-word.ts";
import type { Appender } from "../log/append.ts";
import { salt } from "../log/chain.ts";
import type { Receipt } from "../log/commit-entry.ts";
import { repeats } from "../rate/repeat.ts";
import { decodedAs } from "../usage/show.ts";

const { effective_from, subscription_id } = BODY.account.shape;

/** Without `effective_from`: at once. */
export const NewAccount = BODY.account
  .omit({ approval: true, by: true, namespace_id: true, salt: true })
  .extend({
    effective_from: effective_from.exactOptional(),
    subscription_id: subscription_id.default(""),
  });
export type NewAccount = z.infer<typeof NewAccount>;

/**
 * Answered by the entry that stands if it is the source's newest and says just this.
 *
 * @param asker.namespace_id `""`: of all namespaces that have none of their own
 * @param asker.by opaque id of the principal who asks
 * @param asker.isPerson who asks is no system, whichever source is named
 * @throws Problem `not-found`, `stale-source-version`, `starts-in-the-past`, `approval-required`
 */
export async function account(
  { appender, random }: { appender: Appender; random: Random },
  asker: { log: string; namespace_id: string; by: string; isPerson?: boolean },
  input: NewAccount,
): Promise<Receipt> {
  const { log, namespace_id, by, isPerson = false } = asker;
  const sealed = { namespace_id, approval: "", by, salt: salt(random) };
  return await appender.control(log, "account", async (prefix, at, tx) => {
    assertOwnWord(prefix, isPerson);
    const versions = await readAccountVersions(tx, log, namespace_id);
    const newest = versions.findLast(({ source }) => source === input.source);
    if (newest !== undefined && String(newest.source_version) === input.source_version) {
      const { bytes } = await readEntry(tx, log, newest.index);
      if (repeats(decodedAs("account", bytes).body, input)) return newest.index;
    }
    const effective_from = versions.length === 0 ? at : instantText(epochMs(at) + 1);
    const body = { effective_from, ...input, ...sealed };
    assertNext(versions, body, at);
    return body;
  });
}

/**
 * Whether it may be written now: versions count within their source, and only the first of its key may
 * start in the past.
 *
 * @param below entries from there on are not looked at
 * @throws Problem `stale-source-version`, `starts-in-the-past`
 */
export async function assertAccount(
  { tx, prefix, at, below }: { tx: Sql | Transaction; prefix: Prefix; at: string; below?: bigint },
  body: Body<"account">,
): Promise<void> {
  assertNext(await readAccountVersions(tx, prefix.id, body.namespace_id, below), body, at);
}

function assertNext(
  versions: Awaited<ReturnType<typeof readAccountVersions>>,
  { effective_from, source, source_version }: Body<"account">,
  at: string,
): void {
  const newest = versions.findLast((version) => version.source === source);
  if (newest !== undefined && newest.source_version >= BigInt(source_version)) {
    throw new Problem("stale-source-version", { stands: String(newest.source_version) });
  }
  if (versions.length > 0 && effective_from <= at) {
    throw new Problem("starts-in-the-past", { effective_from, at });
  }
}
