/** C2SP tlog-proof: all that proves offline that an entry is in a log, but for the entry and the keys. */
import { parseSize } from "./checkpoint.ts";
import type { Hash } from "./hash.ts";
import { formatHashes, parseHashes } from "./proof.ts";
import { decodeBase64, encodeBase64 } from "./text.ts";

/**
 * `hashes` lead from entry `index` to the root in `checkpoint`, a signed note that is carried as it is.
 * Nothing authenticates `extra`.
 */
export interface TlogProof {
  index: bigint;
  hashes: Hash[];
  checkpoint: string;
  extra?: Uint8Array;
}

const TEXT =
  /^c2sp\.org\/tlog-proof@v1\n(?:extra ([^\n]+)\n)?index ([^\n]+)\n((?:[^\n]+\n){0,63})\n(.+)$/s;

/** Throws on more than 63 hashes, and on what `parseTlogProof` would not read again. */
export function formatTlogProof({ index, hashes, checkpoint, extra }: TlogProof): string {
  const line = extra === undefined ? "" : `extra ${encodeBase64(extra)}\n`;
  const path = formatHashes(hashes);
  const text = `c2sp.org/tlog-proof@v1\n${line}index ${index}\n${path}\n${checkpoint}`;
  if (parseTlogProof(text) === undefined) throw new Error("tlog-proof: not to be read again");
  return text;
}

/** Undefined unless the form is exact. Nothing is verified yet. */
export function parseTlogProof(text: string): TlogProof | undefined {
  const [, base64, digits = "", path = "", checkpoint = ""] = TEXT.exec(text) ?? [];
  const index = parseSize(digits);
  const hashes = parseHashes(path.split("\n").slice(0, -1));
  if (index === undefined || hashes === undefined) return undefined;
  if (base64 === undefined) return { index, hashes, checkpoint };
  const extra = decodeBase64(base64);
  return extra && { index, hashes, checkpoint, extra };
}
