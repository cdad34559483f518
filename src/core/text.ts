/** Text and bytes: the encodings that signed and hashed data is written in. Every decoder is strict. */

// Both exist in Node and in every browser; declared here because core sees neither's types.
declare class TextEncoder {
  encode(text: string): Uint8Array;
}
declare class TextDecoder {
  constructor(label: string, options: { fatal: boolean; ignoreBOM: boolean });
  decode(bytes: Uint8Array): string;
}

const PAD = 0x3d; // "="

const HEX = Array.from({ length: 256 }, (_, byte) => byte.toString(16).padStart(2, "0"));

const encoder = new TextEncoder();
// ignoreBOM keeps a byte order mark as a character: two byte strings never decode to one text.
const decoder = new TextDecoder("utf-8", { fatal: true, ignoreBOM: true });

/** UTF-8. A lone surrogate would silently become U+FFFD: ask `isWellFormed` of texts from outside. */
export function encodeUtf8(text: string): Uint8Array {
  return encoder.encode(text);
}

/** How many bytes of UTF-8 a text takes. */
export function utf8Length(text: string): number {
  return encoder.encode(text).length;
}

/** The text of valid UTF-8, its byte order mark kept; undefined for anything else. */
export function decodeUtf8(bytes: Uint8Array): string | undefined {
  try {
    return decoder.decode(bytes);
  } catch {
    return undefined; // the decoder's one reason to throw: bytes that are no UTF-8
  }
}

/** No lone surrogates, so that encoding to UTF-8 and back gives the same text. */
export function isWellFormed(text: string): boolean {
  return !/\p{Surrogate}/u.test(text);
}

/** RFC 4648 §4, padded. */
export const encodeBase64 = encoderOf("+/", true);

/** RFC 4648 §4, padded; undefined unless the text is exactly what `encodeBase64` gives. */
export const decodeBase64 = decoderOf("+/", true);

/** RFC 4648 §5, unpadded. */
export const encodeBase64url = encoderOf("-_", false);

/** RFC 4648 §5, unpadded; undefined unless the text is exactly what `encodeBase64url` gives. */
export const decodeBase64url = decoderOf("-_", false);

/** Lowercase hexadecimal. */
export function encodeHex(bytes: Uint8Array): string {
  let text = "";
  for (const byte of bytes) text += HEX[byte];
  return text;
}

/** Lowercase hexadecimal of whole bytes; undefined for anything else. */
export function decodeHex(text: string): Uint8Array | undefined {
  if (!/^(?:[0-9a-f]{2})*$/.test(text)) return undefined;
  return Uint8Array.from(text.match(/../g) ?? [], (digits) => Number.parseInt(digits, 16));
}

export function concat(...parts: readonly Uint8Array[]): Uint8Array {
  const bytes = new Uint8Array(parts.reduce((length, part) => length + part.length, 0));
  let offset = 0;
  for (const part of parts) {
    bytes.set(part, offset);
    offset += part.length;
  }
  return bytes;
}

/** Not in constant time: for hashes, keys and signatures, which are all public here. */
export function equal(a: Uint8Array, b: Uint8Array): boolean {
  if (a.length !== b.length) return false;
  for (let i = 0; i < a.length; i++) if (a[i] !== b[i]) return false;
  return true;
}

/** The byte at i, 0 past the end. */
export function byteAt(bytes: Uint8Array, i: number): number {
  return bytes[i] ?? 0;
}

function alphabetOf(last: string): string {
  return `ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789${last}`;
}

function encoderOf(last: string, padded: boolean): (bytes: Uint8Array) => string {
  const letters = encoder.encode(alphabetOf(last));
  return (bytes) => {
    const codes = new Uint8Array(Math.ceil(bytes.length / 3) * 4);
    let out = 0;
    for (let i = 0; i < bytes.length; i += 3) {
      const bits = (byteAt(bytes, i) << 16) | (byteAt(bytes, i + 1) << 8) | byteAt(bytes, i + 2);
      codes[out++] = byteAt(letters, bits >> 18);
      codes[out++] = byteAt(letters, (bits >> 12) & 63);
      codes[out++] = byteAt(letters, (bits >> 6) & 63);
      codes[out++] = byteAt(letters, bits & 63);
    }
    const end = Math.ceil((bytes.length * 4) / 3);
    return decoder.decode(padded ? codes.fill(PAD, end) : codes.subarray(0, end));
  };
}

function decoderOf(last: string, padded: boolean): (text: string) => Uint8Array | undefined {
  // −1 for every other character: its sign stays in `seen`.
  const values = new Int8Array(128).fill(-1);
  Array.from(alphabetOf(last)).forEach((letter, value) => {
    values[letter.charCodeAt(0)] = value;
  });

  return (text) => {
    const letters = padded ? unpaddedLength(text) : text.length;
    if (letters < 0 || letters % 4 === 1) return undefined;
    const bytes = new Uint8Array((letters * 3) >> 2);
    const valueAt = (i: number): number => values[text.charCodeAt(i)] ?? -1;
    const whole = letters - (letters % 4);
    let seen = 0;
    let out = 0;
    for (let i = 0; i < whole; i += 4) {
      const high = (valueAt(i) << 6) | valueAt(i + 1);
      const low = (valueAt(i + 2) << 6) | valueAt(i + 3);
      seen |= high | low;
      bytes[out++] = high >> 4;
      bytes[out++] = (high << 4) | (low >> 8);
      bytes[out++] = low;
    }
    let bits = 0;
    let width = 0;
    for (let i = whole; i < letters; i++) {
      const value = valueAt(i);
      seen |= value;
      bits = (bits << 6) | value;
      width += 6;
      if (width < 8) continue;
      width -= 8;
      bytes[out++] = bits >> width;
    }
    // Bits that fill no byte must be zero, or several texts would stand for the same bytes.
    const rest = bits & ((1 << width) - 1);
    return seen >= 0 && rest === 0 ? bytes : undefined;
  };
}

/** How many letters stand before the padding; −1 when it does not fill a group of four. */
function unpaddedLength(text: string): number {
  if (text.length % 4 !== 0) return -1;
  if (!text.endsWith("=")) return text.length;
  return text.length - (text.endsWith("==") ? 2 : 1);
}
