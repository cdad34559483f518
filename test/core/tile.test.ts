import fc from "fast-check";
import { expect, test } from "vitest";
import { EMPTY_ROOT, type Hash } from "../../src/core/hash.ts";
import { encodeHex, equal } from "../../src/core/text.ts";
import {
  bundlePath,
  decodeEdge,
  type Edge,
  EMPTY_EDGE,
  edgeRoot,
  encodeEdge,
  grow,
  partialTiles,
  type Tile,
  tilePath,
} from "../../src/core/tile.ts";
import { leaves, naiveRoot, naiveTiles, nodeSha256 } from "./merkle.ts";

const LEAVES = leaves(66_000);

function grown(size: number): { edge: Edge; full: Tile[] } {
  return grow(EMPTY_EDGE, LEAVES.slice(0, size), nodeSha256);
}

function byPath(tiles: readonly Tile[]): Map<string, Uint8Array> {
  return new Map(tiles.map((tile) => [tilePath(tile.level, tile.index, tile.width), tile.bytes]));
}

/** Path and hash of each tile: a difference shows at once where it is. */
function listed(tiles: ReadonlyMap<string, Uint8Array>): string[] {
  return Array.from(tiles, ([path, bytes]) => `${path} ${encodeHex(nodeSha256(bytes))}`).sort();
}

/** What a log of this size has in its archive, its root, and its edge as stored. */
function expectLog(edge: Edge, full: readonly Tile[], hashes: readonly Hash[]): void {
  expect(edge.size).toBe(BigInt(hashes.length));
  expect(listed(byPath([...full, ...partialTiles(edge)]))).toEqual(listed(naiveTiles(hashes)));
  expect(encodeHex(edgeRoot(edge, nodeSha256))).toBe(encodeHex(naiveRoot(hashes)));
  expect(encodeHex(encodeEdge(decodeEdge(encodeEdge(edge))))).toBe(encodeHex(encodeEdge(edge)));
}

test.each([0, 1, 2, 255, 256, 257, 511, 512, 65_535, 65_536, 65_537])(
  "a log of %i entries has the tiles and the root that the formats define",
  (size) => {
    const { edge, full } = grown(size);
    expectLog(edge, full, LEAVES.slice(0, size));
  },
);

test("a log that grows in pieces of any size has the same tiles and roots", () => {
  fc.assert(
    fc.property(fc.array(fc.nat(400), { maxLength: 8 }), (counts) => {
      expectPieces(EMPTY_EDGE, [], counts);
    }),
    { numRuns: 25 },
  );
});

test("a log that grows in pieces past its first 65,536 entries has the same tiles and roots", () => {
  const { edge, full } = grown(65_200);
  expectPieces(edge, full, [300, 35, 1, 1, 0, 280]);
});

function expectPieces(start: Edge, before: readonly Tile[], counts: readonly number[]): void {
  let edge = start;
  const full = [...before];
  for (const count of counts) {
    const size = Number(edge.size);
    const next = grow(edge, LEAVES.slice(size, size + count), nodeSha256);
    edge = next.edge;
    full.push(...next.full);
  }
  expectLog(edge, full, LEAVES.slice(0, Number(edge.size)));
}

test("tiles are given in the order in which they are completed", () => {
  const paths = [...byPath(grown(65_536).full).keys()];
  expect(paths.slice(0, 2)).toEqual(["tile/0/000", "tile/0/001"]);
  expect(paths.slice(-2)).toEqual(["tile/0/255", "tile/1/000"]);
});

test("growing leaves the given edge as it was", () => {
  const { edge } = grown(255);
  const before = encodeEdge(edge);
  const two = grow(edge, LEAVES.slice(255, 257), nodeSha256);
  expect(encodeEdge(edge)).toEqual(before);
  expect(two.full.map((tile) => tile.width)).toEqual([256]);
  expect(grow(edge, [])).toEqual({ edge, full: [] });
});

test("without a hash given, the same tiles and roots come out", () => {
  const { edge, full } = grow(EMPTY_EDGE, LEAVES.slice(0, 300));
  expectLog(edge, full, LEAVES.slice(0, 300));
  expect(edgeRoot(edge)).toEqual(edgeRoot(edge, nodeSha256));
  expect(edgeRoot(EMPTY_EDGE)).toEqual(EMPTY_ROOT);
});

test("a size alone says which partial tiles there are, however large the log", () => {
  fc.assert(
    fc.property(fc.bigInt({ min: 0n, max: 2n ** 64n - 1n }), (size) => {
      const widths = Array.from({ length: 8 }, (_, level) =>
        Number((size >> BigInt(8 * level)) % 256n),
      );
      const hashes = widths.reduce((sum, width) => sum + width, 0);
      const stored = new Uint8Array(8 + 32 * hashes);
      new DataView(stored.buffer).setBigUint64(0, size);
      const edge = decodeEdge(stored);
      expect(equal(encodeEdge(edge), stored)).toBe(true);
      const partial = partialTiles(edge).map(({ level, width }) => ({ level, width }));
      const expected = widths.map((width, level) => ({ level, width }));
      expect(partial).toEqual(expected.filter(({ width }) => width > 0));
    }),
  );
});

test("an edge from storage is read at any offset, and not when it was cut or is too long", () => {
  const stored = encodeEdge(grown(300).edge);
  const shifted = new Uint8Array([1, 2, 3, ...stored]).subarray(3);
  expect(decodeEdge(shifted)).toEqual(grown(300).edge);
  for (const length of [0, 7, 8, stored.length - 32, stored.length - 1]) {
    expect(() => decodeEdge(stored.subarray(0, length))).toThrow("edge:");
  }
  expect(() => decodeEdge(new Uint8Array([...stored, 0]))).toThrow("edge:");
});

test.each([
  [0n, 256, "tile/0/000"],
  [0n, 1, "tile/0/000.p/1"],
  [999n, 256, "tile/0/999"],
  [1000n, 256, "tile/0/x001/000"],
  [1_234_067n, 8, "tile/0/x001/x234/067.p/8"],
  [2n ** 56n - 1n, 255, "tile/0/x072/x057/x594/x037/x927/935.p/255"],
])("tile %s of width %i is at %3$s", (index, width, path) => {
  expect(tilePath(0, index, width)).toBe(path);
  expect(bundlePath(index, width)).toBe(path.replace("tile/0/", "tile/entries/"));
});

test("a path without a width is that of the full tile or bundle", () => {
  expect(tilePath(63, 5n)).toBe("tile/63/005");
  expect(bundlePath(5n)).toBe("tile/entries/005");
});

test("paths that the format does not have are not written", () => {
  expect(() => tilePath(-1, 0n)).toThrow("tile: no such level");
  expect(() => tilePath(64, 0n)).toThrow("tile: no such level");
  expect(() => tilePath(0, -1n)).toThrow("tile: no such index");
  expect(() => bundlePath(0n, 0)).toThrow("tile: no such width");
  expect(() => bundlePath(0n, 257)).toThrow("tile: no such width");
});
