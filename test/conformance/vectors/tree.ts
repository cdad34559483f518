/** RFC 6962 hashes and tlog-tiles paths. */
import { EMPTY_ROOT, leafHash, nodeHash, sha256 } from "../../../src/core/hash.ts";
import { rootHash } from "../../../src/core/merkle.ts";
import { inclusionProof, leafNodes, treeRoot } from "../../../src/core/proof.ts";
import { decodeHex, encodeHex, encodeUtf8 } from "../../../src/core/text.ts";
import { bundlePath, EMPTY_EDGE, grow, partialTiles, tilePath } from "../../../src/core/tile.ts";
import { nodeSha256 } from "../../core/merkle.ts";
import { left, readJson, type Vector, vector } from "../vector.ts";

interface ReferenceTree {
  leaf_inputs_hex: string[];
  node_hashes_by_level_hex: string[][];
  root_hash_by_tree_size_hex: string[];
  hasher_cases: HasherCase[];
  accumulated_subtree_vectors: { subtree_hash: string; subtree_inclusion: string };
}

interface HasherCase {
  desc: string;
  want: string;
  leaf_hex?: string;
  leaf_utf8?: string;
  left_utf8?: string;
  right_utf8?: string;
}

interface TilePaths {
  index_encoding: { n: number; path: string }[];
  c2sp_examples: ({ size: number } & Record<string, number>)[];
}

const ENTRIES = 130;

export function* treeVectors(folder: string): Generator<Vector> {
  const tree = readJson<ReferenceTree>(folder, "merkle/rfc6962_reference_tree.json");
  yield* referenceTree(tree);
  for (const example of tree.hasher_cases) {
    const hash = encodeHex(hasherCase(example));
    yield vector(`rfc6962 ${example.desc}`, hash === example.want, hash);
  }
  yield* accumulated(tree.accumulated_subtree_vectors);

  const paths = readJson<TilePaths>(folder, "tiles/tile_paths.json");
  for (const { n, path } of paths.index_encoding) {
    const found = [tilePath(0, BigInt(n)), bundlePath(BigInt(n))];
    const expected = [`tile/0/${path}`, `tile/entries/${path}`];
    yield vector(`tile path of ${n}`, String(found) === String(expected), String(found));
  }
  yield* paths.c2sp_examples.map(tileCounts);
  yield left("tiles new_tiles_count", "not used: tiles of height 10, tlog-tiles has height 8");
}

function* referenceTree(tree: ReferenceTree): Generator<Vector> {
  const leaves = tree.leaf_inputs_hex.map((hex) => leafHash(decodeHex(hex) ?? new Uint8Array()));
  for (const [level, nodes] of tree.node_hashes_by_level_hex.entries()) {
    const width = 2 ** level;
    for (const [index, expected] of nodes.entries()) {
      const node = encodeHex(rootHash(leaves.slice(index * width, (index + 1) * width)));
      yield vector(`rfc6962 node ${level}/${index}`, node === expected, node);
    }
  }
  for (const [size, expected] of tree.root_hash_by_tree_size_hex.entries()) {
    const root = encodeHex(rootHash(leaves.slice(0, size)));
    yield vector(`rfc6962 root of ${size}`, root === expected, root);
  }
}

function hasherCase({ leaf_hex, leaf_utf8, left_utf8, right_utf8 }: HasherCase): Uint8Array {
  if (leaf_hex !== undefined) return leafHash(decodeHex(leaf_hex) ?? new Uint8Array(1));
  if (leaf_utf8 !== undefined) return leafHash(encodeUtf8(leaf_utf8));
  if (left_utf8 === undefined || right_utf8 === undefined) return EMPTY_ROOT;
  return nodeHash(encodeUtf8(left_utf8), encodeUtf8(right_utf8));
}

/** One hash over a line for every subtree of a tree of 130 entries, those without an entry included. */
function* accumulated(expected: ReferenceTree["accumulated_subtree_vectors"]): Generator<Vector> {
  const leaves = Array.from({ length: ENTRIES }, (_, i) => leafHash(Uint8Array.of(i), nodeSha256));
  let hashes = "";
  let proofs = "";
  for (let end = 0; end <= ENTRIES; end++) {
    for (let start = 0; start <= end; start++) {
      if (!isSubtree(start, end)) continue;
      const size = BigInt(end - start);
      const read = leafNodes(leaves.slice(start, end), nodeSha256);
      hashes += `[${start}, ${end}) ${encodeHex(treeRoot(size, read, nodeSha256))}\n`;
      for (let index = 0n; index < size; index++) {
        const proof = inclusionProof(index, size, read, nodeSha256).map(encodeHex);
        proofs += `${[`${BigInt(start) + index} [${start}, ${end})`, ...proof].join(" ")}\n`;
      }
    }
  }
  const digest = (lines: string): string => encodeHex(sha256(encodeUtf8(lines)));
  yield vector("rfc6962 all subtrees", digest(hashes) === expected.subtree_hash);
  yield vector("rfc6962 all paths in subtrees", digest(proofs) === expected.subtree_inclusion);
  const reason = "not used: consistency of subtrees that do not begin at entry 0";
  yield left("rfc6962 accumulated subtree consistency", reason);
}

/** As long as the alignment of its start allows, or shorter. */
function isSubtree(start: number, end: number): boolean {
  let width = 1;
  while (width < end - start) width *= 2;
  return start % width === 0;
}

/** How many full tiles, and how wide a partial one, a log of this size has on each level. */
function tileCounts({ size, ...expected }: TilePaths["c2sp_examples"][number]): Vector {
  const { edge, full } = grow(EMPTY_EDGE, new Array(size).fill(EMPTY_ROOT), nodeSha256);
  const partial = partialTiles(edge);
  const found = Object.fromEntries(
    [0, 1, 2].flatMap((level) => [
      [`level${level}_full`, full.filter((tile) => tile.level === level).length],
      [`level${level}_partial`, partial.find((tile) => tile.level === level)?.width ?? 0],
    ]),
  );
  const same = Object.entries(expected).every(([name, count]) => found[name] === count);
  return vector(`tiles of a log of ${size}`, same, JSON.stringify(found));
}
