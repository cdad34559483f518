/** Checkpoints as the archive holds them: notes under the log's own key. */
import { type Checkpoint, formatCheckpoint, parseCheckpoint } from "../../core/checkpoint.ts";
import {
  formatVkey,
  openNote,
  parseVkey,
  type Signer,
  signNote,
  type Vkey,
} from "../../core/note.ts";
import { verifySignature } from "../report/signature.ts";

/** Reading a key costs a scalar multiplication: once for each signer. */
const vkeys = new WeakMap<Signer, Vkey>();

export function signCheckpoint(signer: Signer, tree: Omit<Checkpoint, "origin">): string {
  return signNote(formatCheckpoint({ origin: signer.name, ...tree }), [signer]);
}

/** Undefined unless this signer signed the note, and for this log. */
export function openCheckpoint(signer: Signer, note: string): Checkpoint | undefined {
  const opened = openNote(note, [vkeyOf(signer)], verifySignature);
  if ("problem" in opened) return undefined;
  const checkpoint = parseCheckpoint(opened.text);
  return checkpoint?.origin === signer.name ? checkpoint : undefined;
}

/** @throws Error when the signer's own key is not one that a note can be verified with */
function vkeyOf(signer: Signer): Vkey {
  const vkey = vkeys.get(signer) ?? parseVkey(formatVkey(signer.name, signer.publicKey));
  if (vkey === undefined) throw new Error("checkpoint: the log's key is inadmissible");
  vkeys.set(signer, vkey);
  return vkey;
}
