/** C2SP signed-note with Ed25519 keys: the envelope of checkpoints. */
import { admissibleKey, type Verify, verdict } from "./ed25519.ts";
import { sha256 } from "./hash.ts";
import { concat, decodeBase64, encodeBase64, encodeHex, encodeUtf8, isWellFormed } from "./text.ts";

/** A key that notes are opened with; `id` is the first 4 bytes of a hash, as 8 hex digits. */
export interface Vkey {
  name: string;
  id: string;
  publicKey: Uint8Array;
}

export interface Signer {
  name: string;
  publicKey: Uint8Array;
  sign(message: Uint8Array): Uint8Array;
}

/** `verified`: names of the keys whose signature holds, in the note's order; there is at least one. */
export type OpenedNote =
  | { text: string; verified: string[] }
  | { problem: "malformed" | "bad-signature" | "unknown-key" };

interface SignatureLine {
  name: string;
  id: string;
  signature: Uint8Array;
}

const ED25519_TYPE = 0x01;
const ID_BYTES = 4;
const SIGNATURES_MAX = 100;
const NAME = /^[^\p{White_Space}+]+$/u;
const TEXT = /^[\n\u{20}-\u{10FFFF}]*\n$/u;
const LINE = /^\u2014 ([^\p{White_Space}+]+) (\S+)$/u;
const VKEY = /^([^\p{White_Space}+]+)\+([0-9a-f]{8})\+(\S+)$/u;

/**
 * `name+id+base64(type ‖ key)`. Undefined unless the type is Ed25519's, the id that of this name and
 * key, and the key admissible.
 */
export function parseVkey(text: string): Vkey | undefined {
  const [, name = "", id, data = ""] = VKEY.exec(text) ?? [];
  const bytes = decodeBase64(data);
  if (bytes?.[0] !== ED25519_TYPE || !isWellFormed(name)) return undefined;
  const publicKey = bytes.slice(1);
  const known = encodeHex(keyId(name, publicKey)) === id && admissibleKey(publicKey);
  return known ? { name, id, publicKey } : undefined;
}

/** Throws on a name that is empty or holds white space or `+`. */
export function formatVkey(name: string, publicKey: Uint8Array): string {
  const id = encodeHex(keyId(name, publicKey));
  return `${name}+${id}+${encodeBase64(concat(Uint8Array.of(ED25519_TYPE), publicKey))}`;
}

/** Throws on a text that does not end in a newline, or holds any other control character. */
export function signNote(text: string, signers: readonly Signer[]): string {
  if (!isNoteText(text)) throw new Error("note: not a text that can be signed");
  if (signers.length === 0) throw new Error("note: nobody signs");
  const message = encodeUtf8(text);
  const lines = signers.map((signer) => {
    const id = keyId(signer.name, signer.publicKey);
    return `\u2014 ${signer.name} ${encodeBase64(concat(id, signer.sign(message)))}\n`;
  });
  return `${text}\n${lines.join("")}`;
}

/**
 * Signatures by keys that are not among `vkeys` are ignored. One by a key among them that does not
 * hold, or that comes twice, refuses the whole note; so does a note without any that holds.
 */
export function openNote(note: string, vkeys: readonly Vkey[], verify: Verify): OpenedNote {
  const parts = splitNote(note);
  if (parts === undefined) return { problem: "malformed" };
  const message = encodeUtf8(parts.text);
  const verified = new Set<Vkey>();
  for (const { name, id, signature } of parts.lines) {
    const key = vkeys.find((vkey) => vkey.name === name && vkey.id === id);
    if (key === undefined) continue;
    if (verified.has(key)) return { problem: "malformed" };
    if (!verdict(signature, message, key.publicKey, verify)) return { problem: "bad-signature" };
    verified.add(key);
  }
  if (verified.size === 0) return { problem: "unknown-key" };
  return { text: parts.text, verified: Array.from(verified, (key) => key.name) };
}

/** Text and signature lines part at the last empty line: the text may hold empty lines itself. */
function splitNote(note: string): { text: string; lines: SignatureLine[] } | undefined {
  const end = note.lastIndexOf("\n\n");
  if (end < 0 || !isNoteText(note)) return undefined;
  const rows = note.slice(end + 2, -1).split("\n", SIGNATURES_MAX + 1);
  if (rows.length > SIGNATURES_MAX) return undefined;
  const lines = rows.map(readLine).filter((line) => line !== undefined);
  return lines.length === rows.length ? { text: note.slice(0, end + 1), lines } : undefined;
}

function readLine(row: string): SignatureLine | undefined {
  const [, name = "", data = ""] = LINE.exec(row) ?? [];
  const bytes = decodeBase64(data);
  if (bytes === undefined || bytes.length <= ID_BYTES) return undefined;
  return { name, id: encodeHex(bytes.subarray(0, ID_BYTES)), signature: bytes.slice(ID_BYTES) };
}

function isNoteText(text: string): boolean {
  return TEXT.test(text) && isWellFormed(text);
}

/** SHA-256(name ‖ newline ‖ type ‖ key), its first 4 bytes. */
function keyId(name: string, publicKey: Uint8Array): Uint8Array {
  if (!NAME.test(name)) throw new Error("note: not a key name");
  const label = encodeUtf8(`${name}\n`);
  return sha256(concat(label, Uint8Array.of(ED25519_TYPE), publicKey)).subarray(0, ID_BYTES);
}
