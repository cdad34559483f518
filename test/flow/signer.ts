/** Signers of checkpoints under fixed keys, which no entry ever changes. */
import type { Vkey } from "../../src/core/note.ts";
import type { SigningKey } from "../../src/flow/key/signing-key.ts";
import {
  type CheckpointSigner,
  checkpointSigner,
  type SignerFor,
} from "../../src/flow/log/signed-checkpoint.ts";
import type { TestKey } from "../signing.ts";

export function held(key: TestKey): SigningKey {
  return { publicKey: key.publicKey, sign: async (message) => key.sign(message) };
}

/** Of every log of a service of this name: `<service>/<log>` is its origin. */
export function signersUnder(
  service: string,
  ...keys: TestKey[]
): { signerFor: SignerFor; vkeyOf: (log: string) => Vkey } {
  const signers = new Map<string, CheckpointSigner>();
  const signerOf = (log: string): CheckpointSigner => {
    const signer = signers.get(log) ?? checkpointSigner(`${service}/${log}`, keys.map(held));
    signers.set(log, signer);
    return signer;
  };
  return { signerFor: async (_, log) => signerOf(log), vkeyOf: (log) => signerOf(log).vkey };
}
