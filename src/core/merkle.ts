/** Merkle tree hashes (RFC 6962 §2.1). */
import { EMPTY_ROOT, type Hash, nodeHash, type Sha256 } from "./hash.ts";

/**
 * MTH of a log with these leaf hashes. The last one may also be the root of fewer entries than the
 * others stand for: RFC 6962 splits there in the same way.
 */
export function rootHash(leaves: readonly Hash[], hash?: Sha256): Hash {
  let nodes = leaves;
  while (nodes.length > 1) nodes = parents(nodes, hash);
  return nodes[0] ?? EMPTY_ROOT;
}

/**
 * The root above a compact range: the roots of a log's perfect subtrees from left to right, the
 * largest first, one for each one-bit of its size. The smallest two pair first.
 */
export function foldPeaks(peaks: readonly Hash[], hash?: Sha256): Hash {
  if (peaks.length === 0) return EMPTY_ROOT;
  return peaks.reduceRight((right, left) => nodeHash(left, right, hash));
}

/** Neighbours pair, and an odd last one moves up as it is: the recursion of the RFC, from below. */
function parents(nodes: readonly Hash[], hash?: Sha256): Hash[] {
  const above: Hash[] = [];
  let left: Hash | undefined;
  for (const node of nodes) {
    if (left === undefined) {
      left = node;
    } else {
      above.push(nodeHash(left, node, hash));
      left = undefined;
    }
  }
  if (left !== undefined) above.push(left);
  return above;
}
