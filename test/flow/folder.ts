/** Archives in folders: what one holds, and must hold by the definitions, with nothing that seal uses. */
import { mkdtemp, readdir, readFile, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { expect, onTestFinished } from "vitest";
import { encodeBundle } from "../../src/core/bundle.ts";
import { type Checkpoint, parseCheckpoint } from "../../src/core/checkpoint.ts";
import { openNote } from "../../src/core/note.ts";
import { encodeBase64 } from "../../src/core/text.ts";
import { bundlePath } from "../../src/core/tile.ts";
import { naiveRoot, naiveTiles } from "../core/merkle.ts";
import { verifyByOpenssl } from "../signing.ts";
import { type Chain, vkeyOf } from "./chain.ts";

/** An empty folder that goes with the test. */
export async function archiveFolder(): Promise<string> {
  const folder = await mkdtemp(join(tmpdir(), "minutebook-archive-"));
  onTestFinished(() => rm(folder, { recursive: true, force: true }));
  return folder;
}

/** Path to content of everything that was archived, without what is only staged. */
export async function archived(root: string): Promise<Map<string, string>> {
  const files = new Map<string, string>();
  const found = await readdir(root, { recursive: true, withFileTypes: true });
  for (const file of found.filter((entry) => entry.isFile())) {
    const path = join(file.parentPath, file.name).slice(root.length + 1);
    if (path.startsWith(".staging/")) continue;
    files.set(path, await readFile(join(root, path), "base64"));
  }
  return files;
}

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

/** What is claimed on the way to checkpoints of these sizes, which ascend. */
export function naiveClaims(chain: Chain, sizes: readonly number[]): Map<string, string> {
  return new Map(
    sizes.map((size, i) => {
      const text = `${size}\n${encodeBase64(naiveRoot(chain.leaves.slice(0, size)))}\n`;
      return [`${chain.log}/claim/${sizes[i - 1] ?? 0}`, Buffer.from(text).toString("base64")];
    }),
  );
}

/** The checkpoint, opened with nothing but the public key. */
export function openArchived(chain: Chain, base64: string | undefined): Checkpoint | undefined {
  const note = Buffer.from(base64 ?? "", "base64").toString();
  const opened = openNote(note, [vkeyOf(chain.log)], verifyByOpenssl);
  return "text" in opened ? parseCheckpoint(opened.text) : undefined;
}

/** The archive holds these checkpoints, their claims and what they imply, byte for byte, and nothing else. */
export async function expectArchive(
  root: string,
  chain: Chain,
  sizes: readonly number[],
): Promise<void> {
  expectFiles(await archived(root), chain, sizes);
}

/** As `expectArchive`, of an archive's files wherever they are. */
export function expectFiles(
  files: Map<string, string>,
  chain: Chain,
  sizes: readonly number[],
): void {
  for (const size of sizes) {
    const path = `${chain.log}/checkpoint/${size}`;
    expect(openArchived(chain, files.get(path))).toEqual({
      origin: `chain.test/${chain.log}`,
      size: BigInt(size),
      root: naiveRoot(chain.leaves.slice(0, size)),
    });
    files.delete(path);
  }
  const implied = new Map([...naiveFiles(chain, sizes), ...naiveClaims(chain, sizes)]);
  expect(Object.fromEntries(files)).toEqual(Object.fromEntries(implied));
}
