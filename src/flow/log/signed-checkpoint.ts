/** Checkpoints as the archive holds them: notes under the log's own keys. */
import { type Checkpoint, parseCheckpoint } from "../../core/checkpoint.ts";
import { formatVkey, noteOf, openNote, parseVkey, type Vkey } from "../../core/note.ts";
import { signatureLine } from "../../core/signature-line.ts";
import { encodeUtf8 } from "../../core/text.ts";
import type { Sql, Transaction } from "../../store/connect.ts";
import type { SigningKey } from "../key/signing-key.ts";
import { verifySignature } from "../report/signature.ts";

/** Who signs the checkpoints of one log, and whose signatures on them count. */
export interface CheckpointSigner {
  /** The first key that signs. Its name is the log's origin, as that of all its keys. */
  readonly vkey: Vkey;
  /**
   * The note over a checkpoint's text, with a line of each key in force.
   *
   * @throws Problem `signer-unavailable`: nothing is signed unless all sign
   */
  sign(text: string): Promise<string>;
  /**
   * Undefined unless a key of the log's signed the note, for this log, and one that none of the entries
   * that the checkpoint covers has retired.
   */
  open(note: string): Checkpoint | undefined;
  /** Whether it is for that alone that `open` gives nothing. */
  isRetired(note: string): boolean;
}

/** A key that is trusted besides, in checkpoints of up to `retiredAt` entries. */
interface OtherKey {
  vkey: Vkey;
  /** Index of the entry that retired it. */
  retiredAt?: bigint | undefined;
}

/** The signer of a log by what its entries 0 … size−1 say of its keys. */
export type SignerFor = (
  sql: Sql | Transaction,
  log: string,
  size: bigint,
) => Promise<CheckpointSigner>;

/**
 * @param keys those in force, at least one
 * @param others not signed with any more, or not yet
 * @throws Error when a key is not one that a note can be verified with
 */
export function checkpointSigner(
  origin: string,
  keys: readonly SigningKey[],
  others: readonly OtherKey[] = [],
): CheckpointSigner {
  const own = keys.map(({ publicKey }) => vkeyOf(origin, publicKey));
  const [vkey] = own;
  if (vkey === undefined) throw new Error("checkpoint: a log without a key");
  const retired = new Map(others.map(({ vkey, retiredAt }) => [vkey, retiredAt]));
  const vkeys = [...own, ...retired.keys()];
  const read = (note: string): { checkpoint: Checkpoint; stands: boolean } | undefined => {
    const opened = openNote(note, vkeys, verifySignature);
    const checkpoint = "problem" in opened ? undefined : parseCheckpoint(opened.text);
    if ("problem" in opened || checkpoint?.origin !== origin) return undefined;
    const stands = opened.signatures.some(
      ({ vkey }) => checkpoint.size <= (retired.get(vkey) ?? checkpoint.size),
    );
    return { checkpoint, stands };
  };
  return {
    vkey,
    sign: async (text) => {
      const message = encodeUtf8(text);
      const lines = keys.map(async (key) =>
        signatureLine(origin, key.publicKey, await key.sign(message)),
      );
      return noteOf(text, await Promise.all(lines));
    },
    open: (note) => {
      const found = read(note);
      return found?.stands ? found.checkpoint : undefined;
    },
    isRetired: (note) => read(note)?.stands === false,
  };
}

function vkeyOf(origin: string, publicKey: Uint8Array): Vkey {
  const vkey = parseVkey(formatVkey(origin, publicKey));
  if (vkey === undefined) throw new Error("checkpoint: the log's key is inadmissible");
  return vkey;
}
