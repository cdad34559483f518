/**
 * Compact JWS (RFC 7515 §3.1) in the one form that is taken here. Only its third segment is malleable:
 * a lax reader takes other signature texts for the same statement, and digests of it would differ.
 */
import { decodeBase64url, decodeUtf8, encodeBase64url, encodeUtf8 } from "./text.ts";

export interface CompactJws {
  /** Thumbprint of the signing key, 43 characters of base64url (RFC 7638). */
  kid: string;
  /** What was signed, with its version, as `usage-report-v1+jws`. */
  typ: string;
  payload: Uint8Array;
  /** 64 bytes; not judged by reading. */
  signature: Uint8Array;
  /** ASCII of `header.payload`: what was signed. */
  input: Uint8Array;
}

const COMPACT_BYTES_MAX = 4096;
/** Of 64 bytes, in base64url. */
const SIGNATURE_CHARS = 86;
const HEADER = /^\{"alg":"Ed25519","kid":"([\w-]{43})","typ":"([a-z0-9+.-]{1,64})"\}$/;

/**
 * Undefined unless the text is exactly what `compact` would write: at most 4,096 bytes, no padding, no
 * stray bits in any segment, a header of these three members in this form. `alg` of RFC 9864.
 */
export function readCompact(text: string): CompactJws | undefined {
  if (text.length > COMPACT_BYTES_MAX) return undefined;
  // A dot too many is left in the payload, where no letter of base64url is a dot.
  const [first, last] = [text.indexOf("."), text.length - SIGNATURE_CHARS - 1];
  if (first < 1 || last <= first + 1 || text[last] !== ".") return undefined;
  const headerBytes = decodeBase64url(text.slice(0, first));
  const payload = decodeBase64url(text.slice(first + 1, last));
  const signature = decodeBase64url(text.slice(last + 1));
  if (!headerBytes || !payload || !signature) return undefined;
  const [, kid, typ] = HEADER.exec(decodeUtf8(headerBytes) ?? "") ?? [];
  if (kid === undefined || typ === undefined) return undefined;
  return { kid, typ, payload, signature, input: encodeUtf8(text.slice(0, last)) };
}

/** The first segment: constant for a key and a `typ`, so made once. Throws on what no reader takes. */
export function headerSegment(kid: string, typ: string): string {
  const header = `{"alg":"Ed25519","kid":"${kid}","typ":"${typ}"}`;
  if (!HEADER.test(header)) throw new Error("jws: a kid or typ that no reader takes");
  return encodeBase64url(encodeUtf8(header));
}

/** Signs a well-formed, non-empty payload. Throws when the result passes 4,096 bytes. */
export function compact(
  header: string,
  payload: string,
  sign: (input: Uint8Array) => Uint8Array,
): string {
  const input = signingInput(header, payload);
  return signedCompact(input, sign(encodeUtf8(input)));
}

/** What is signed for a payload, for a signature that takes its time. */
export function signingInput(header: string, payload: string): string {
  return `${header}.${encodeBase64url(encodeUtf8(payload))}`;
}

/** Throws when the result passes 4,096 bytes. */
export function signedCompact(input: string, signature: Uint8Array): string {
  const text = `${input}.${encodeBase64url(signature)}`;
  if (text.length > COMPACT_BYTES_MAX) throw new Error("jws: longer than any reader takes");
  return text;
}
