/** What node:crypto verifies, with the key made once: the measure that reports are held against. */
import { createPublicKey, type KeyObject, verify } from "node:crypto";
import { readClaim } from "../src/core/claim.ts";
import { readCompact } from "../src/core/jws.ts";
import { encodeBase64url } from "../src/core/text.ts";

export interface Signature {
  input: Uint8Array;
  signature: Uint8Array;
}

const IN_FLIGHT = 64;

/** @throws Error for a text that is no compact JWS */
export function signaturesOf(texts: readonly string[]): Signature[] {
  return texts.map((text) => {
    const jws = readCompact(text);
    if (jws === undefined) throw new Error("baseline: not a JWS");
    return { input: jws.input, signature: jws.signature };
  });
}

/** The key that a claim brings. */
export function publicKeyOf(claim: string): KeyObject {
  const { publicKey } = readClaim(claim) ?? {};
  if (publicKey === undefined) throw new Error("baseline: not a claim");
  const x = encodeBase64url(publicKey);
  return createPublicKey({ format: "jwk", key: { crv: "Ed25519", kty: "OKP", x } });
}

/** One after the other, on one core. */
export function verifyOnOneCore(key: KeyObject, signatures: readonly Signature[]): void {
  for (const { input, signature } of signatures) {
    if (!verify(null, input, key, signature)) throw new Error("baseline: a bad signature");
  }
}

/** 64 in flight, on libuv's threads. */
export async function verifyOnAllCores(
  key: KeyObject,
  signatures: readonly Signature[],
): Promise<void> {
  let next = 0;
  const lane = async (): Promise<void> => {
    for (let i = next++; i < signatures.length; i = next++) {
      const { input, signature } = signatures[i] as Signature;
      if (!(await verifySoon(key, input, signature))) throw new Error("baseline: a bad signature");
    }
  };
  await Promise.all(Array.from({ length: IN_FLIGHT }, lane));
}

function verifySoon(key: KeyObject, input: Uint8Array, signature: Uint8Array): Promise<boolean> {
  return new Promise((resolve, reject) => {
    verify(null, input, key, signature, (error, good) => (error ? reject(error) : resolve(good)));
  });
}
