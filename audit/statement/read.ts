/** Entries of a log in their order, and nothing of them believed before the root of a signed checkpoint is theirs. */
import type { Sha256 } from "../../src/core/hash.ts";
import { leafHash } from "../../src/core/hash.ts";
import { equal } from "../../src/core/text.ts";
import { bundlePath, EMPTY_EDGE, edgeRoot, grow, TILE_WIDTH } from "../../src/core/tile.ts";
import { ReadAhead } from "../archive/ahead.ts";
import { splitBundle } from "../archive/block.ts";
import type { OpenedCheckpoint } from "../archive/checkpoints.ts";
import { NotProven } from "../fetch/proven.ts";
import { CannotLook } from "../finding.ts";
import type { Source } from "../source.ts";

interface ReadOptions {
  checkpoint: OpenedCheckpoint;
  hash: Sha256;
  onProgress?(done: bigint, bundles: bigint): void;
}

/** @throws NotProven where the entries are not those of the checkpoint */
export async function readAll(
  source: Source,
  { checkpoint, hash, onProgress }: ReadOptions,
  take: (bytes: Uint8Array) => void,
): Promise<void> {
  const { root, size } = checkpoint;
  const ahead = new ReadAhead(source, size);
  let edge = EMPTY_EDGE;
  for (let index = 0n; index < ahead.end; index += 1n) {
    const { bundle, width } = await ahead.read(index);
    const path = bundlePath(index, width);
    if (bundle === undefined) throw new NotProven("bundle-missing", path, "there is no such file");
    const entries = splitBundle(bundle.bytes).entries.slice(0, width);
    if (entries.length < width) {
      throw new NotProven("bundle-width", path, `${entries.length} entries, not ${width}`);
    }
    const leaves = entries.map((bytes) => leafHash(bytes, hash));
    edge = grow(edge, leaves, hash).edge;
    for (const bytes of entries) take(bytes);
    onProgress?.(index + 1n, ahead.end);
  }
  if (!equal(edgeRoot(edge, hash), root)) {
    throw new NotProven("entry-altered", `checkpoint/${size}`, "the entries give another root");
  }
}

/** Bytes of one entry. @throws CannotLook where it is not there */
export async function readOne(source: Source, index: bigint, size: bigint): Promise<Uint8Array> {
  const ahead = new ReadAhead(source, size);
  const { bundle } = await ahead.read(index / BigInt(TILE_WIDTH));
  const bytes = bundle && splitBundle(bundle.bytes).entries[Number(index % BigInt(TILE_WIDTH))];
  if (bytes === undefined) throw new CannotLook(`entry ${index} cannot be read`);
  return bytes;
}
