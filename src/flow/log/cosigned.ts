/** Cosignatures, as witnesses answer them and as they are stored: lines under a witness's key. */
import { linesOf, openNote, type Vkey } from "../../core/note.ts";
import { type Policy, reachesQuorum, witnessId } from "../../core/policy.ts";
import type { CosignedCheckpoint } from "../../store/cosignatures.ts";
import { verifySignature } from "../report/signature.ts";

/** `line` with its newline; `time` in seconds, as the witness signed it. */
export interface OpenedCosignature {
  line: string;
  time: bigint;
}

/**
 * The one line among these that is under the key, for exactly this text; other keys' lines are let
 * pass. A string is why not.
 *
 * @param text of the checkpoint, with its final newline
 */
export function openCosignature(
  text: string,
  lines: string,
  vkey: Vkey,
): OpenedCosignature | "malformed" | "bad-signature" | "unknown-key" {
  const note = `${text}\n${lines}`;
  const opened = openNote(note, [vkey], verifySignature);
  if ("problem" in opened) return opened.problem;
  // An empty line among the answered ones would move the end of the text.
  const parted = linesOf(note);
  const found = parted?.lines.find(({ name, id }) => name === vkey.name && id === vkey.id);
  const time = opened.signatures[0]?.time;
  if (opened.text !== text || found === undefined || !time) return "malformed";
  return { line: found.line, time };
}

/** By witness of the policy: what the database holds is believed as far as it verifies. */
export function genuineCosignatures(
  { note, cosignatures }: CosignedCheckpoint,
  { witnesses }: Policy,
): { vkey: Vkey; time: bigint }[] {
  const text = textOf(note);
  return witnesses.flatMap(({ vkey }) => {
    const stored = cosignatures.find(({ key_id }) => key_id === vkey.id);
    const opened = stored && openCosignature(text, stored.line, vkey);
    return typeof opened === "object" ? [{ vkey, time: opened.time }] : [];
  });
}

/** Is there a policy that asks for anybody? */
export function asksForQuorum(policy: Policy | undefined): policy is Policy {
  return policy !== undefined && !reachesQuorum(policy, new Set());
}

export function hasQuorum(checkpoint: CosignedCheckpoint, policy: Policy): boolean {
  const held = genuineCosignatures(checkpoint, policy);
  return reachesQuorum(policy, new Set(held.map(({ vkey }) => witnessId(vkey))));
}

/** What is signed of a note. @throws Error for a note that we cannot have stored */
export function textOf(note: string): string {
  const parted = linesOf(note);
  if (parted === undefined) throw new Error("checkpoint: stored as no note");
  return parted.text;
}
