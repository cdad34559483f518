/** Payloads of the two statements that make and end keys (BYTES §2), read after their signatures. */
import { thumbprint } from "./ed25519.ts";
import { parseCanonical } from "./json.ts";
import { readCompact } from "./jws.ts";
import { Claim, Rotation, TYP } from "./report.ts";
import { decodeBase64url } from "./text.ts";

/** `publicKey` is the key that the statement names, `thumbprint` its kid. */
interface Statement<P> {
  /** Of the key that signed. */
  readonly signer: string;
  readonly payload: P;
  readonly publicKey: Uint8Array;
  readonly thumbprint: string;
}

/**
 * By the new key over itself: signer and thumbprint are one. Undefined unless strict in form, header,
 * payload and thumbprint; the signature and `admissibleKey` are the caller's to ask.
 */
export function readClaim(jws: string): Statement<Claim> | undefined {
  const claim = readStatement(jws, TYP.claim, Claim);
  return claim?.signer === claim?.thumbprint ? claim : undefined;
}

/** By the old key over its successor's. Undefined unless strict in form, header and payload. */
export function readRotation(jws: string): Statement<Rotation> | undefined {
  return readStatement(jws, TYP.rotation, Rotation);
}

function readStatement<P extends Claim | Rotation>(
  jws: string,
  typ: string,
  schema: { safeParse(value: unknown): { data?: P } },
): Statement<P> | undefined {
  const compact = readCompact(jws);
  if (compact?.typ !== typ) return undefined;
  const payload = schema.safeParse(parseCanonical(compact.payload)).data;
  const publicKey = payload && decodeBase64url(payload.public_key.x);
  if (payload === undefined || publicKey === undefined) return undefined;
  return { signer: compact.kid, payload, publicKey, thumbprint: thumbprint(publicKey) };
}
