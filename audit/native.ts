/** Hashes and signatures by node:crypto. */
import { createPublicKey, hash, type KeyObject, verify } from "node:crypto";
import type { Verify } from "../src/core/ed25519.ts";
import type { Sha256 } from "../src/core/hash.ts";

/**
 * In one call: making a Hash object costs as much again as hashing an entry. And as text, a letter for each
 * byte: a Buffer brings memory outside of V8's heap, which costs more than hashing two nodes does.
 */
export const sha256: Sha256 = (bytes) => {
  const digest = hash("sha256", bytes, "binary");
  const copy = new Uint8Array(digest.length);
  for (let i = 0; i < copy.length; i += 1) copy[i] = digest.charCodeAt(i);
  return copy;
};

/**
 * Keys are made once: making one costs about a sixth of what verifying costs. By the array itself, which
 * nobody writes to: its text as a name for it would cost more than all else here.
 */
const keys = new WeakMap<Uint8Array, KeyObject>();

export const verifyNow: Verify = (signature, message, publicKey) =>
  verify(null, message, keyOf(publicKey), signature);

function keyOf(publicKey: Uint8Array): KeyObject {
  const known = keys.get(publicKey);
  if (known !== undefined) return known;
  const x = Buffer.from(publicKey).toString("base64url");
  const key = createPublicKey({ format: "jwk", key: { crv: "Ed25519", kty: "OKP", x } });
  keys.set(publicKey, key);
  return key;
}
