/** Hashes and signatures by node:crypto, on all cores. */
import { createHash, createPublicKey, type KeyObject, verify } from "node:crypto";
import type { Verify } from "../src/core/ed25519.ts";
import type { Sha256 } from "../src/core/hash.ts";
import { encodeBase64url } from "../src/core/text.ts";
import type { VerifySoon } from "./judgement.ts";

export const sha256: Sha256 = (bytes) => createHash("sha256").update(bytes).digest();

/** Keys are made once: it costs as much as a hash over half a megabyte. */
const keys = new Map<string, KeyObject>();

export const verifyNow: Verify = (signature, message, publicKey) =>
  verify(null, message, keyOf(publicKey), signature);

/** Runs on libuv's threads, four of them unless UV_THREADPOOL_SIZE says otherwise. */
export const verifySoon: VerifySoon = (signature, message, publicKey) =>
  new Promise((resolve) => {
    verify(null, message, keyOf(publicKey), signature, (error, holds) => {
      resolve(error === null && holds);
    });
  });

function keyOf(publicKey: Uint8Array): KeyObject {
  const x = encodeBase64url(publicKey);
  const known = keys.get(x);
  if (known !== undefined) return known;
  const key = createPublicKey({ format: "jwk", key: { crv: "Ed25519", kty: "OKP", x } });
  keys.set(x, key);
  return key;
}
