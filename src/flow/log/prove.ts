/**
 * Proofs from archived tiles (RFC 9162 §2.1.3 and §2.1.4): that an entry is in a tree, and that one
 * tree goes on from another. What the archive gives is only as good as its root says, so a proof that
 * leaves with a checkpoint is held against it first.
 */
import { type Hash, leafHash, type Sha256 } from "../../core/hash.ts";
import { Problem } from "../../core/problem.ts";
import {
  consistencyNodes,
  consistencyProof,
  inclusionNodes,
  inclusionProof,
  type Node,
  type ReadNode,
  verifyInclusion,
} from "../../core/proof.ts";
import {
  TILE_WIDTH,
  type Tile,
  type TileName,
  tileNodes,
  tilePath,
  tilesOf,
} from "../../core/tile.ts";
import { formatTlogProof } from "../../core/tlog-proof.ts";
import type { Archive } from "../../store/archive.ts";
import type { Published, PublishedCheckpoint } from "./published.ts";
import { notAsSigned, refusalOf } from "./refusal.ts";

export interface Proving {
  archive: Archive;
  hash?: Sha256;
}

export type Proofs = Proving & { published: Published };

/**
 * The path of each entry in the tree of `size` entries, the leaf's sibling first. Each tile is read once.
 *
 * @param size of a checkpoint, or archived tiles that it needs may never have been written
 * @throws Error unless 0 ≤ index < size for each, and for tiles that are missing or cut; Problem
 *   `archive-unavailable`
 */
export async function proveInclusion(
  proving: Proving,
  log: string,
  indices: readonly bigint[],
  size: bigint,
): Promise<Map<bigint, Hash[]>> {
  const nodes = indices.flatMap((index) => inclusionNodes(index, size));
  const read = await readTree(proving, log, nodes, size);
  const { hash } = proving;
  return new Map(indices.map((index) => [index, inclusionProof(index, size, read, hash)]));
}

/**
 * That the tree of `to` entries begins with that of `from`; no hash between equal sizes.
 *
 * @param to of a checkpoint; `from` may be any size below
 * @throws Error unless 0 < from ≤ to, and as `proveInclusion` does
 */
export async function proveConsistency(
  proving: Proving,
  log: string,
  from: bigint,
  to: bigint,
): Promise<Hash[]> {
  const read = await readTree(proving, log, consistencyNodes(from, to), to);
  return consistencyProof(from, to, read, proving.hash);
}

/**
 * A C2SP tlog-proof for each entry that the published checkpoint covers, by index, with the entry's
 * bytes as `extra`: all that a customer needs to check a build offline.
 *
 * @throws Error when an entry is not the one that was sealed; Problem `archive-unavailable`
 */
export async function proveEntries(
  proofs: Proofs,
  log: string,
  entries: readonly { index: bigint; bytes: Uint8Array }[],
): Promise<Map<bigint, string>> {
  const checkpoint = await proofs.published.latest(log);
  if (checkpoint === undefined) return new Map();
  const covered = entries.filter(({ index }) => index < checkpoint.size);
  const indices = covered.map(({ index }) => index);
  const paths = await proveInclusion(proofs, log, indices, checkpoint.size);
  const texts = covered.map(({ index, bytes }): [bigint, string] => {
    const leaf = leafHash(bytes, proofs.hash);
    const proof = { leaf, index, hashes: paths.get(index) ?? [] };
    return [index, proofText(checkpoint, proof, proofs.hash, bytes)];
  });
  return new Map(texts);
}

/**
 * That the tree of the published checkpoint has just this entry there: what is read back from the database is so
 * held to what lies outside it.
 *
 * @throws Problem `not-sealed` as long as it does not reach that far, `not-as-signed`, `archive-unavailable`
 */
export async function assertSealed(
  proofs: Proofs,
  log: string,
  { index, bytes }: { index: bigint; bytes: Uint8Array },
): Promise<void> {
  const checkpoint = await proofs.published.latest(log);
  if (checkpoint === undefined || index >= checkpoint.size) throw new Problem("not-sealed");
  const { root, size } = checkpoint;
  const proof = (await proveInclusion(proofs, log, [index], size)).get(index) ?? [];
  const inclusion = { leaf: leafHash(bytes, proofs.hash), index, size, proof, root };
  if (!verifyInclusion(inclusion, proofs.hash)) throw notAsSigned(`entry ${index} of ${log}`);
}

/**
 * A C2SP tlog-proof of the entry at `index`, without the entry: for whoever may not read it, too.
 *
 * @param size of a checkpoint; absent, the published one
 * @throws Problem `invalid-request` for an index that is not below it, `not-found`,
 *   `beyond-checkpoint`, `archive-unavailable`
 */
export async function proveIndex(
  proofs: Proofs,
  log: string,
  { index, size }: { index: bigint; size?: bigint | undefined },
): Promise<string> {
  const checkpoint = await checkpointAt(proofs, log, size);
  if (index >= checkpoint.size) throw new Problem("invalid-request", { members: ["index"] });
  const own: Node = { level: 0, index };
  const nodes = [own, ...inclusionNodes(index, checkpoint.size)];
  const read = await readTree(proofs, log, nodes, checkpoint.size);
  const hashes = inclusionProof(index, checkpoint.size, read, proofs.hash);
  return proofText(checkpoint, { leaf: read(own), index, hashes }, proofs.hash);
}

/**
 * @param sizes.from any size above 0; `to` that of a checkpoint, and the published one when it is absent
 * @throws Problem `invalid-request` unless 0 < from ≤ to, and as `proveIndex` does
 */
export async function proveSizes(
  proofs: Proofs,
  log: string,
  { from, to }: { from: bigint; to?: bigint | undefined },
): Promise<{ from: bigint; to: bigint; hashes: Hash[] }> {
  const { size } = await checkpointAt(proofs, log, to);
  if (from === 0n || from > size) throw new Problem("invalid-request", { members: ["from"] });
  return { from, to: size, hashes: await proveConsistency(proofs, log, from, size) };
}

/**
 * The checkpoint of that size, if it was published; absent, the newest that was.
 *
 * @throws Problem `not-found`; `beyond-checkpoint` for a size above the newest
 */
export async function checkpointAt(
  { published }: Pick<Proofs, "published">,
  log: string,
  size?: bigint,
): Promise<PublishedCheckpoint> {
  const newest = await published.latest(log);
  if (newest === undefined) throw new Problem("not-found");
  if (size === undefined || size === newest.size) return newest;
  if (size > newest.size) throw new Problem("beyond-checkpoint");
  const found = await published.at(log, size);
  if (found === undefined) throw new Problem("not-found");
  return found;
}

/** @throws Error for a proof that does not hold */
function proofText(
  { size, root, note }: PublishedCheckpoint,
  { leaf, index, hashes }: { leaf: Hash; index: bigint; hashes: Hash[] },
  hash: Sha256 | undefined,
  extra?: Uint8Array,
): string {
  if (!verifyInclusion({ leaf, index, size, proof: hashes, root }, hash)) {
    throw new Error(`prove: entry ${index} is not in the tree of ${size} that was signed`);
  }
  return formatTlogProof({ index, hashes, checkpoint: note, ...(extra && { extra }) });
}

async function readTree(
  { archive, hash }: Proving,
  log: string,
  nodes: readonly Node[],
  size: bigint,
): Promise<ReadNode> {
  const names = tilesOf(nodes, size);
  const tiles = await Promise.all(names.map((name) => readTile(archive, log, name)));
  return remembered(tileNodes(tiles, hash));
}

/** Entries of one request are neighbours: most of their paths is the same. */
function remembered(read: ReadNode): ReadNode {
  const known = new Map<string, Hash>();
  return (node) => {
    const key = `${node.level}/${node.index}`;
    const hash = known.get(key) ?? read(node);
    known.set(key, hash);
    return hash;
  };
}

/** A partial tile may have gone since the full one is there: then that one has its hashes too. */
async function readTile(archive: Archive, log: string, name: TileName): Promise<Tile> {
  const { level, index, width } = name;
  for (const stored of new Set([width, TILE_WIDTH])) {
    const bytes = await readArchived(archive, `${log}/${tilePath(level, index, stored)}`);
    if (bytes !== undefined) return { ...name, bytes };
  }
  throw new Error(`prove: ${tilePath(level, index, width)} of ${log} is not in the archive`);
}

/** @throws Problem `archive-unavailable` */
export async function readArchived(
  archive: Archive,
  path: string,
): Promise<Uint8Array | undefined> {
  try {
    return await archive.get(path);
  } catch (error) {
    throw refusalOf(error) ?? error;
  }
}
