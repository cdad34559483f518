/** Says on a log which version of the service writes to it, once for each. */
import { decodeEntry } from "../../core/entry.ts";
import { supersedes } from "../../core/service.ts";
import { readService } from "../../store/entries.ts";
import type { Random } from "../clock.ts";
import type { Appender } from "./append.ts";
import { salt } from "./chain.ts";
import type { Receipt } from "./commit-entry.ts";

/** `version` is three numbers, as 1.2.3; `schema_sha256` the hash of the migrations, base64. */
export interface ServiceVersion {
  version: string;
  schema_sha256: string;
}

/**
 * Written when the newest on this log differs and is no newer: while two versions run side by side,
 * the older one stays silent, and they do not take turns.
 */
export async function announce(
  { appender, random }: { appender: Appender; random: Random },
  log: string,
  service: ServiceVersion,
): Promise<Receipt> {
  return await appender.control(log, "service", async (_, __, tx) => {
    const stored = await readService(tx, log);
    const entry = stored && decodeEntry(stored.bytes);
    const newest = typeof entry === "object" && entry.kind === "service" ? entry.body : undefined;
    return stored !== undefined && !supersedes(newest, service)
      ? stored.index
      : { ...service, salt: salt(random) };
  });
}
