/** Claims and rotations: statements that bring a public key, verified before they are believed. */
import { readClaim, readRotation } from "../../core/claim.ts";
import { admissibleKey, verdict } from "../../core/ed25519.ts";
import { readCompact } from "../../core/jws.ts";
import { Problem } from "../../core/problem.ts";
import type { Claim, Rotation } from "../../core/report.ts";
import { verifySignature } from "../report/signature.ts";

/** `kid` is that of the key which the statement brings, `signer` that of the key which signed. */
export interface Statement<P> {
  jws: string;
  payload: P;
  signer: string;
  kid: string;
}

/**
 * A claim, signed by the key that it brings: only who holds the key can bring it.
 *
 * @throws Problem `malformed`, `inadmissible-key`, `bad-signature`
 */
export function provenClaim(jws: string): Statement<Claim> {
  const claim = readClaim(jws);
  if (claim === undefined) throw new Problem("malformed");
  // Before the signature: under a key of small order anybody's signature is good.
  if (!admissibleKey(claim.publicKey)) throw new Problem("inadmissible-key");
  assertSigned(jws, claim.publicKey);
  return { jws, payload: claim.payload, signer: claim.signer, kid: claim.thumbprint };
}

/**
 * A rotation, signed by the old key.
 *
 * @param keyOf the public key of an enrolled kid
 * @throws Problem `malformed`, `unknown-key`, `bad-signature`
 */
export async function provenRotation(
  jws: string,
  keyOf: (kid: string) => Promise<Uint8Array | undefined>,
): Promise<Statement<Rotation>> {
  const rotation = readRotation(jws);
  if (rotation === undefined) throw new Problem("malformed");
  const publicKey = await keyOf(rotation.signer);
  if (publicKey === undefined) throw new Problem("unknown-key");
  assertSigned(jws, publicKey);
  return { jws, payload: rotation.payload, signer: rotation.signer, kid: rotation.thumbprint };
}

function assertSigned(jws: string, publicKey: Uint8Array): void {
  const compact = readCompact(jws);
  if (compact === undefined) throw new Problem("malformed");
  const { signature, input } = compact;
  if (!verdict(signature, input, publicKey, verifySignature)) throw new Problem("bad-signature");
}
