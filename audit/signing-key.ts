/** The key that an auditor signs reports with: Ed25519, PKCS #8 PEM. */
import { createPrivateKey, createPublicKey, type KeyObject, sign } from "node:crypto";
import { decodeBase64url } from "../src/core/text.ts";
import { CannotLook } from "./finding.ts";
import { readFile } from "./given.ts";

export interface SigningKey {
  publicKey: Uint8Array;
  sign(input: Uint8Array): Uint8Array;
}

export function readSigningKey(path: string): SigningKey {
  const privateKey = parseKey(path);
  const { x } = createPublicKey(privateKey).export({ format: "jwk" });
  const publicKey = typeof x === "string" ? decodeBase64url(x) : undefined;
  if (privateKey.asymmetricKeyType !== "ed25519" || publicKey === undefined) {
    throw new CannotLook(`${path} holds a key that is not Ed25519`);
  }
  return { publicKey, sign: (input) => new Uint8Array(sign(null, input, privateKey)) };
}

function parseKey(path: string): KeyObject {
  const pem = readFile(path);
  try {
    return createPrivateKey(pem);
  } catch (error) {
    throw new CannotLook(`${path} holds no private key in PEM`, { cause: error });
  }
}
