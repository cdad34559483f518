/** What an entry was judged by and does not name. */
import { type Body, decodeEntry, type Entry } from "../../core/entry.ts";
import type { Sha256 } from "../../core/hash.ts";
import { trackingOf } from "../../core/judge.ts";
import type { Prefix } from "../../core/prefix.ts";
import type { Sql, Transaction } from "../../store/connect.ts";
import { readPack } from "../../store/packs.ts";
import { jobIndices, recordedIndices } from "../../store/snapshots.ts";
import { REUSED, readSigned } from "./derive.ts";

/**
 * Entries that it does not name and that say whether it was judged as it must be: of a hold, the usage
 * of its job, because it may have been a duplicate; of counters that came again, their accounts.
 */
export async function unnamed(
  entry: Entry,
  prefix: Prefix,
  sql: Sql | Transaction,
  hash: Sha256,
): Promise<bigint[]> {
  const { log } = entry;
  if (entry.kind === "disposition") {
    const { kid, lines } = entry.body;
    const noted = lines.filter(({ code, index }) => code === REUSED && index === "");
    const counters = noted.map(({ counter }) => BigInt(counter));
    return noted.length === 0 ? [] : await recordedIndices(sql, log, kid, counters);
  }
  const signed = entry.kind === "hold" ? readSigned(entry.body.jws, hash) : undefined;
  const tracking = signed && trackingOf(prefix, signed.kid, signed.report);
  if (signed === undefined || tracking === undefined) return [];
  return await jobIndices(sql, log, tracking, BigInt(signed.report.job.id));
}

/** The newest version before it of the pack that it is one of; none of other kinds, or if that cannot be read. */
export async function earlierVersion(
  { kind, body, log, index }: Entry,
  sql: Sql | Transaction,
): Promise<Body<"pack"> | undefined> {
  const found = kind === "pack" ? await readPack(sql, log, body, index) : undefined;
  const earlier = found && decodeEntry(found.bytes);
  return typeof earlier === "object" && earlier.kind === "pack" ? earlier.body : undefined;
}
