import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { EMPTY_ROOT, type Hash } from "../../src/core/hash.ts";
import {
  type Consistency,
  consistencyNodes,
  consistencyProof,
  formatHashes,
  type Inclusion,
  inclusionNodes,
  inclusionProof,
  leafNodes,
  type Node,
  parseHashes,
  type ReadNode,
  rootNodes,
  treeRoot,
  verifyConsistency,
  verifyInclusion,
} from "../../src/core/proof.ts";
import { encodeBase64, encodeHex } from "../../src/core/text.ts";
import { EMPTY_EDGE, grow, partialTiles, tileNodes, tilesOf } from "../../src/core/tile.ts";
import { leaves, NaiveTree, naiveRoot, nodeSha256 } from "./merkle.ts";

const LEAVES = leaves(66_000);
const oracle = new NaiveTree(LEAVES);
const BORDERS = [1, 255, 256, 257, 65_535, 65_536, 65_537];

const hex = (hashes: readonly Hash[]): string[] => hashes.map(encodeHex);

interface Log {
  /** A reader of its archive, and of no tile but those that the nodes ask for. */
  tiles(nodes: readonly Node[]): ReadNode;
  /** From its entries; what several proofs ask for is hashed once. */
  entries: ReadNode;
}

function logOf(size: number): Log {
  const { edge, full } = grow(EMPTY_EDGE, LEAVES.slice(0, size), nodeSha256);
  const tiles = [...full, ...partialTiles(edge)];
  return {
    tiles: (nodes) => {
      const asked = tilesOf(nodes, BigInt(size)).map(({ level, index, width }) => {
        const found = tiles.find((tile) => tile.level === level && tile.index === index);
        if (found?.width !== width) throw new Error("the archive has no such tile");
        return found;
      });
      return tileNodes(asked, nodeSha256);
    },
    entries: remembered(leafNodes(LEAVES.slice(0, size), nodeSha256)),
  };
}

function remembered(read: ReadNode): ReadNode {
  const known = new Map<string, Hash>();
  return (node) => {
    const key = `${node.level} ${node.index}`;
    const hash = known.get(key) ?? read(node);
    known.set(key, hash);
    return hash;
  };
}

/** From entries and from tiles, with the oracle's hashes; and both verify. */
function expectInclusion(index: number, size: number, { entries, tiles }: Log): void {
  const [at, of] = [BigInt(index), BigInt(size)];
  const expected = hex(oracle.path(index, size));
  const proof = inclusionProof(at, of, tiles(inclusionNodes(at, of)), nodeSha256);
  expect(hex(proof)).toEqual(expected);
  expect(hex(inclusionProof(at, of, entries, nodeSha256))).toEqual(expected);
  const [leaf = EMPTY_ROOT] = LEAVES.slice(index);
  const inclusion = { leaf, index: at, size: of, proof, root: oracle.root(size) };
  expect(verifyInclusion(inclusion, nodeSha256)).toBe(true);
}

function expectConsistency(from: number, to: number, { entries, tiles }: Log): void {
  const [older, newer] = [BigInt(from), BigInt(to)];
  const expected = hex(oracle.subproof(from, to));
  const proof = consistencyProof(older, newer, tiles(consistencyNodes(older, newer)), nodeSha256);
  expect(hex(proof)).toEqual(expected);
  expect(hex(consistencyProof(older, newer, entries, nodeSha256))).toEqual(expected);
  const roots = { fromRoot: oracle.root(from), toRoot: oracle.root(to) };
  expect(verifyConsistency({ from: older, to: newer, proof, ...roots }, nodeSha256)).toBe(true);
}

function expectRoot(size: number, { entries, tiles }: Log): void {
  const root = encodeHex(oracle.root(size));
  const nodes = rootNodes(BigInt(size));
  expect(encodeHex(treeRoot(BigInt(size), tiles(nodes), nodeSha256))).toBe(root);
  expect(encodeHex(treeRoot(BigInt(size), entries, nodeSha256))).toBe(root);
}

describe("proofs and roots from tiles and from entries are those of RFC 9162", () => {
  test("for every entry and every pair of sizes of a small log", () => {
    for (let size = 1; size <= 40; size++) {
      const log = logOf(size);
      expectRoot(size, log);
      for (let index = 0; index < size; index++) expectInclusion(index, size, log);
      for (let from = 1; from <= size; from++) expectConsistency(from, size, log);
    }
  });

  test("for random sizes up to 4,000", () => {
    const sizes = fc.integer({ min: 1, max: 4000 });
    fc.assert(
      fc.property(sizes, fc.nat(), fc.nat(), (size, some, other) => {
        const log = logOf(size);
        expectRoot(size, log);
        expectInclusion(some % size, size, log);
        expectConsistency((other % size) + 1, size, log);
      }),
      { numRuns: 60 },
    );
  });

  test.each(BORDERS)("for a log of %i entries", (size) => {
    const log = logOf(size);
    expectRoot(size, log);
    const indices = [0, 255, 256, size - 1];
    for (const index of indices.filter((candidate) => candidate < size)) {
      expectInclusion(index, size, log);
      expectConsistency(index + 1, size, log);
    }
  });
});

describe("no altered proof holds", () => {
  const spots = fc.record({ hash: fc.nat(), byte: fc.nat(31), bit: fc.nat(7) });
  const sizes = fc.integer({ min: 1, max: 600 });
  const root = (size: bigint): Hash => oracle.root(Number(size));
  const tree = leafNodes(LEAVES.slice(0, 601), nodeSha256);

  test("of inclusion", () => {
    fc.assert(
      fc.property(sizes, fc.nat(), spots, (entries, some, spot) => {
        const [size, index] = [BigInt(entries), BigInt(some % entries)];
        const proof = inclusionProof(index, size, tree, nodeSha256);
        const [leaf = EMPTY_ROOT, next = EMPTY_ROOT] = LEAVES.slice(Number(index));
        const good = { leaf, index, size, proof, root: root(size) };
        expect(verifyInclusion(good, nodeSha256)).toBe(true);
        const bad: Inclusion[] = [
          ...spoilt(proof, spot).map((other) => ({ ...good, proof: other })),
          { ...good, index: index + 1n },
          { ...good, index: index - 1n },
          { ...good, size: size + 1n, root: root(size + 1n) },
          { ...good, size: size - 1n, root: root(size - 1n) },
          { ...good, leaf: next },
          { ...good, leaf: leaf.slice(1) },
          { ...good, root: flipped(good.root, spot) },
          { ...good, root: good.root.slice(1) },
        ];
        for (const inclusion of bad) expect(verifyInclusion(inclusion, nodeSha256)).toBe(false);
      }),
      { numRuns: 150 },
    );
  });

  test("of consistency", () => {
    fc.assert(
      fc.property(sizes, fc.nat(), spots, (entries, some, spot) => {
        const [to, from] = [BigInt(entries), BigInt((some % entries) + 1)];
        const proof = consistencyProof(from, to, tree, nodeSha256);
        const good = { from, to, proof, fromRoot: root(from), toRoot: root(to) };
        expect(verifyConsistency(good, nodeSha256)).toBe(true);
        const bad: Consistency[] = [
          ...spoilt(proof, spot).map((other) => ({ ...good, proof: other })),
          { ...good, from: from + 1n },
          { ...good, from: from - 1n },
          { ...good, from: from + 1n, fromRoot: root(from + 1n) },
          { ...good, from: from - 1n, fromRoot: root(from - 1n) },
          { ...good, to: to + 1n, toRoot: root(to + 1n) },
          { ...good, to: to - 1n, toRoot: root(to - 1n) },
          { ...good, fromRoot: flipped(good.fromRoot, spot) },
          { ...good, toRoot: flipped(good.toRoot, spot) },
          { ...good, fromRoot: good.fromRoot.slice(1) },
          { ...good, toRoot: good.toRoot.slice(1) },
        ];
        for (const claim of bad) expect(verifyConsistency(claim, nodeSha256)).toBe(false);
      }),
      { numRuns: 150 },
    );
  });

  function flipped(hash: Hash, { byte, bit }: { byte: number; bit: number }): Hash {
    return hash.map((value, i) => (i === byte ? value ^ (1 << bit) : value));
  }

  /** One hash dropped, altered, cut, put in, put in at the end, or two that swapped places. */
  function spoilt(
    proof: readonly Hash[],
    spot: { hash: number; byte: number; bit: number },
  ): Hash[][] {
    const added = [
      [...proof, EMPTY_ROOT],
      [EMPTY_ROOT, ...proof],
    ];
    if (proof.length === 0) return added;
    const at = spot.hash % proof.length;
    const [chosen = EMPTY_ROOT] = proof.slice(at);
    const changed = [
      proof.toSpliced(at, 1),
      proof.with(at, flipped(chosen, spot)),
      proof.with(at, chosen.slice(1)),
      proof.toSpliced(at, 0, chosen),
      ...added,
    ];
    const [neighbour] = proof.slice(at + 1);
    if (neighbour !== undefined) changed.push(proof.with(at, neighbour).with(at + 1, chosen));
    return changed;
  }
});

test("verifiers answer whatever they are given, and proofs out of bounds are not made", () => {
  const sizes = fc.bigInt({ min: -3n, max: 2n ** 65n });
  const hash = fc.uint8Array({ minLength: 31, maxLength: 33 });
  const proofs = fc.array(hash, { maxLength: 80 });
  fc.assert(
    fc.property(sizes, sizes, proofs, hash, hash, (a, b, proof, one, two) => {
      verifyInclusion({ leaf: one, index: a, size: b, proof, root: two });
      verifyConsistency({ from: a, to: b, proof, fromRoot: one, toRoot: two });
    }),
  );
  const none: ReadNode = () => EMPTY_ROOT;
  for (const [index, size] of [
    [0n, 0n],
    [5n, 5n],
    [-1n, 5n],
  ] as const) {
    expect(() => inclusionProof(index, size, none)).toThrow("proof:");
  }
  for (const [from, to] of [
    [0n, 0n],
    [0n, 5n],
    [6n, 5n],
    [-1n, 5n],
  ] as const) {
    expect(() => consistencyProof(from, to, none)).toThrow("proof:");
    expect(
      verifyConsistency({ from, to, proof: [], fromRoot: EMPTY_ROOT, toRoot: EMPTY_ROOT }),
    ).toBe(false);
  }
});

test("proofs in the largest log there can be have 63 hashes, and their nodes stay inside it", () => {
  const size = 2n ** 63n - 1n;
  const read: ReadNode = ({ level, index }) => {
    expect((index + 1n) << BigInt(level)).toBeLessThanOrEqual(size);
    return EMPTY_ROOT;
  };
  expect(inclusionProof(0n, size, read)).toHaveLength(63);
  expect(consistencyProof(2n ** 61n - 1n, 2n ** 62n, read)).toHaveLength(63);
  expect(rootNodes(size)).toHaveLength(63);
  expect(tilesOf(inclusionNodes(0n, size), size).map(({ level }) => level)).toContain(7);
});

test("without a hash given, the same proofs come out and hold", () => {
  const read = leafNodes(LEAVES.slice(0, 7));
  const some = LEAVES.slice(0, 7);
  const proof = inclusionProof(4n, 7n, read);
  expect(hex(proof)).toEqual(hex(oracle.path(4, 7)));
  const [leaf = EMPTY_ROOT] = some.slice(4);
  const root = treeRoot(7n, read);
  expect(verifyInclusion({ leaf, index: 4n, size: 7n, proof, root })).toBe(true);
  const consistent = { from: 3n, to: 7n, proof: consistencyProof(3n, 7n, read) };
  const fromRoot = treeRoot(3n, read);
  expect(verifyConsistency({ ...consistent, fromRoot, toRoot: root })).toBe(true);
});

test("the oracle is the one that all other tests have", () => {
  for (const size of [0, 1, 2, 7, 600]) {
    expect(oracle.root(size)).toEqual(naiveRoot(LEAVES.slice(0, size)));
  }
});

test("a log without entries has the root of nothing", () => {
  expect(treeRoot(0n, leafNodes([]))).toBe(EMPTY_ROOT);
});

test("leaves are not read past their end", () => {
  const read = leafNodes(LEAVES.slice(0, 3));
  expect(() => read({ level: 0, index: 3n })).toThrow("proof:");
  expect(() => read({ level: 1, index: 1n })).toThrow("proof:");
  expect(() => read({ level: 0, index: -1n })).toThrow("proof:");
});

test("a proof's lines are read back, and other lines are not", () => {
  const hashes = LEAVES.slice(0, 63);
  const text = formatHashes(hashes);
  const lines = text.split("\n").slice(0, -1);
  expect(hex(parseHashes(lines) ?? [])).toEqual(hex(hashes));
  expect(parseHashes([])).toEqual([]);
  expect(formatHashes([])).toBe("");
  expect(parseHashes([...lines, encodeBase64(EMPTY_ROOT)])).toBeUndefined();
  expect(parseHashes([encodeBase64(EMPTY_ROOT.slice(1))])).toBeUndefined();
  expect(parseHashes([encodeBase64(EMPTY_ROOT).slice(0, -1)])).toBeUndefined();
  expect(parseHashes([""])).toBeUndefined();
  expect(() => formatHashes([...hashes, EMPTY_ROOT])).toThrow("proof:");
  expect(() => formatHashes([EMPTY_ROOT.slice(1)])).toThrow("proof:");
});
