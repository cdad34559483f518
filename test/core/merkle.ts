/** RFC 9162 §2.1 and C2SP tlog-tiles word for word, recursive and slow: what the fast code is held to. */
import { createHash } from "node:crypto";
import { EMPTY_ROOT, type Hash, type Sha256 } from "../../src/core/hash.ts";
import { concat } from "../../src/core/text.ts";

export const nodeSha256: Sha256 = (bytes) =>
  new Uint8Array(createHash("sha256").update(bytes).digest());

/** `count` different leaf hashes, always the same. */
export function leaves(count: number): Hash[] {
  return Array.from({ length: count }, (_, i) => nodeSha256(Buffer.from(`\0entry ${i}`)));
}

/** MTH over leaf hashes. */
export function naiveRoot(hashes: readonly Hash[]): Hash {
  const [only] = hashes;
  if (only === undefined) return EMPTY_ROOT;
  if (hashes.length === 1) return only;
  const split = largestPowerOfTwoBelow(hashes.length);
  const left = naiveRoot(hashes.slice(0, split));
  return nodeSha256(concat(Uint8Array.of(1), left, naiveRoot(hashes.slice(split))));
}

/** PATH(m, D_n) of RFC 9162 §2.1.3.1. */
export function naivePath(m: number, hashes: readonly Hash[]): Hash[] {
  if (hashes.length === 1) return [];
  const k = largestPowerOfTwoBelow(hashes.length);
  const [left, right] = [hashes.slice(0, k), hashes.slice(k)];
  return m < k
    ? [...naivePath(m, left), naiveRoot(right)]
    : [...naivePath(m - k, right), naiveRoot(left)];
}

/** SUBPROOF(m, D_n, b) of RFC 9162 §2.1.4.1; PROOF(m, D_n) with `whole`. */
export function naiveSubproof(m: number, hashes: readonly Hash[], whole = true): Hash[] {
  if (m === hashes.length) return whole ? [] : [naiveRoot(hashes)];
  const k = largestPowerOfTwoBelow(hashes.length);
  const [left, right] = [hashes.slice(0, k), hashes.slice(k)];
  return m <= k
    ? [...naiveSubproof(m, left, whole), naiveRoot(right)]
    : [...naiveSubproof(m - k, right, false), naiveRoot(left)];
}

/** Path to bytes of every tile that a checkpoint over these leaves implies. */
export function naiveTiles(hashes: readonly Hash[]): Map<string, Uint8Array> {
  const tiles = new Map<string, Uint8Array>();
  let nodes = hashes;
  for (let level = 0; nodes.length > 0; level++) {
    const above: Hash[] = [];
    for (let start = 0; start < nodes.length; start += 256) {
      const tile = nodes.slice(start, start + 256);
      const suffix = tile.length < 256 ? `.p/${tile.length}` : "";
      const index = String(start / 256).padStart(3, "0"); // enough below 256,000 leaves
      tiles.set(`tile/${level}/${index}${suffix}`, concat(...tile));
      if (tile.length === 256) above.push(naiveRoot(tile));
    }
    nodes = above;
  }
  return tiles;
}

function largestPowerOfTwoBelow(n: number): number {
  let k = 1;
  while (k * 2 < n) k *= 2;
  return k;
}
