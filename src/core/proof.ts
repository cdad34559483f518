/**
 * Merkle proofs (RFC 9162 §2.1.3 and §2.1.4): which hashes one needs, what they are, whether it holds.
 * The walks go down from the root as the RFC defines a proof, the verifiers up from the leaf.
 */
import { type Hash, nodeHash, type Sha256 } from "./hash.ts";
import { foldPeaks, rootHash } from "./merkle.ts";
import { decodeBase64, encodeBase64, equal } from "./text.ts";

/** A perfect subtree: the entries index × 2^level up to, not including, (index + 1) × 2^level. */
export interface Node {
  level: number;
  index: bigint;
}

/** MTH of a perfect subtree. Throws when whoever reads does not have it. */
export type ReadNode = (node: Node) => Hash;

/** An entry, and the path that is to lead from it to the root. */
export interface Inclusion {
  leaf: Hash;
  index: bigint;
  size: bigint;
  proof: readonly Hash[];
  root: Hash;
}

/** Two sizes of a log with their roots, and the path that is to show the one in the other. */
export interface Consistency {
  from: bigint;
  to: bigint;
  proof: readonly Hash[];
  fromRoot: Hash;
  toRoot: Hash;
}

/** Entries from `start` up to, not including, `end`: a subtree of RFC 9162, its right edge maybe ragged. */
interface Range {
  start: bigint;
  end: bigint;
}

const HASH_BYTES = 32;
/** C2SP tlog-witness's bound. Only a consistency proof past 2^62 entries could have one hash more. */
const HASHES_MAX = 63;

/** All that `treeRoot` reads, from left to right. */
export function rootNodes(size: bigint): Node[] {
  return nodesOf({ start: 0n, end: size });
}

/** All that `inclusionProof` reads. Throws unless 0 ≤ index < size. */
export function inclusionNodes(index: bigint, size: bigint): Node[] {
  return inclusionPath(index, size).flatMap(nodesOf);
}

/** All that `consistencyProof` reads. Throws unless 0 < from ≤ to. */
export function consistencyNodes(from: bigint, to: bigint): Node[] {
  return consistencyPath(from, to).flatMap(nodesOf);
}

/** MTH of the first `size` entries. */
export function treeRoot(size: bigint, read: ReadNode, hash?: Sha256): Hash {
  return foldPeaks(rootNodes(size).map(read), hash);
}

/** The leaf's sibling first, the root's child last. Throws unless 0 ≤ index < size. */
export function inclusionProof(index: bigint, size: bigint, read: ReadNode, hash?: Sha256): Hash[] {
  return inclusionPath(index, size).map((range) => foldPeaks(nodesOf(range).map(read), hash));
}

/** Empty between equal sizes. Throws unless 0 < from ≤ to: the RFC has no proof from size 0. */
export function consistencyProof(from: bigint, to: bigint, read: ReadNode, hash?: Sha256): Hash[] {
  return consistencyPath(from, to).map((range) => foldPeaks(nodesOf(range).map(read), hash));
}

/** RFC 9162 §2.1.3.2. Never throws; what is out of bounds, or no hash of 32 bytes, does not hold. */
export function verifyInclusion(
  { leaf, index, size, proof, root }: Inclusion,
  hash?: Sha256,
): boolean {
  if (index < 0n || index >= size || ![leaf, root, ...proof].every(isHash)) return false;
  let fn = index;
  let sn = size - 1n;
  let node = leaf;
  for (const sibling of proof) {
    if (sn === 0n) return false;
    if (isOdd(fn) || fn === sn) {
      node = nodeHash(sibling, node, hash);
      // A last node without a right sibling moves up as it is.
      while (!isOdd(fn) && fn !== 0n) {
        fn >>= 1n;
        sn >>= 1n;
      }
    } else {
      node = nodeHash(node, sibling, hash);
    }
    fn >>= 1n;
    sn >>= 1n;
  }
  return sn === 0n && equal(node, root);
}

/** RFC 9162 §2.1.4.2. Never throws; from size 0 there is no proof, so none holds. */
export function verifyConsistency(
  { from, to, proof, fromRoot, toRoot }: Consistency,
  hash?: Sha256,
): boolean {
  if (from <= 0n || from > to || ![fromRoot, toRoot, ...proof].every(isHash)) return false;
  if (from === to) return proof.length === 0 && equal(fromRoot, toRoot);
  // A perfect first tree is the path's own beginning, and is not sent.
  const [first, ...rest] = isPowerOfTwo(from) ? [fromRoot, ...proof] : proof;
  if (first === undefined) return false;
  let fn = from - 1n;
  let sn = to - 1n;
  while (isOdd(fn)) {
    fn >>= 1n;
    sn >>= 1n;
  }
  let older = first;
  let newer = first;
  for (const sibling of rest) {
    if (sn === 0n) return false;
    if (isOdd(fn) || fn === sn) {
      older = nodeHash(sibling, older, hash);
      newer = nodeHash(sibling, newer, hash);
      while (!isOdd(fn) && fn !== 0n) {
        fn >>= 1n;
        sn >>= 1n;
      }
    } else {
      newer = nodeHash(newer, sibling, hash);
    }
    fn >>= 1n;
    sn >>= 1n;
  }
  return sn === 0n && equal(older, fromRoot) && equal(newer, toRoot);
}

/** Reads nodes over these leaf hashes, the log's first. Throws on a node that reaches past them. */
export function leafNodes(leaves: readonly Hash[], hash?: Sha256): ReadNode {
  return ({ level, index }) => {
    const start = Number(index) * 2 ** level;
    const end = start + 2 ** level;
    if (start < 0 || end > leaves.length) throw new Error("proof: a node past the leaves");
    return rootHash(leaves.slice(start, end), hash);
  };
}

/** As C2SP formats write a proof: each hash in base64 on a line, its newline included. */
export function formatHashes(hashes: readonly Hash[]): string {
  if (hashes.length > HASHES_MAX || !hashes.every(isHash)) throw new Error("proof: not to be read");
  return hashes.map((hash) => `${encodeBase64(hash)}\n`).join("");
}

/** Lines without their newlines, 63 at most; undefined unless each is a hash of 32 bytes. */
export function parseHashes(lines: readonly string[]): Hash[] | undefined {
  if (lines.length > HASHES_MAX) return undefined;
  const hashes = lines.map(decodeBase64).filter((hash) => hash !== undefined);
  return hashes.length === lines.length && hashes.every(isHash) ? hashes : undefined;
}

/** PATH of RFC 9162 §2.1.3.1: at each split, the side that the entry is not on. */
function inclusionPath(index: bigint, size: bigint): Range[] {
  if (index < 0n || index >= size) throw new Error("proof: no such entry");
  const path: Range[] = [];
  let start = 0n;
  let end = size;
  while (end - start > 1n) {
    const middle = start + split(end - start);
    if (index < middle) {
      path.unshift({ start: middle, end });
      end = middle;
    } else {
      path.unshift({ start, end: middle });
      start = middle;
    }
  }
  return path;
}

/** SUBPROOF of RFC 9162 §2.1.4.1, from the root down to the subtree that ends where the old tree did. */
function consistencyPath(from: bigint, to: bigint): Range[] {
  if (from <= 0n || from > to) throw new Error("proof: no such sizes");
  const path: Range[] = [];
  let start = 0n;
  let end = to;
  while (from < end) {
    const middle = start + split(end - start);
    if (from <= middle) {
      path.unshift({ start: middle, end });
      end = middle;
    } else {
      path.unshift({ start, end: middle });
      start = middle;
    }
  }
  // From 0 it is the old tree itself, whose root the verifier has.
  return start === 0n ? path : [{ start, end }, ...path];
}

/** The perfect subtrees of a range, from left to right: one for each one-bit of its length. */
function nodesOf({ start, end }: Range): Node[] {
  const nodes: Node[] = [];
  const length = end - start;
  for (let level = bitLength(length) - 1; level >= 0; level--) {
    const shift = BigInt(level);
    if (!isOdd(length >> shift)) continue;
    // Cut off the bit and all below it: that much of the range lies before this subtree.
    const before = ((length >> shift) - 1n) << shift;
    nodes.push({ level, index: (start + before) >> shift });
  }
  return nodes;
}

/** The largest power of two below n, for n > 1. */
function split(n: bigint): bigint {
  return 1n << BigInt(bitLength(n - 1n) - 1);
}

function bitLength(n: bigint): number {
  return n === 0n ? 0 : n.toString(2).length;
}

function isPowerOfTwo(n: bigint): boolean {
  return (n & (n - 1n)) === 0n;
}

function isOdd(n: bigint): boolean {
  return (n & 1n) === 1n;
}

function isHash(bytes: Uint8Array): boolean {
  return bytes.length === HASH_BYTES;
}
