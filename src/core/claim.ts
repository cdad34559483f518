/** Payloads of what agents sign: claim, rotation, attestation, report (BYTES §2), read after their signatures. */
import { thumbprint } from "./ed25519.ts";
import { parseCanonical } from "./json.ts";
import { readCompact } from "./jws.ts";
import { Attestation, Claim, Report, Rotation, TYP } from "./report.ts";
import { decodeBase64url } from "./text.ts";

interface Signed<P> {
  /** Of the key that signed. */
  readonly signer: string;
  readonly payload: P;
}

/** `publicKey` is the key that the statement names, `thumbprint` its kid. */
interface Statement<P> extends Signed<P> {
  readonly publicKey: Uint8Array;
  readonly thumbprint: string;
}

interface Shape<P> {
  safeParse(value: unknown): { data?: P };
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

/** An agent's high-water marks. Undefined unless strict in form, header and payload. */
export function readAttestation(jws: string): Signed<Attestation> | undefined {
  return readSigned(jws, TYP.attestation, Attestation);
}

/** Undefined unless strict in form, header and payload. */
export function readReport(jws: string): Signed<Report> | undefined {
  return readSigned(jws, TYP.report, Report);
}

function readStatement<P extends Claim | Rotation>(
  jws: string,
  typ: string,
  schema: Shape<P>,
): Statement<P> | undefined {
  const signed = readSigned(jws, typ, schema);
  const publicKey = signed && decodeBase64url(signed.payload.public_key.x);
  if (signed === undefined || publicKey === undefined) return undefined;
  return { ...signed, publicKey, thumbprint: thumbprint(publicKey) };
}

function readSigned<P>(jws: string, typ: string, schema: Shape<P>): Signed<P> | undefined {
  const compact = readCompact(jws);
  if (compact?.typ !== typ) return undefined;
  const payload = schema.safeParse(parseCanonical(compact.payload)).data;
  return payload && { signer: compact.kid, payload };
}
