/** What an archive must hold, from the definitions alone and from nothing that seal uses. */
import { expect } from "vitest";
import { encodeBundle } from "../../src/core/bundle.ts";
import { type Checkpoint, parseCheckpoint } from "../../src/core/checkpoint.ts";
import { formatVkey, openNote, parseVkey } from "../../src/core/note.ts";
import { encodeBase64 } from "../../src/core/text.ts";
import { bundlePath } from "../../src/core/tile.ts";
import { naiveRoot, naiveTiles } from "../core/merkle.ts";
import { verifyByOpenssl } from "../signing.ts";
import { archived, type Chain, signerFor } from "./chain.ts";

/** Every file that checkpoints of these sizes imply, from the definitions alone. */
export function naiveFiles(chain: Chain, sizes: readonly number[]): Map<string, string> {
  const files = new Map<string, string>();
  for (const size of sizes) {
    for (const [path, bytes] of naiveTiles(chain.leaves.slice(0, size))) {
      files.set(`${chain.log}/${path}`, encodeBase64(bytes));
    }
    for (let start = 0; start < size; start += 256) {
      const entries = chain.entries.slice(start, Math.min(start + 256, size));
      const path = bundlePath(BigInt(start / 256), entries.length);
      const bundle = encodeBundle(entries.map(({ bytes }) => bytes));
      files.set(`${chain.log}/${path}`, encodeBase64(bundle));
    }
  }
  return files;
}

/** The checkpoint, opened with nothing but the public key. */
export function openArchived(chain: Chain, base64: string | undefined): Checkpoint | undefined {
  const { name, publicKey } = signerFor(chain.log);
  const vkey = parseVkey(formatVkey(name, publicKey));
  const note = Buffer.from(base64 ?? "", "base64").toString();
  const opened = openNote(note, vkey ? [vkey] : [], verifyByOpenssl);
  return "text" in opened ? parseCheckpoint(opened.text) : undefined;
}

/** The archive holds these checkpoints and what they imply, byte for byte, and nothing else. */
export async function expectArchive(
  root: string,
  chain: Chain,
  sizes: readonly number[],
): Promise<void> {
  const files = await archived(root);
  for (const size of sizes) {
    const path = `${chain.log}/checkpoint/${size}`;
    expect(openArchived(chain, files.get(path))).toEqual({
      origin: `chain.test/${chain.log}`,
      size: BigInt(size),
      root: naiveRoot(chain.leaves.slice(0, size)),
    });
    files.delete(path);
  }
  expect(Object.fromEntries(files)).toEqual(Object.fromEntries(naiveFiles(chain, sizes)));
}
