/** C2SP tlog-checkpoint: the text that a log signs. */
import type { Hash } from "./hash.ts";
import { decodeBase64, encodeBase64 } from "./text.ts";

/** `size` entries, 0 ≤ size ≤ 2^63−1, under the RFC 6962 root `root`. */
export interface Checkpoint {
  origin: string;
  size: bigint;
  root: Hash;
}

const SIZE = /^(?:0|[1-9][0-9]{0,18})$/;
const SIZE_MAX = 2n ** 63n - 1n;

/** Three lines. Throws on an origin that is empty or has a line break, and on sizes out of bounds. */
export function formatCheckpoint({ origin, size, root }: Checkpoint): string {
  const text = `${origin}\n${size}\n${encodeBase64(root)}\n`;
  // An origin with line breaks would be read as another origin, size and root.
  if (parseCheckpoint(text)?.origin !== origin) throw new Error("checkpoint: not to be read again");
  return text;
}

/** Non-empty extension lines are let pass, as the format asks; what they say is not looked at. */
export function parseCheckpoint(text: string): Checkpoint | undefined {
  const lines = text.split("\n");
  if (lines.pop() !== "" || lines.includes("")) return undefined;
  const [origin = "", digits = "", base64 = ""] = lines;
  const root = decodeBase64(base64);
  const size = parseSize(digits);
  if (size === undefined || root?.length !== 32) return undefined;
  return { origin, size, root };
}

/** Sizes and indices as all formats of transparency logs write them: 0 … 2^63−1, no leading zeros. */
export function parseSize(digits: string): bigint | undefined {
  const size = SIZE.test(digits) ? BigInt(digits) : undefined;
  return size !== undefined && size <= SIZE_MAX ? size : undefined;
}
