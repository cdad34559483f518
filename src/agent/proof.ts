/**
 * What a service answers when it is asked to prove a receipt, and what is to be thought of it. All of it
 * is hostile until a key of the log has signed it, or a hash leads to what such a key has signed.
 */
import { z } from "zod";
import { type Checkpoint, parseCheckpoint } from "../core/checkpoint.ts";
import { type Body, decodeEntry } from "../core/entry.ts";
import { type Hash, leafHash } from "../core/hash.ts";
import { openNote } from "../core/note.ts";
import { verifyConsistency, verifyInclusion } from "../core/proof.ts";
import { MERGE_DELAY_MS } from "../core/receipt.ts";
import { decodeBase64 } from "../core/text.ts";
import { HashText, IntegerText } from "../core/unit.ts";
import type { Reason } from "./evidence.ts";
import { verifySignature } from "./key.ts";
import type { Answered, Divergence, Range } from "./spool-record.ts";
import { type Trust, vkeysOf } from "./trust.ts";

/** RFC 9162 proofs of a log of fewer than 2^63 entries have no more than 64 hashes. */
const Hashes = z.array(HashText).max(64);

/** A note may have 100 signatures. */
const NOTE_CHARS_MAX = 64 * 1024;

export const Proved = z.object({
  checkpoint: z.string().max(NOTE_CHARS_MAX),
  proofs: z.array(z.object({ index: IntegerText, hashes: Hashes })),
  consistency: Hashes.optional(),
  keys: z.array(z.object({ index: IntegerText, entry: z.base64(), hashes: Hashes })).default([]),
});
export type Proved = z.infer<typeof Proved>;

export type Verdict =
  | { kind: "proven"; reports: Range[] }
  | { kind: "pending" }
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
  const proof = hashesOf(consistency);
  const [from, to, fromRoot, toRoot] = [before.size, now.size, before.root, now.root];
  return verifyConsistency({ from, to, proof, fromRoot, toRoot }) ? "" : "inconsistent";
}

/** Entries about the log's keys that are proven, in their order; what is not is passed over. */
export function keyEntries(
  trust: Trust,
  { size, root }: Checkpoint,
  proved: Proved,
): Body<"log_key">[] {
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
    .sort((a, b) => (a.index < b.index ? -1 : 1))
    .map(({ body }) => body);
}

/**
 * Did the log keep its promise? `now` in milliseconds since the epoch, by the clock that noted when the
 * answer came: the log's own word for that would let it put off the day.
 */
export function judge(
  answered: Answered,
  proved: Proved,
  { size, root }: Checkpoint,
  now: number,
): Verdict {
  const proofs = new Map(proved.proofs.map(({ hashes, index }) => [index, hashesOf(hashes)]));
  let late: Reason | undefined;
  for (const { index, leaf } of promised(answered)) {
    const proof = proofs.get(String(index));
    if (index >= size) late = "overdue";
    else if (proof === undefined) late ??= "withheld";
    else if (!verifyInclusion({ leaf, index, size, proof, root })) {
      return { kind: "broken", reason: "other-leaf" };
    }
  }
  if (late === undefined) return { kind: "proven", reports: promisedReports(answered) };
  return isOverdue(answered, now) ? { kind: "broken", reason: late } : { kind: "pending" };
}

export function isOverdue({ at }: Answered, now: number): boolean {
  return now - at > MERGE_DELAY_MS;
}

/** The highest index that is promised; undefined where nothing is. */
export function lastIndex(answered: Answered): bigint | undefined {
  const indices = promised(answered).map(({ index }) => index);
  return indices.reduce<bigint | undefined>(
    (last, index) => (last === undefined || index > last ? index : last),
    undefined,
  );
}

/** A report that was answered without an entry has nothing that could be proven. */
function promised({ first, results }: Answered): { place: number; index: bigint; leaf: Hash }[] {
  return results.flatMap(({ index, leaf: base64 }, i) => {
    const leaf = decodeBase64(base64 ?? "");
    if (index === undefined || leaf?.length !== 32) return [];
    return [{ place: first + i, index: BigInt(index), leaf }];
  });
}

function promisedReports(answered: Answered): Range[] {
  const ranges: Range[] = [];
  for (const { place } of promised(answered)) {
    const last = ranges.at(-1);
    if (last?.[1] === place) last[1] += 1;
    else ranges.push([place, place + 1]);
  }
  return ranges;
}

function hashesOf(texts: readonly string[]): Uint8Array[] {
  return texts.flatMap((text) => decodeBase64(text) ?? []);
}
