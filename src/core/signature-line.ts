/** One signature line of a signed note, and the key id in it (C2SP signed-note). */
import { sha256 } from "./hash.ts";
import { concat, decodeBase64, encodeBase64, encodeHex, encodeUtf8 } from "./text.ts";

/** What a key signs: the text itself, or that it saw the text at a time (C2SP tlog-cosignature). */
export type KeyType = "ed25519" | "cosignature";

/** `line` with its newline; `id` is 8 hex digits; `signature` what follows the id, of any length. */
export interface SignatureLine {
  name: string;
  id: string;
  line: string;
  signature: Uint8Array;
}

/** The byte that stands before a key, and keeps one key's uses apart. */
export const TYPE_BYTE: Readonly<Record<KeyType, number>> = { ed25519: 0x01, cosignature: 0x04 };

const ID_BYTES = 4;
const NAME = /^[^\p{White_Space}+]+$/u;
const LINE = /^\u2014 ([^\p{White_Space}+]+) (\S+)$/u;

/** With its newline. Throws on a name that is empty or holds white space or `+`. */
export function signatureLine(
  name: string,
  publicKey: Uint8Array,
  signature: Uint8Array,
  type: KeyType = "ed25519",
): string {
  const id = keyId(name, publicKey, type);
  return `\u2014 ${name} ${encodeBase64(concat(id, signature))}\n`;
}

/** A line without its newline; undefined when it has another form or no signature. */
export function readSignatureLine(row: string): SignatureLine | undefined {
  const [, name = "", data = ""] = LINE.exec(row) ?? [];
  const bytes = decodeBase64(data);
  if (bytes === undefined || bytes.length <= ID_BYTES) return undefined;
  const id = encodeHex(bytes.subarray(0, ID_BYTES));
  return { name, id, line: `${row}\n`, signature: bytes.slice(ID_BYTES) };
}

/** SHA-256(name ‖ newline ‖ type ‖ key), its first 4 bytes. Throws on what is no name. */
export function keyId(name: string, publicKey: Uint8Array, type: KeyType): Uint8Array {
  if (!NAME.test(name)) throw new Error("note: not a key name");
  const label = encodeUtf8(`${name}\n`);
  return sha256(concat(label, Uint8Array.of(TYPE_BYTE[type]), publicKey)).subarray(0, ID_BYTES);
}
