/** What agents signed, read and verified where it is asked for. */
import type { Verify } from "../../src/core/ed25519.ts";
import type { Sha256 } from "../../src/core/hash.ts";
import { type Reader, readSigned } from "./statement.ts";

export function readHere(tools: { hash: Sha256; verify: Verify }): Reader {
  const keys = new Map<string, Uint8Array>();
  return {
    learn: (kid, publicKey) => {
      keys.set(kid, publicKey);
    },
    read: async (texts) => texts.map((text) => readSigned(text, keys, tools)),
  };
}
