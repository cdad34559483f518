/** C2SP signed-note with Ed25519 keys and cosignatures: the envelope of checkpoints. */
import { cosignatureMessage, readCosignature } from "./cosignature.ts";
import { admissibleKey, type Verify, verdict } from "./ed25519.ts";
import {
  type KeyType,
  keyId,
  readSignatureLine,
  type SignatureLine,
  signatureLine,
  TYPE_BYTE,
} from "./signature-line.ts";
import { concat, decodeBase64, encodeBase64, encodeHex, encodeUtf8, isWellFormed } from "./text.ts";

/** A key that notes are opened with; `id` is the first 4 bytes of a hash, as 8 hex digits. */
export interface Vkey {
  name: string;
  id: string;
  type: KeyType;
  publicKey: Uint8Array;
}

export interface Signer {
  name: string;
  publicKey: Uint8Array;
  sign(message: Uint8Array): Uint8Array;
}

/** A signature that holds; `time` is a cosignature's, in seconds since the epoch. */
export interface Signature {
  vkey: Vkey;
  time?: bigint;
}

/**
 * `signatures`: all by known keys, in the note's order; there is at least one. `verified`: the names of
 * those that signed the text as their own. Who only cosigned is not among them: a witness of a log's
 * name does not speak for the log.
 */
export type OpenedNote =
  | { text: string; verified: string[]; signatures: Signature[] }
  | { problem: "malformed" | "bad-signature" | "unknown-key" };

const SIGNATURES_MAX = 100;
const TEXT = /^[\n\u{20}-\u{10FFFF}]*\n$/u;
const VKEY = /^([^\p{White_Space}+]+)\+([0-9a-f]{8})\+(\S+)$/u;

/**
 * `name+id+base64(type ‖ key)`. Undefined unless the type is one of the two, the id that of this name,
 * type and key, and the key admissible.
 */
export function parseVkey(text: string): Vkey | undefined {
  const [, name = "", id = "", data = ""] = VKEY.exec(text) ?? [];
  const bytes = decodeBase64(data);
  const type = typeOf(bytes?.[0]);
  if (bytes === undefined || type === undefined || !isWellFormed(name)) return undefined;
  const publicKey = bytes.slice(1);
  const known = encodeHex(keyId(name, publicKey, type)) === id && admissibleKey(publicKey);
  return known ? { name, id, type, publicKey } : undefined;
}

/** Throws on a name that is empty or holds white space or `+`. */
export function formatVkey(name: string, publicKey: Uint8Array, type: KeyType = "ed25519"): string {
  const id = encodeHex(keyId(name, publicKey, type));
  return `${name}+${id}+${encodeBase64(concat(Uint8Array.of(TYPE_BYTE[type]), publicKey))}`;
}

/** Throws on a text that does not end in a newline, or holds any other control character. */
export function signNote(text: string, signers: readonly Signer[]): string {
  if (!isNoteText(text)) throw new Error("note: not a text that can be signed");
  const message = encodeUtf8(text);
  const lines = signers.map((signer) =>
    signatureLine(signer.name, signer.publicKey, signer.sign(message)),
  );
  return noteOf(text, lines);
}

/** A text and its signature lines, each with its newline. Throws unless `linesOf` reads it back. */
export function noteOf(text: string, lines: readonly string[]): string {
  const note = `${text}\n${lines.join("")}`;
  const read = linesOf(note);
  if (read?.text !== text || read.lines.length !== lines.length) {
    throw new Error("note: not to be read again");
  }
  return note;
}

/** The text, and 1 … 100 signature lines of which none is verified; undefined when malformed. */
export function linesOf(note: string): { text: string; lines: SignatureLine[] } | undefined {
  // Text and signatures part at the last empty line: the text may hold empty lines itself.
  const end = note.lastIndexOf("\n\n");
  if (end < 0 || !isNoteText(note)) return undefined;
  const rows = note.slice(end + 2, -1).split("\n", SIGNATURES_MAX + 1);
  if (rows.length > SIGNATURES_MAX) return undefined;
  const lines = rows.map(readSignatureLine).filter((line) => line !== undefined);
  return lines.length === rows.length ? { text: note.slice(0, end + 1), lines } : undefined;
}

/**
 * Signatures by keys that are not among `vkeys` are ignored. One by a key among them that does not
 * hold, or that comes twice, refuses the whole note; so does a note without any that holds.
 */
export function openNote(note: string, vkeys: readonly Vkey[], verify: Verify): OpenedNote {
  const parts = linesOf(note);
  if (parts === undefined) return { problem: "malformed" };
  const signatures = new Map<Vkey, Signature>();
  for (const { name, id, signature } of parts.lines) {
    const vkey = vkeys.find((key) => key.name === name && key.id === id);
    if (vkey === undefined) continue;
    if (signatures.has(vkey)) return { problem: "malformed" };
    const held = heldSignature(parts.text, vkey, signature, verify);
    if (held === undefined) return { problem: "bad-signature" };
    signatures.set(vkey, held);
  }
  if (signatures.size === 0) return { problem: "unknown-key" };
  const own = [...signatures.keys()].filter(({ type }) => type === "ed25519");
  return {
    text: parts.text,
    verified: own.map(({ name }) => name),
    signatures: [...signatures.values()],
  };
}

function heldSignature(
  text: string,
  vkey: Vkey,
  bytes: Uint8Array,
  verify: Verify,
): Signature | undefined {
  if (vkey.type === "ed25519") {
    return verdict(bytes, encodeUtf8(text), vkey.publicKey, verify) ? { vkey } : undefined;
  }
  const { time, signature } = readCosignature(bytes) ?? {};
  if (time === undefined || signature === undefined) return undefined;
  const message = cosignatureMessage(text, time);
  return verdict(signature, message, vkey.publicKey, verify) ? { vkey, time } : undefined;
}

function typeOf(byte: number | undefined): KeyType | undefined {
  if (byte === TYPE_BYTE.ed25519) return "ed25519";
  return byte === TYPE_BYTE.cosignature ? "cosignature" : undefined;
}

function isNoteText(text: string): boolean {
  return TEXT.test(text) && isWellFormed(text);
}
