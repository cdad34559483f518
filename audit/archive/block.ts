/** A bundle as it was found, and its entries put where their indices say they belong. */
import { type Body, decodeEntry, type Entry, type EntryOf } from "../../src/core/entry.ts";
import type { Hash } from "../../src/core/hash.ts";
import { parseCanonical } from "../../src/core/json.ts";
import { decodeBase64 } from "../../src/core/text.ts";
import type { Findings } from "../finding.ts";
import type { Reading } from "../prefix/statement.ts";

/** An entry of a kind that this version does not know: what can be said about it all the same. */
export interface UnknownEntry {
  kind: "unknown-kind";
  at: string;
  index: bigint;
  log: string;
  prev: Uint8Array;
}

/** A usage without its JWS: what that says is said beside it. */
export type UsageEntry = Omit<EntryOf<"usage">, "body"> & { body: Omit<Body<"usage">, "jws"> };
/** An entry as it is judged. */
export type ReadEntry = Exclude<Entry, { kind: "usage" }> | UsageEntry;

/** An entry as it was found, its leaf hash, and what its JWS says where its kind has an agent's. */
export interface Found {
  entry: ReadEntry | UnknownEntry | "malformed";
  leaf: Hash;
  said: Reading | undefined;
}

/**
 * Entries of a bundle, as views; `cut` when bytes are left over that are none. Unlike core's reader
 * this one gives what comes before the cut, so that the first entry at fault can be named.
 */
export function splitBundle(bytes: Uint8Array): { entries: Uint8Array[]; cut: boolean } {
  const entries: Uint8Array[] = [];
  let offset = 0;
  while (offset + 2 <= bytes.length) {
    const end = offset + 2 + (((bytes[offset] ?? 0) << 8) | (bytes[offset + 1] ?? 0));
    if (end > bytes.length) break;
    entries.push(bytes.subarray(offset + 2, end));
    offset = end;
  }
  return { entries, cut: offset !== bytes.length };
}

/**
 * The entries of bundle `first` … `first + width − 1`, each in its slot. One that cannot be read takes
 * the slot of its position; one whose slot is taken, or lies elsewhere, is one too many.
 */
export function align(
  entries: readonly Found[],
  first: bigint,
  width: number,
  findings: Findings,
): (Found | undefined)[] {
  const slots: (Found | undefined)[] = Array.from({ length: width }, () => undefined);
  let swapped: bigint | undefined;
  let surplus = false;
  entries.forEach((found, position) => {
    const { entry } = found;
    const slot = entry === "malformed" ? position : Number(entry.index - first);
    const at = first + BigInt(position);
    if (slot < 0 || slot >= width || slots[slot] !== undefined) {
      surplus = true;
      const said = entry === "malformed" ? "" : `, which says index ${entry.index}`;
      findings.add("entry-extra", { index: at }, `an entry too many at place ${at}${said}`);
      return;
    }
    slots[slot] = found;
    if (slot !== position) swapped ??= at;
  });
  const complete = !surplus && !slots.includes(undefined);
  if (swapped !== undefined && complete) {
    findings.add("entry-swapped", { index: swapped }, `another entry stands at place ${swapped}`);
  }
  return slots;
}

/** One entry, by its schema. */
export function readEntry(bytes: Uint8Array): Entry | UnknownEntry | "malformed" {
  const entry = decodeEntry(bytes);
  if (entry !== "unknown-kind") return entry;
  // The envelope was found good; only its body is of no known shape.
  const { at, index, log, prev } = parseCanonical(bytes) as Record<string, string>;
  return {
    kind: "unknown-kind",
    at: String(at),
    index: BigInt(index ?? ""),
    log: String(log),
    prev: decodeBase64(prev ?? "") ?? new Uint8Array(),
  };
}
