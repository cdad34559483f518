/** What entries say of keys, runners and cards, as new as a decision has to be. */
import type { Prefix } from "../../core/prefix.ts";
import { Problem } from "../../core/problem.ts";
import type { NamespaceKey } from "../../core/quota/live.ts";
import type { Appender } from "../log/append.ts";
import type { Asking } from "./ask.ts";

/** How long after its entry a key that another process revoked may still be heard. */
const AGE_MS = 2_000;

/**
 * @param key any namespace of the log: the ledger knows how far the log has come
 * @param suffices false of one that lacks what is known to be on the log: then it is read on at once
 * @throws Problem `not-found`; `busy` while too little of the log was ever read
 */
export async function recentPrefix(
  { appender, clock, ledger, seen }: Asking & { appender: Pick<Appender, "prefix"> },
  key: NamespaceKey,
  suffices: (prefix: Prefix) => boolean = () => true,
): Promise<Prefix> {
  const now = clock.now();
  const { asOf } = await ledger.hold(key, { readSince: now - AGE_MS });
  const size = seen.judgeBy(key.log, asOf, now);
  const prefix = await appender.prefix(key.log, size).catch((error: unknown) => {
    // The database went away: what was in force when it was last read.
    if (error instanceof Problem && error.code === "busy") return appender.prefix(key.log);
    throw error;
  });
  if (suffices(prefix)) return prefix;
  const newest = await ledger.hold(key, { readSince: now });
  return await appender.prefix(key.log, newest.asOf);
}
