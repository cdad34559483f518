/**
 * A receipt: what a service answered to one request for a log, over its own signature. Each result
 * with an index promises that the entry with that leaf stands at that index of the log, under a
 * checkpoint no later than 24 hours after `issued_at`.
 */
import { z } from "zod";
import { thumbprint, type Verify, verdict } from "./ed25519.ts";
import { type Hash, leafHash, type Sha256 } from "./hash.ts";
import { canonical, parseCanonical } from "./json.ts";
import { type CompactJws, headerSegment, readCompact, signingInput } from "./jws.ts";
import { rootHash } from "./merkle.ts";
import type { Vkey } from "./note.ts";
import { decodeBase64, encodeBase64, encodeUtf8, equal } from "./text.ts";
import { HashText, InstantText, IntegerText, LogId, NonEmptyText, PositiveText } from "./unit.ts";

export const RECEIPT_TYP = "receipt-v1+jws";

/** How long a log may take to keep the promise (RFC 6962 §3 calls it the maximum merge delay). */
export const MERGE_DELAY_MS = 24 * 3_600_000;

/** A report's result as it was answered, in a batch or alone; codes of later versions included. */
export const ReceiptResult = z.strictObject({
  code: z.string().regex(/^[a-z-]{1,40}$/),
  counter: IntegerText.exactOptional(),
  digest: HashText,
  index: IntegerText.exactOptional(),
  leaf: HashText.exactOptional(),
});
export type ReceiptResult = z.infer<typeof ReceiptResult>;

/** `root` is the RFC 6962 root over the results in order, `count` how many they are. */
export const Receipt = z.strictObject({
  count: PositiveText,
  issued_at: InstantText,
  log: LogId,
  origin: NonEmptyText,
  root: HashText,
});
export type Receipt = z.infer<typeof Receipt>;

/** A receipt that is well-formed; who signed it is not judged yet. */
export interface ReadReceipt {
  readonly jws: CompactJws;
  readonly payload: Receipt;
}

/** The name that keys of receipts have: a key of one purpose never verifies for the other. */
export function receiptKeyName(origin: string): string {
  return `${origin}/receipt`;
}

/** RFC 6962 leaf over the result's canonical JSON. */
export function resultLeaf(result: ReceiptResult, hash?: Sha256): Hash {
  const { code, counter, digest, index, leaf } = result;
  // In the order of RFC 8785, and of letters that it writes as they are: `canonical` takes ten times as
  // long, a hundred times for each request.
  return leafHash(encodeUtf8(JSON.stringify({ code, counter, digest, index, leaf })), hash);
}

export function receiptRoot(results: readonly ReceiptResult[], hash?: Sha256): Hash {
  return rootHash(
    results.map((result) => resultLeaf(result, hash)),
    hash,
  );
}

/** What is to be signed for these results; the first two segments of the JWS. */
export function receiptInput(
  kid: string,
  statement: Pick<Receipt, "issued_at" | "log" | "origin">,
  results: readonly ReceiptResult[],
  hash?: Sha256,
): string {
  const root = encodeBase64(receiptRoot(results, hash));
  const payload = { ...statement, count: String(results.length), root };
  return signingInput(headerSegment(kid, RECEIPT_TYP), canonical(payload));
}

/** Undefined unless strict in form, header and payload. */
export function readReceipt(text: string): ReadReceipt | undefined {
  const jws = readCompact(text);
  if (jws?.typ !== RECEIPT_TYP) return undefined;
  const payload = Receipt.safeParse(parseCanonical(jws.payload)).data;
  return payload && { jws, payload };
}

/** Did this key, whose name is that of the receipt's origin, sign it? */
export function verifyReceipt({ jws, payload }: ReadReceipt, key: Vkey, verify: Verify): boolean {
  return (
    key.name === receiptKeyName(payload.origin) &&
    jws.kid === thumbprint(key.publicKey) &&
    verdict(jws.signature, jws.input, key.publicKey, verify)
  );
}

/** Are these the results that the receipt was issued for, all of them and in order? */
export function coversResults(
  { count, root }: Receipt,
  results: readonly ReceiptResult[],
  hash?: Sha256,
): boolean {
  const signed = decodeBase64(root);
  return (
    signed !== undefined &&
    count === String(results.length) &&
    equal(receiptRoot(results, hash), signed)
  );
}
