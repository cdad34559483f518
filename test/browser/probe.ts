/** Runs in the browser: one signature at a time, by each of the ways that the auditor has there. */
import { openWebVerify, type WebVerify } from "../../audit/web/verify.ts";
import {
  admissibleKey,
  admissibleSignature,
  thumbprint,
  verdict,
  verifyByPoints,
} from "../../src/core/ed25519.ts";
import { readCompact } from "../../src/core/jws.ts";
import { decodeHex } from "../../src/core/text.ts";

/** In hex. */
export interface Signed {
  publicKey: string;
  message: string;
  signature: string;
}

/** `web` is the same as `points` said again where the browser has no Ed25519: ask `hasWebCrypto`. */
export interface Verdicts {
  points: boolean;
  web: boolean;
}

export async function hasWebCrypto(): Promise<boolean> {
  return (await openWebVerify()) !== undefined;
}

export async function judgeSignatures(signed: readonly Signed[]): Promise<Verdicts[]> {
  const web = await webVerify();
  return await Promise.all(
    signed.map(({ message, publicKey, signature }) =>
      judge(hex(signature), hex(message), hex(publicKey), web),
    ),
  );
}

/** Under one key, in hex. What cannot be read is refused whoever verifies. */
export async function judgeJws(texts: readonly string[], publicKey: string): Promise<Verdicts[]> {
  const web = await webVerify();
  const key = hex(publicKey);
  return await Promise.all(
    texts.map(async (text) => {
      const jws = readCompact(text);
      if (jws?.kid !== thumbprint(key)) return { points: false, web: false };
      return await judge(jws.signature, jws.input, key, web);
    }),
  );
}

async function webVerify(): Promise<WebVerify> {
  return (await openWebVerify()) ?? (async (...question) => verifyByPoints(...question));
}

async function judge(
  signature: Uint8Array,
  message: Uint8Array,
  publicKey: Uint8Array,
  web: WebVerify,
): Promise<Verdicts> {
  const asked = admissibleKey(publicKey) && admissibleSignature(signature);
  return {
    points: asked && verdict(signature, message, publicKey, verifyByPoints),
    web: asked && (await web(signature, message, publicKey)),
  };
}

function hex(text: string): Uint8Array {
  const bytes = decodeHex(text);
  if (bytes === undefined) throw new Error("probe: not hex");
  return bytes;
}
