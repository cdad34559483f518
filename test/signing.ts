/** Fixed keys for tests, and the libraries whose verdicts must not differ. */
import { createPrivateKey, createPublicKey, type KeyObject, sign, verify } from "node:crypto";
import sodium from "sodium-native";
import type { Verify } from "../src/core/ed25519.ts";

export interface TestKey {
  readonly privateKey: KeyObject;
  readonly publicKey: Uint8Array;
  sign(message: Uint8Array): Uint8Array;
}

/** DER of a PKCS #8 Ed25519 key, and of its public half, up to the 32 bytes themselves (RFC 8410). */
const PKCS8 = Buffer.from("302e020100300506032b657004220420", "hex");
const SPKI = Buffer.from("302a300506032b6570032100", "hex");

/** By the byte of their seed: making one takes longer than all else that a test does with it. */
const keys = new Map<number, TestKey>();

/** The key whose seed is 32 times the given byte, or the given 32 bytes. */
export function testKey(seed: number | Uint8Array): TestKey {
  if (typeof seed !== "number") return keyOf(seed);
  const key = keys.get(seed) ?? keyOf(new Uint8Array(32).fill(seed));
  keys.set(seed, key);
  return key;
}

function keyOf(bytes: Uint8Array): TestKey {
  const der = Buffer.concat([PKCS8, bytes]);
  const privateKey = createPrivateKey({ key: der, format: "der", type: "pkcs8" });
  const spki = createPublicKey(privateKey).export({ format: "der", type: "spki" });
  return {
    privateKey,
    publicKey: new Uint8Array(spki.subarray(SPKI.length)),
    sign: (message) => new Uint8Array(sign(null, message, privateKey)),
  };
}

/** OpenSSL, by node:crypto. */
export const verifyByOpenssl: Verify = (signature, message, publicKey) => {
  const der = Buffer.concat([SPKI, publicKey]);
  return verify(
    null,
    message,
    createPublicKey({ key: der, format: "der", type: "spki" }),
    signature,
  );
};

/** libsodium, by sodium-native. */
export const verifyBySodium: Verify = (signature, message, publicKey) =>
  sodium.crypto_sign_verify_detached(
    Buffer.from(signature),
    Buffer.from(message),
    Buffer.from(publicKey),
  );
