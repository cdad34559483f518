import fc from "fast-check";
import { expect, test } from "vitest";
import { EMPTY_ROOT, type Hash, leafHash, nodeHash, sha256 } from "../../src/core/hash.ts";
import { foldPeaks, rootHash } from "../../src/core/merkle.ts";
import { concat, encodeHex } from "../../src/core/text.ts";
import { leaves, naiveRoot, nodeSha256 } from "./merkle.ts";

const LEAVES = leaves(1500);

test("the root is that of RFC 6962 for every small size", () => {
  for (let size = 0; size <= 260; size++) {
    const some = LEAVES.slice(0, size);
    expect(encodeHex(rootHash(some, nodeSha256))).toBe(encodeHex(naiveRoot(some)));
  }
});

test("the root is that of RFC 6962 for sizes up to 1,500", () => {
  fc.assert(
    fc.property(fc.nat(1500), (size) => {
      const some = LEAVES.slice(0, size);
      expect(encodeHex(rootHash(some, nodeSha256))).toBe(encodeHex(naiveRoot(some)));
    }),
    { numRuns: 50 },
  );
});

test("a compact range folds to the root of the whole log", () => {
  fc.assert(
    fc.property(fc.nat(1500), (size) => {
      const some = LEAVES.slice(0, size);
      const peaks = perfectSubtrees(some).map((subtree) => naiveRoot(subtree));
      expect(encodeHex(foldPeaks(peaks, nodeSha256))).toBe(encodeHex(naiveRoot(some)));
    }),
    { numRuns: 50 },
  );
});

test("leaf and node are hashed with their prefix, of whatever length, and whatever was hashed before", () => {
  for (const length of [65_535, 0, 1, 32, 65_536, 31, 33, 32]) {
    const bytes = new Uint8Array(length).fill(length);
    expect(leafHash(bytes)).toEqual(sha256(concat(Uint8Array.of(0), bytes)));
    const node = sha256(concat(Uint8Array.of(1), bytes, bytes));
    if (length < 65_535) expect(nodeHash(bytes, bytes)).toEqual(node);
  }
});

/** The leaves parted into runs of 2^k, the longest first. */
function perfectSubtrees(hashes: readonly Hash[]): Hash[][] {
  const runs: Hash[][] = [];
  let rest = hashes.slice();
  while (rest.length > 0) {
    const length = 2 ** Math.floor(Math.log2(rest.length));
    runs.push(rest.slice(0, length));
    rest = rest.slice(length);
  }
  return runs;
}

test("the root of nothing is the hash of nothing", () => {
  expect(rootHash([])).toBe(EMPTY_ROOT);
  expect(foldPeaks([])).toBe(EMPTY_ROOT);
  expect(EMPTY_ROOT).toEqual(nodeSha256(new Uint8Array()));
});

test("our own SHA-256 and Node's give the same leaves and nodes", () => {
  fc.assert(
    fc.property(fc.uint8Array({ maxLength: 300 }), (bytes) => {
      expect(sha256(bytes)).toEqual(nodeSha256(bytes));
      expect(leafHash(bytes)).toEqual(nodeSha256(concat(Uint8Array.of(0), bytes)));
      const leaf = leafHash(bytes);
      expect(nodeHash(leaf, EMPTY_ROOT)).toEqual(nodeHash(leaf, EMPTY_ROOT, nodeSha256));
    }),
  );
});

test("an inner node never has the hash of an entry with the same bytes", () => {
  const [left = EMPTY_ROOT, right = EMPTY_ROOT] = LEAVES;
  expect(leafHash(concat(left, right))).not.toEqual(nodeHash(left, right));
});
