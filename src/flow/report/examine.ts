/**
 * Everything about a signed text that needs no database, in the order of BYTES §3: strict form → known
 * key → signature → canonical and schema. Runs in the verifier's threads, and for what comes seldom
 * (attestations, claims, rotations) in the caller's.
 */
import type { z } from "zod";
import { verdict } from "../../core/ed25519.ts";
import type { Hash } from "../../core/hash.ts";
import { parseCanonical } from "../../core/json.ts";
import { type CompactJws, readCompact } from "../../core/jws.ts";
import type { ProblemCode } from "../../core/problem.ts";
import { decodeUtf8, encodeUtf8 } from "../../core/text.ts";
import { LogId, PositiveText } from "../../core/unit.ts";
import { sha256, verifySignature } from "./signature.ts";

/** A text of which nothing, or only its signature, could be relied on. */
export interface Refused {
  kind: "refused";
  code: ProblemCode;
  /** SHA-256 of the text. */
  digest: Hash;
  jws: string;
  /** Present exactly if the signature is good. */
  kid?: string;
  /** Of a signed payload that is no proper report, if they could be read. */
  counter?: string;
  log?: string;
}

export interface Examined<T> {
  kind: "signed";
  jws: string;
  kid: string;
  digest: Hash;
  payload: T;
}

/** The public key of a kid: 32 bytes that `admissibleKey` has let in. */
export type KeyOf = (jws: CompactJws) => Uint8Array | undefined;

export function examine<T extends z.ZodType>(
  text: string,
  typ: string,
  shape: T,
  keyOf: KeyOf,
): Examined<z.infer<T>> | Refused {
  const digest = sha256(encodeUtf8(text));
  const jws = readCompact(text);
  if (jws === undefined) return { kind: "refused", code: "malformed", digest, jws: text };
  const key = keyOf(jws);
  if (key === undefined) return { kind: "refused", code: "unknown-key", digest, jws: text };
  if (!verdict(jws.signature, jws.input, key, verifySignature)) {
    return { kind: "refused", code: "bad-signature", digest, jws: text };
  }
  const { kid } = jws;
  const signed = { digest, jws: text, kid };
  // The counter of another typ counts something else, so none is read from it.
  if (jws.typ !== typ) return { kind: "refused", code: "wrong-typ", ...signed };
  const value = parseCanonical(jws.payload);
  if (value === undefined) {
    return { kind: "refused", code: "non-canonical", ...signed, ...legible(jws.payload) };
  }
  const payload = shape.safeParse(value);
  if (!payload.success) {
    return { kind: "refused", code: "schema", ...signed, ...legible(jws.payload) };
  }
  return { kind: "signed", ...signed, payload: payload.data };
}

/** Counter and log of a payload that is no proper report: so that its counter is accounted for. */
function legible(payload: Uint8Array): { counter?: string; log?: string } {
  const value = lax(payload);
  if (typeof value !== "object" || value === null) return {};
  const counter = PositiveText.safeParse("counter" in value ? value.counter : undefined);
  const log = LogId.safeParse("log" in value ? value.log : undefined);
  return {
    ...(counter.success && { counter: counter.data }),
    ...(log.success && { log: log.data }),
  };
}

function lax(payload: Uint8Array): unknown {
  try {
    return JSON.parse(decodeUtf8(payload) ?? "");
  } catch {
    return undefined; // no JSON: nothing to read a counter from
  }
}
