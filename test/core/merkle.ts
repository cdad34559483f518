/** RFC 9162 §2.1 and C2SP tlog-tiles word for word, recursive and slow: what the fast code is held to. */
import { hash } from "node:crypto";
import { EMPTY_ROOT, type Hash, type Sha256 } from "../../src/core/hash.ts";
import { concat } from "../../src/core/text.ts";

export const nodeSha256: Sha256 = (bytes) => new Uint8Array(hash("sha256", bytes, "buffer"));

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

/**
 * MTH, PATH and SUBPROOF of RFC 9162 §2.1 over D[start:end] of these leaf hashes. The root of a range is
 * worked out once: logs that grow from the same leaves share all their subtrees.
 */
export class NaiveTree {
  readonly #hashes: readonly Hash[];
  readonly #roots = new Map<string, Hash>();

  constructor(hashes: readonly Hash[]) {
    this.#hashes = hashes;
  }

  root(end: number, start = 0): Hash {
    const [only = EMPTY_ROOT] = this.#hashes.slice(start, start + 1);
    if (end - start <= 1) return end === start ? EMPTY_ROOT : only;
    const key = `${start} ${end}`;
    const known = this.#roots.get(key);
    if (known !== undefined) return known;
    const middle = start + largestPowerOfTwoBelow(end - start);
    const children = [this.root(middle, start), this.root(end, middle)];
    const root = nodeSha256(concat(Uint8Array.of(1), ...children));
    this.#roots.set(key, root);
    return root;
  }

  /** §2.1.3.1, with m counted from the first leaf of all. */
  path(m: number, end: number, start = 0): Hash[] {
    if (end - start === 1) return [];
    const middle = start + largestPowerOfTwoBelow(end - start);
    return m < middle
      ? [...this.path(m, middle, start), this.root(end, middle)]
      : [...this.path(m, end, middle), this.root(middle, start)];
  }

  /** §2.1.4.1, with m counted from the first leaf of all: PROOF(m, D_n) where `whole`. */
  subproof(m: number, end: number, start = 0, whole = true): Hash[] {
    if (m === end) return whole ? [] : [this.root(end, start)];
    const middle = start + largestPowerOfTwoBelow(end - start);
    return m <= middle
      ? [...this.subproof(m, middle, start, whole), this.root(end, middle)]
      : [...this.subproof(m, end, middle, false), this.root(middle, start)];
  }
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
