/**
 * What an answer promises, result by result: an entry, and which one it must be (docs/report-protocol.md);
 * for a refusal, none; and nothing at all where code and members are not those of the protocol.
 */
import { createHash } from "node:crypto";
import { decodeEntry, type Entry, HOLD_CODES } from "../core/entry.ts";
import { type Hash, leafHash } from "../core/hash.ts";
import { parseCanonical } from "../core/json.ts";
import { readCompact } from "../core/jws.ts";
import { MERGE_DELAY_MS } from "../core/receipt.ts";
import { fact, Report } from "../core/report.ts";
import { decodeBase64, encodeBase64, equal } from "../core/text.ts";
import type { Answered, Range, Result } from "./spool-record.ts";

const STANDING: ReadonlySet<string> = new Set(["accepted", "duplicate", "conflict", ...HOLD_CODES]);
const REFUSED: ReadonlySet<string> = new Set([
  "malformed",
  "bad-signature",
  "wrong-typ",
  "non-canonical",
  "schema",
  "wrong-log",
]);

export interface Promised {
  /** The report's. */
  place: number;
  code: string;
  digest: string;
  index: bigint;
  leaf: Hash;
}

/** The entries that are promised. A report that was refused has none. */
export function promised({ first, results }: Answered): Promised[] {
  return results.flatMap((result, i) => {
    const { code, digest, index, leaf: base64 } = result;
    const leaf = decodeBase64(base64 ?? "");
    if (!STANDING.has(code) || index === undefined || leaf?.length !== 32) return [];
    return [{ place: first + i, code, digest, index: BigInt(index), leaf }];
  });
}

/** Reports of which the answer says neither that they stand, and where, nor that they are refused. */
export function unanswered({ first, results }: Answered): Range[] {
  return ranges(results.flatMap((result, i) => (isAnswer(result) ? [] : [first + i])));
}

/** The highest index that is promised; undefined where nothing is. */
export function lastIndex(answered: Answered): bigint | undefined {
  const indices = promised(answered).map(({ index }) => index);
  return indices.reduce<bigint | undefined>(
    (last, index) => (last === undefined || index > last ? index : last),
    undefined,
  );
}

export function promisedReports(answered: Answered): Range[] {
  return ranges(promised(answered).map(({ place }) => place));
}

export function isOverdue({ at }: Answered, now: number): boolean {
  return now - at > MERGE_DELAY_MS;
}

/** The entry whose leaf that is, if these are its bytes at all; `malformed` if it is none of the log's. */
export function entryOf(
  base64: string | undefined,
  { index, leaf }: Promised,
  log: string,
): Entry | "malformed" | undefined {
  const bytes = decodeBase64(base64 ?? "");
  if (bytes === undefined || !equal(leafHash(bytes), leaf)) return undefined;
  const entry = decodeEntry(bytes);
  if (typeof entry === "string") return "malformed";
  return entry.log === log && entry.index === index ? entry : "malformed";
}

/**
 * Is this what the code promises of the report?
 * @param report its JWS; undefined where it is deleted, because it was proven long ago by another promise
 */
export function isKept(
  entry: Entry,
  { code, digest }: Promised,
  report: () => string | undefined,
): boolean {
  switch (code) {
    case "accepted":
      return entry.kind === "usage" && digestOf(entry.body.jws) === digest;
    case "conflict":
      return entry.kind === "conflict" && digestOf(entry.body.jws) === digest;
    case "duplicate":
      return entry.kind === "usage" && hasFactOf(entry.body.jws, report());
    default:
      return (
        entry.kind === "hold" && entry.body.code === code && digestOf(entry.body.jws) === digest
      );
  }
}

export function digestOf(jws: string): string {
  return encodeBase64(createHash("sha256").update(jws).digest());
}

function isAnswer({ code, index, leaf }: Result): boolean {
  if (STANDING.has(code)) return index !== undefined && leaf !== undefined;
  return REFUSED.has(code) && index === undefined && leaf === undefined;
}

function hasFactOf(stands: string, report: string | undefined): boolean {
  if (report === undefined) return true;
  const [theirs, ours] = [factOf(stands), factOf(report)];
  return theirs !== undefined && ours !== undefined && equal(theirs, ours);
}

function factOf(jws: string): Hash | undefined {
  const compact = readCompact(jws);
  const report = Report.safeParse(compact && parseCanonical(compact.payload));
  return report.success ? fact(report.data) : undefined;
}

/** Of places that ascend. */
function ranges(places: readonly number[]): Range[] {
  const found: Range[] = [];
  for (const place of places) {
    const last = found.at(-1);
    if (last?.[1] === place) last[1] += 1;
    else found.push([place, place + 1]);
  }
  return found;
}
