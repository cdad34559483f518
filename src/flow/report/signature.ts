/**
 * The fastest library at hand for the signature behind core's `verdict`. libsodium (60 to 80 µs on the
 * machine of docs/performance.md) comes prebuilt for most platforms and takes little more than half
 * of OpenSSL's time; where it does not load, node:crypto gives the same answers.
 */
import { createPublicKey, hash, type KeyObject, sign, verify } from "node:crypto";
import type { Verify } from "../../core/ed25519.ts";
import type { Sha256 } from "../../core/hash.ts";
import { decodeBase64url } from "../../core/text.ts";

/**
 * No Buffer: a slice of it would share its memory, and core slices to copy. Through a string, because
 * that takes half the time: the bytes then lie on the heap, without a memory block of their own.
 */
export const sha256: Sha256 = (bytes) => {
  const digest = hash("sha256", bytes, "binary");
  const out = new Uint8Array(digest.length);
  for (let i = 0; i < out.length; i += 1) out[i] = digest.charCodeAt(i);
  return out;
};

/** DER of an Ed25519 public key up to its 32 bytes (RFC 8410 §4). */
const SPKI = Buffer.from("302a300506032b6570032100", "hex");

/** Making a key object costs as much as a tenth of a verification: once for each array of bytes. */
const keyObjects = new WeakMap<Uint8Array, KeyObject>();

export const verifyByOpenssl: Verify = (signature, message, publicKey) => {
  let key = keyObjects.get(publicKey);
  if (key === undefined) {
    const der = Buffer.concat([SPKI, publicKey]);
    key = createPublicKey({ key: der, format: "der", type: "spki" });
    keyObjects.set(publicKey, key);
  }
  return verify(null, message, key, signature);
};

const sodium = await import("sodium-native").then(
  (module) => module.default,
  () => undefined, // no prebuilt library for this platform
);

export const verifySignature: Verify = sodium
  ? (signature, message, publicKey) =>
      sodium.crypto_sign_verify_detached(view(signature), view(message), view(publicKey))
  : verifyByOpenssl;

/**
 * Signs with an Ed25519 key of this process. Both libraries give the same bytes (RFC 8032 §5.1.6), and
 * libsodium takes half the time.
 */
export function signerOf(key: KeyObject): (message: Uint8Array) => Uint8Array {
  const seed = decodeBase64url(key.export({ format: "jwk" }).d ?? "");
  if (sodium === undefined || seed === undefined) return (message) => sign(null, message, key);
  const secretKey = Buffer.alloc(sodium.crypto_sign_SECRETKEYBYTES);
  sodium.crypto_sign_seed_keypair(
    Buffer.alloc(sodium.crypto_sign_PUBLICKEYBYTES),
    secretKey,
    view(seed),
  );
  return (message) => {
    const signature = Buffer.alloc(sodium.crypto_sign_BYTES);
    sodium.crypto_sign_detached(signature, view(message), secretKey);
    return new Uint8Array(signature);
  };
}

/** The same bytes under the type that sodium-native's declarations ask for. */
function view(bytes: Uint8Array): Buffer {
  return Buffer.from(bytes.buffer, bytes.byteOffset, bytes.length);
}
