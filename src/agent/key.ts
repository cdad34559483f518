/** The agent's own keys: made here, kept in files that only their owner reads, never sent. */
import {
  createPrivateKey,
  createPublicKey,
  generateKeyPairSync,
  type KeyObject,
  sign,
  verify,
} from "node:crypto";
import { mkdirSync, readFileSync, statSync } from "node:fs";
import { join } from "node:path";
import { z } from "zod";
import { thumbprint, type Verify } from "../core/ed25519.ts";
import { canonical, type Json } from "../core/json.ts";
import { compact, headerSegment } from "../core/jws.ts";
import type { PublicKey } from "../core/report.ts";
import { decodeBase64url, encodeBase64url } from "../core/text.ts";
import { createFile } from "./durable.ts";
import { AgentError } from "./failure.ts";

/** RFC 8037 §2: `x` is the public part, `d` the private one, 32 bytes each. */
const PrivateJwk = z.strictObject({
  crv: z.literal("Ed25519"),
  d: z.string().length(43),
  kty: z.literal("OKP"),
  x: z.string().length(43),
});

export interface SigningKey {
  /** RFC 7638 thumbprint. */
  kid: string;
  publicKey: z.infer<typeof PublicKey>;
  privateKey: KeyObject;
}

const GROUP_AND_OTHERS = 0o077;

/** Makes a key and returns once its file is durable: what it signs can be answered for later. */
export function createKey(folder: string): SigningKey {
  const jwk = generateKeyPairSync("ed25519").privateKey.export({ format: "jwk" });
  const key = fromJwk(PrivateJwk.parse(jwk));
  mkdirSync(folder, { recursive: true, mode: 0o700 });
  const { crv, d, kty, x } = PrivateJwk.parse(jwk);
  if (!createFile(keyPath(folder, key.kid), JSON.stringify({ crv, d, kty, x }))) {
    throw new Error("agent: a new key came twice");
  }
  return key;
}

/** @throws AgentError `damaged`, when the file is not the key of its name or others may read it */
export function loadKey(folder: string, kid: string): SigningKey {
  const path = keyPath(folder, kid);
  try {
    if ((statSync(path).mode & GROUP_AND_OTHERS) !== 0) {
      throw new AgentError(
        "damaged",
        `${path} can be read by others: chmod 600, and rotate the key.`,
      );
    }
    const key = fromJwk(PrivateJwk.parse(JSON.parse(readFileSync(path, "utf8"))));
    if (key.kid === kid) return key;
  } catch (cause) {
    if (cause instanceof AgentError) throw cause;
    throw new AgentError("damaged", `${path} cannot be read as a private key.`, { cause });
  }
  throw new AgentError("damaged", `${path} holds another key than its name says.`);
}

/** Signs payloads of one `typ`; the header segment is made once. */
export function signer(key: SigningKey, typ: string): (payload: Json) => string {
  const header = headerSegment(key.kid, typ);
  return (payload) =>
    compact(header, canonical(payload), (input) => sign(null, input, key.privateKey));
}

/** OpenSSL's opinion of a signature by somebody else's key. */
export const verifySignature: Verify = (signature, message, publicKey) => {
  const jwk = { crv: "Ed25519", kty: "OKP", x: encodeBase64url(publicKey) };
  return verify(null, message, createPublicKey({ key: jwk, format: "jwk" }), signature);
};

function fromJwk(jwk: z.infer<typeof PrivateJwk>): SigningKey {
  const privateKey = createPrivateKey({ key: jwk, format: "jwk" });
  const publicBytes = decodeBase64url(jwk.x);
  if (publicBytes === undefined) throw new Error("agent: a key that is not base64url");
  const { crv, kty, x } = jwk;
  return { kid: thumbprint(publicBytes), publicKey: { crv, kty, x }, privateKey };
}

function keyPath(folder: string, kid: string): string {
  return join(folder, `${kid}.json`);
}
