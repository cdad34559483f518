/** Merkle tree hashes (RFC 6962 §2.1), folded from the left without recursion. */
import { EMPTY_ROOT, type Hash, nodeHash, type Sha256 } from "./hash.ts";

/** MTH of a log with these leaf hashes. */
export function rootHash(leaves: readonly Hash[], hash?: Sha256): Hash {
  return foldPeaks(peaks(leaves, hash), hash);
}

/**
 * The compact range of `hashes`: the roots of the perfect subtrees they fill, from left to right, one
 * for each one-bit of their number, the largest first.
 */
export function peaks(hashes: readonly Hash[], hash?: Sha256): Hash[] {
  const range: Hash[] = [];
  hashes.forEach((leaf, index) => {
    let node = leaf;
    // Each trailing one-bit of the index is a finished left sibling, waiting on the stack.
    for (let bits = index; bits & 1; bits >>= 1) node = nodeHash(range.pop() ?? node, node, hash);
    range.push(node);
  });
  return range;
}

/** The root above a compact range: the smallest subtrees pair first. No peaks: no entries. */
export function foldPeaks(range: readonly Hash[], hash?: Sha256): Hash {
  if (range.length === 0) return EMPTY_ROOT;
  return range.reduceRight((right, left) => nodeHash(left, right, hash));
}
