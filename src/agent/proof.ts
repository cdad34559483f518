/**
 * What a service answers when it is asked to prove a receipt, and what is to be thought of it. All of it
 * is hostile until a key of the log has signed it, or a hash leads to what such a key has signed.
 */
import { z } from "zod";
import { type Checkpoint, parseCheckpoint } from "../core/checkpoint.ts";
import { decodeEntry, ENTRY_BYTES_MAX, type EntryOf } from "../core/entry.ts";
import { leafHash } from "../core/hash.ts";
import { openNote } from "../core/note.ts";
import { verifyConsistency, verifyInclusion } from "../core/proof.ts";
import { decodeBase64 } from "../core/text.ts";
import { HashText, IntegerText } from "../core/unit.ts";
import type { Reason } from "./evidence.ts";
import { verifySignature } from "./key.ts";
import { entryOf, isKept, isOverdue, promised, promisedReports } from "./promise.ts";
import type { Answered, Divergence, Range } from "./spool-record.ts";
import { type Trust, vkeysOf } from "./trust.ts";

/** RFC 9162 proofs of a log of fewer than 2^63 entries have no more than 64 hashes. */
const Hashes = z.array(HashText).max(64);

/** A note may have 100 signatures. */
const NOTE_CHARS_MAX = 64 * 1024;

/** As many as a promise has results; keys of an honest log are few. */
const PROOFS_MAX = 500;

const Entry = z.base64().max(4 * Math.ceil(ENTRY_BYTES_MAX / 3));

export const Proved = z.object({
  checkpoint: z.string().max(NOTE_CHARS_MAX),
  proofs: z
    .array(z.object({ index: IntegerText, entry: Entry.exactOptional(), hashes: Hashes }))
    .max(PROOFS_MAX),
  consistency: Hashes.optional(),
  keys: z
    .array(z.object({ index: IntegerText, entry: Entry, hashes: Hashes }))
    .max(PROOFS_MAX)
    .default([]),
});
export type Proved = z.infer<typeof Proved>;

/** `mute`: the proofs hold, and of no entry the bytes are shown, as services did before there was a need. */
export type Verdict =
  | { kind: "proven"; reports: Range[] }
  | { kind: "pending" | "mute" }
  | { kind: "broken"; reason: Reason };

/** Undefined unless a trusted key has signed it, and for this log. */
export function openCheckpoint(trust: Trust, note: string): Checkpoint | undefined {
  const opened = openNote(note, vkeysOf(trust.checkpoint_vkeys), verifySignature);
  if ("problem" in opened) return undefined;
  const checkpoint = parseCheckpoint(opened.text);
  return checkpoint?.origin === trust.origin ? checkpoint : undefined;
}

/** Of a note that was verified when it was kept; its text ends at its last empty line. */
export function keptCheckpoint(note: string): Checkpoint | undefined {
  return parseCheckpoint(note.slice(0, note.lastIndexOf("\n\n") + 1));
}

/** How a checkpoint stands to the one that was verified before; `""` is well. */
export function divergenceOf(
  before: Checkpoint | undefined,
  now: Checkpoint,
  consistency: readonly string[] = [],
): Divergence {
  if (before === undefined || before.size === 0n) return "";
  if (now.size < before.size) return "rolled-back";
  // Between two sizes a proof has a hash: without one nothing is claimed, and so nothing contradicted.
  if (now.size > before.size && consistency.length === 0) return "withheld";
  const proof = hashesOf(consistency);
  const [from, to, fromRoot, toRoot] = [before.size, now.size, before.root, now.root];
  return verifyConsistency({ from, to, proof, fromRoot, toRoot }) ? "" : "inconsistent";
}

/** Entries about the log's keys that are proven, in their order; what is not is passed over. */
export function keyEntries(
  trust: Trust,
  { size, root }: Checkpoint,
  proved: Proved,
): EntryOf<"log_key">[] {
  return proved.keys
    .flatMap(({ entry: base64, hashes, index: text }) => {
      const bytes = decodeBase64(base64);
      const entry = bytes && decodeEntry(bytes);
      if (bytes === undefined || typeof entry !== "object") return [];
      const index = BigInt(text);
      const proof = hashesOf(hashes);
      const isProven = verifyInclusion({ leaf: leafHash(bytes), index, size, proof, root });
      const isIts = entry.log === trust.log && entry.index === index;
      return isProven && isIts && entry.kind === "log_key" ? [entry] : [];
    })
    .sort((a, b) => (a.index < b.index ? -1 : 1));
}

/**
 * Did the log keep its promise? `now` in milliseconds since the epoch, by the clock that noted when the
 * answer came: the log's own word for that would let it put off the day.
 * @param reportOf the JWS of a report of this answer, by its digest
 */
export function judge(
  answered: Answered,
  proved: Proved,
  { log, size, root }: Checkpoint & { log: string },
  now: number,
  reportOf: (digest: string) => string | undefined,
): Verdict {
  const proofs = new Map(proved.proofs.map((proof) => [proof.index, proof]));
  const isMute = proved.proofs.every(({ entry }) => entry === undefined);
  let late: Reason | "mute" | undefined;
  for (const promise of promised(answered)) {
    const { digest, index, leaf } = promise;
    const found = proofs.get(String(index));
    if (index >= size) {
      late = "overdue";
      continue;
    }
    if (found === undefined) {
      late = late === "overdue" ? late : "withheld";
      continue;
    }
    const proof = hashesOf(found.hashes);
    if (!verifyInclusion({ leaf, index, size, proof, root })) {
      return { kind: "broken", reason: "other-leaf" };
    }
    const entry = entryOf(found.entry, promise, log);
    if (entry === undefined) late ??= isMute ? "mute" : "withheld";
    else if (entry === "malformed" || !isKept(entry, promise, () => reportOf(digest))) {
      return { kind: "broken", reason: "other-entry" };
    }
  }
  if (late === undefined) return { kind: "proven", reports: promisedReports(answered) };
  if (late === "mute") return { kind: "mute" };
  return isOverdue(answered, now) ? { kind: "broken", reason: late } : { kind: "pending" };
}

function hashesOf(texts: readonly string[]): Uint8Array[] {
  return texts.flatMap((text) => decodeBase64(text) ?? []);
}
