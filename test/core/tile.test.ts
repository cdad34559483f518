import fc from "fast-check";
import { expect, test } from "vitest";
import { EMPTY_ROOT, type Hash } from "../../src/core/hash.ts";
import { inclusionNodes, rootNodes, treeRoot } from "../../src/core/proof.ts";
import { encodeHex, equal } from "../../src/core/text.ts";
import {
  bundlePath,
  decodeEdge,
  type Edge,
  EMPTY_EDGE,
  edgeRoot,
  encodeEdge,
  grow,
  isImplied,
  parseTilePath,
  partialTiles,
  type Tile,
  tileNodes,
  tilePath,
  tilesOf,
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

test("every path that is written is read back", () => {
  const level = fc.nat(63);
  const index = fc.bigInt({ min: 0n, max: 10n ** 18n - 1n });
  const width = fc.integer({ min: 1, max: 256 });
  fc.assert(
    fc.property(level, index, width, (at, tile, hashes) => {
      const found = { kind: "tile", level: at, index: tile, width: hashes };
      expect(parseTilePath(tilePath(at, tile, hashes))).toEqual(found);
      const entries = { kind: "entries", index: tile, width: hashes };
      expect(parseTilePath(bundlePath(tile, hashes))).toEqual(entries);
    }),
  );
});

test.each([
  "",
  "checkpoint",
  "tile/0",
  "tile/0/",
  "/tile/0/000",
  "tile/0/000/",
  "tile/64/000",
  "tile/00/000",
  "tile/-1/000",
  "tile/0/0",
  "tile/0/00",
  "tile/0/0000",
  "tile/0/1000",
  "tile/0/x000/001",
  "tile/0/001/000",
  "tile/0/x001",
  "tile/0/X001/000",
  "tile/0/x001/x000",
  "tile/0/000.p/0",
  "tile/0/000.p/01",
  "tile/0/000.p/256",
  "tile/0/000.p/999",
  "tile/0/000.p/1000",
  "tile/0/000.p/",
  "tile/0/000.p",
  "tile/0/000.p/1/2",
  "tile/0/000.P/1",
  "tile/0/\u0660\u0660\u0660",
  "tile/0/000\n",
  "tile/data/000",
  "tile/entries/x000/000",
  `tile/0/${"x999/".repeat(6)}999`,
  "tile/0/../0/000",
])("%j is no path of a tile", (path) => {
  expect(parseTilePath(path)).toBeUndefined();
});

test("no text makes the reader of paths throw", () => {
  const piece = fc.constantFrom("tile", "entries", "0", "63", "x001", "000", "000.p", "7", "", "-");
  const pieces = fc.array(fc.oneof(piece, fc.string({ unit: "binary" })), { maxLength: 9 });
  fc.assert(
    fc.property(pieces, (parts) => {
      const path = parts.join("/");
      const found = parseTilePath(path);
      if (found === undefined) return;
      const { index, width } = found;
      const again =
        found.kind === "tile" ? tilePath(found.level, index, width) : bundlePath(index, width);
      expect(again).toBe(path);
    }),
    { numRuns: 1000 },
  );
});

test.each([0, 1, 255, 256, 257, 600, 65_536, 65_999])(
  "a checkpoint of size %i implies exactly the tiles of the format, and bundles like its lowest level",
  (size) => {
    const implied = [...naiveTiles(LEAVES.slice(0, size)).keys()];
    const bundles = implied.filter((path) => path.startsWith("tile/0/"));
    const all = [...implied, ...bundles.map((path) => path.replace("/0/", "/entries/"))];
    for (const path of all) expect(impliedBy(path, size), path).toBe(true);
    const others = all
      .map((path) => path.replace(/[.].*$/, ""))
      .filter((path) => !all.includes(path));
    for (const path of [...others, ...all.flatMap(neighbours)]) {
      if (!all.includes(path)) expect(impliedBy(path, size), path).toBe(false);
    }
  },
);

function impliedBy(path: string, size: number): boolean {
  const parsed = parseTilePath(path);
  if (parsed === undefined) throw new Error(`${path} is no path`);
  return isImplied(parsed, BigInt(size));
}

/** The next tile, the same one a level up, and those a hash narrower and wider. */
function neighbours(path: string): string[] {
  const parsed = parseTilePath(path);
  if (parsed === undefined) return [];
  const { kind, index, width } = parsed;
  const at = (next: bigint, hashes: number): string =>
    kind === "tile" ? tilePath(parsed.level, next, hashes) : bundlePath(next, hashes);
  const widths = [width - 1, width + 1, 1, 255].filter((hashes) => hashes > 0 && hashes <= 256);
  const above = kind === "tile" ? [tilePath(parsed.level + 1, index, width)] : [];
  return [at(index + 1n, width), ...above, ...widths.map((hashes) => at(index, hashes))];
}

test("the tiles of nodes are named once each, as wide as they are at that size", () => {
  const nodes = [
    ...inclusionNodes(0n, 70_000n),
    ...inclusionNodes(1n, 70_000n),
    ...rootNodes(70_000n),
  ];
  const paths = tilesOf(nodes, 70_000n).map(({ level, index, width }) =>
    tilePath(level, index, width),
  );
  expect(paths.sort()).toEqual([
    "tile/0/000",
    "tile/0/273.p/112",
    "tile/1/000",
    "tile/1/001.p/17",
    "tile/2/000.p/1",
  ]);
  expect(() => tilesOf([{ level: 0, index: 70_000n }], 70_000n)).toThrow("tile:");
  expect(() => tilesOf([{ level: 17, index: 0n }], 70_000n)).toThrow("tile:");
});

test("a later, wider tile serves as well; a cut one, and one that is not there, do not", () => {
  const partial = { level: 0, index: 0n, width: 5 };
  const [wider] = partialTiles(grown(9).edge);
  const bytes = wider?.bytes ?? new Uint8Array();
  const root = encodeHex(naiveRoot(LEAVES.slice(0, 5)));
  expect(encodeHex(treeRoot(5n, tileNodes([{ ...partial, bytes }])))).toBe(root);
  for (const length of [0, 4 * 32, 5 * 32 - 1, 5 * 32 + 1]) {
    expect(() => tileNodes([{ ...partial, bytes: bytes.subarray(0, length) }])).toThrow(
      "cut short",
    );
  }
  const read = tileNodes([{ ...partial, bytes: bytes.subarray(0, 5 * 32) }]);
  expect(() => read({ level: 0, index: 5n })).toThrow("not at hand");
  expect(() => read({ level: 0, index: 256n })).toThrow("not at hand");
  expect(() => read({ level: 8, index: 0n })).toThrow("not at hand");
});
