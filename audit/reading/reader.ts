/** Bundles, read where it is asked for. */
import type { Verify } from "../../src/core/ed25519.ts";
import type { Sha256 } from "../../src/core/hash.ts";
import { type Packed, packBundle } from "./bundle.ts";
import { Keys } from "./keys.ts";

/** Reads bundles here or elsewhere, in the order that it was asked. */
export interface Reader {
  /** `kid` must be the key's thumbprint. Counts for what is read later. */
  learn(kid: string, publicKey: Uint8Array): void;
  read(bundle: Uint8Array): Promise<Packed>;
}

export function readHere(tools: { hash: Sha256; verify: Verify }): Reader {
  const keys = new Keys();
  return {
    learn: (kid, publicKey) => keys.learn(kid, publicKey),
    read: async (bundle) => packBundle(bundle, { ...tools, keys }),
  };
}
