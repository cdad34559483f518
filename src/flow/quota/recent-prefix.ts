/** What entries say of keys, runners and cards, as new as a decision has to be. */
import type { Prefix } from "../../core/prefix.ts";
import { Problem } from "../../core/problem.ts";
import type { NamespaceKey } from "../../core/quota/live.ts";
import type { Appender } from "../log/append.ts";
import type { Asking } from "./ask.ts";

/** How long after its entry a key that another process revoked may still be heard. */
const AGE_MS = 2_000;

type Reading = Asking & { appender: Pick<Appender, "prefix"> };

/**
 * @param key any namespace of the log: the ledger knows how far the log has come
 * @param suffices false of one that lacks what is known to be on the log: then it is read on at once
 * @throws Problem `not-found`; `busy` while too little of the log was ever read
 */
export async function recentPrefix(
  reading: Reading,
  key: NamespaceKey,
  suffices: (prefix: Prefix) => boolean = () => true,
): Promise<Prefix> {
  const { appender, clock, ledger } = reading;
  const now = clock.now();
  const prefix = await readPrefix(reading, key, now).catch((error: unknown) => {
    // The database is away: what was in force when it was last read.
    if (error instanceof Problem && error.code === "busy") return appender.prefix(key.log);
    throw error;
  });
  if (suffices(prefix)) return prefix;
  const { asOf } = await ledger.hold(key, { readSince: now });
  return await appender.prefix(key.log, asOf);
}

async function readPrefix(
  { appender, ledger, seen }: Reading,
  key: NamespaceKey,
  now: number,
): Promise<Prefix> {
  const wants = { readSince: now - AGE_MS };
  const { asOf } = ledger.known(key, wants) ?? (await ledger.hold(key, wants));
  return await appender.prefix(key.log, seen.judgeBy(key.log, asOf, now));
}
