/**
 * What is signed after a checkpoint is claimed first, in the archive, once and for all: of two sealers
 * that go on from one checkpoint over databases that differ, only one finds its own claim there.
 */
import type { Hash } from "../../core/hash.ts";
import { decodeBase64, decodeUtf8, encodeBase64, encodeUtf8, equal } from "../../core/text.ts";
import { type Archive, claimPath } from "../../store/archive.ts";
import { logBehind } from "./refusal.ts";

/** `root` is that of entries 0 … size−1. */
interface Tree {
  size: bigint;
  root: Hash;
}

/** What is to be signed next: not the tree's size where another was claimed before. */
interface Claimed {
  size: bigint;
  /** Whether it was claimed just now, or stood. */
  made: boolean;
}

const CLAIM = /^([1-9][0-9]{0,18})\n([A-Za-z0-9+/]{43}=)\n$/;

/**
 * Claims that `tree` follows the checkpoint of `from` entries. Its tiles must be durable: of a claim
 * whose sealer died, somebody else goes on to that very tree.
 *
 * @throws Problem `log-behind` where another tree of this size was claimed; `archive-unavailable`
 */
export async function claim(
  archive: Archive,
  log: string,
  from: bigint,
  tree: Tree,
): Promise<Claimed> {
  const path = claimPath(log, from);
  if ((await archive.create(path, claimOf(tree))) === "created")
    return { size: tree.size, made: true };
  const stands = parseClaim(await archive.get(path));
  if (stands === undefined || stands.size <= from) {
    throw logBehind(`what the archive has claimed after ${from} cannot be read`);
  }
  if (stands.size === tree.size && !equal(stands.root, tree.root)) {
    throw logBehind(`another tree of ${tree.size} entries is claimed in the archive`);
  }
  return { size: stands.size, made: false };
}

export function claimOf({ size, root }: Tree): Uint8Array {
  return encodeUtf8(`${size}\n${encodeBase64(root)}\n`);
}

/** Undefined unless the bytes are a claim's. */
export function parseClaim(bytes: Uint8Array | undefined): Tree | undefined {
  const [, size, text] = CLAIM.exec((bytes && decodeUtf8(bytes)) ?? "") ?? [];
  const root = decodeBase64(text ?? "");
  return size === undefined || root === undefined ? undefined : { size: BigInt(size), root };
}
