/** Bundles and tiles, fetched and compared with what they must be. */
import { concat, equal } from "../../src/core/text.ts";
import { bundlePath, TILE_WIDTH, tilePath } from "../../src/core/tile.ts";
import type { Findings } from "../finding.ts";
import type { Bundle } from "../reading/bundle.ts";
import type { Source } from "../source.ts";
import { type OpenPiles, SortedPiles } from "../tally/piles.ts";
import { type Found, splitBundle } from "./block.ts";
import { placeOf } from "./surplus.ts";
import type { Filled } from "./tree.ts";

/** Bundle `index` and its tile of level 0, as much of both as is there. */
export interface BlockFiles {
  index: bigint;
  /** Entries that the checkpoint covers, 1 … 256. */
  width: number;
  bundle: File | undefined;
  tile: File | undefined;
}

interface File {
  path: string;
  /** As the path names it: the wanted one, or 256. */
  width: number;
  bytes: Uint8Array;
}

const HASH_BYTES = 32;
/** Piles ascend with the indices in them. */
const PILE_BITS = 16n;

export async function readBlock(source: Source, index: bigint, width: number): Promise<BlockFiles> {
  const [bundle, tile] = await Promise.all([
    readWidth(source, (as) => bundlePath(index, as), width),
    readWidth(source, (as) => tilePath(0, index, as), width),
  ]);
  return { index, width, bundle, tile };
}

/** Which blocks after `index` have a bundle or a tile of whatever width: ascending, each once. */
export async function blocksAfter(
  source: Source,
  index: bigint,
  open: OpenPiles,
): Promise<Iterator<bigint>> {
  const record = new Uint8Array(8);
  const piles = new SortedPiles(open, { width: record.length, keyWidth: record.length });
  for (const folder of ["tile/entries", "tile/0"]) {
    for await (const path of source.list(folder)) {
      const place = placeOf(path);
      if (place === undefined || place.index <= index) continue;
      new DataView(record.buffer).setBigUint64(0, place.index);
      piles.add(Number(place.index >> PILE_BITS), record);
    }
  }
  return indices(piles);
}

function* indices(piles: SortedPiles): Generator<bigint> {
  for (const { record, first } of piles.records()) {
    if (first) yield new DataView(record.buffer, record.byteOffset).getBigUint64(0);
  }
}

/** C2SP tlog-tiles: a partial file may be gone once the full one is there. */
export async function readWidth(
  source: Source,
  pathOf: (width: number) => string,
  wanted: number,
): Promise<File | undefined> {
  for (const width of new Set([wanted, TILE_WIDTH])) {
    const path = pathOf(width);
    const bytes = await source.read(path);
    if (bytes !== undefined) return { path, width, bytes };
  }
  return undefined;
}

/** The bundle's entries that the checkpoint covers, or those of them that can be told apart. */
export function entriesOf(
  { index, width, bundle }: BlockFiles,
  read: Bundle | undefined,
  findings: Findings,
): Found[] {
  const first = index * BigInt(TILE_WIDTH);
  if (bundle === undefined || read === undefined) {
    const where = { index: first, path: bundlePath(index, width) };
    findings.add("bundle-missing", where, "there is no such file");
    return [];
  }
  const { path } = bundle;
  const { cut, found } = read;
  if (cut) {
    const where = { index: first + BigInt(found.length), path };
    findings.add("bundle-cut", where, "bytes at the end that are no entry");
  }
  if (found.length !== bundle.width) {
    findings.add("bundle-width", { path }, `${found.length} entries, not ${bundle.width}`);
  }
  return bundle.width === width ? found : found.slice(0, width);
}

/** The leaf hashes of a tile of level 0; undefined where it is missing or of another width. */
export function leavesOf({ width, tile }: BlockFiles): Uint8Array[] | undefined {
  if (tile?.bytes.length !== (tile?.width ?? 0) * HASH_BYTES) return undefined;
  return Array.from({ length: width }, (_, i) =>
    tile.bytes.subarray(i * HASH_BYTES, (i + 1) * HASH_BYTES),
  );
}

/**
 * Compares a tile with what the tree gives. Of level 0 only presence and width are asked here: its
 * hashes are compared one by one, where the entry at fault can be named.
 */
export async function compareTile(
  source: Source,
  { level, index, hashes }: Filled,
  findings: Findings,
): Promise<void> {
  const pathOf = (as: number): string => tilePath(level, index, as);
  const file = await readWidth(source, pathOf, hashes.length);
  const expected = concat(...hashes);
  if (file === undefined) {
    findings.add("tile-missing", { path: pathOf(hashes.length) }, "there is no such file");
  } else if (file.bytes.length !== file.width * HASH_BYTES) {
    const detail = `${file.bytes.length} bytes, not ${file.width * HASH_BYTES}`;
    findings.add("tile-width", { path: file.path }, detail);
  } else if (level > 0 && !equal(file.bytes.subarray(0, expected.length), expected)) {
    findings.add("tile-hash", { path: file.path }, "not the hashes that the entries give");
  }
  for await (const { path, width, bytes } of otherFiles(source, pathOf, file)) {
    if (bytes.length !== width * HASH_BYTES) {
      findings.add("tile-width", { path }, `${bytes.length} bytes, not ${width * HASH_BYTES}`);
      continue;
    }
    const common = Math.min(width, hashes.length) * HASH_BYTES;
    if (equal(bytes.subarray(0, common), expected.subarray(0, common))) continue;
    findings.add("tile-partial", { path }, "not what the tile begins with");
  }
}

/** Compares what other checkpoints left of a bundle: a log that forked could have left it. */
export async function compareBundles(
  source: Source,
  { bundle, index, width: covered }: BlockFiles,
  findings: Findings,
): Promise<void> {
  let entries: Uint8Array[] | undefined;
  const pathOf = (as: number): string => bundlePath(index, as);
  for await (const { path, width, bytes } of otherFiles(source, pathOf, bundle)) {
    const held = splitBundle(bytes);
    if (held.cut || held.entries.length !== width) {
      findings.add("bundle-width", { path }, `${held.entries.length} entries, not ${width}`);
      continue;
    }
    entries ??= splitBundle(bundle?.bytes ?? NOTHING).entries.slice(0, covered);
    const common = entries.slice(0, width);
    if (common.every((entry, i) => equal(entry, held.entries[i] ?? NOTHING))) continue;
    findings.add("bundle-partial", { path }, "not what the bundle begins with");
  }
}

const NOTHING = new Uint8Array();

/** All files of one bundle or tile but the one that was read: narrower ones, wider ones, and the full one. */
async function* otherFiles(
  source: Source,
  pathOf: (width: number) => string,
  read: File | undefined,
): AsyncGenerator<File> {
  const paths = async function* (): AsyncGenerator<string> {
    yield* source.list(`${pathOf(TILE_WIDTH)}.p`);
    yield pathOf(TILE_WIDTH);
  };
  for await (const path of paths()) {
    const place = placeOf(path);
    if (place === undefined || path === read?.path) continue;
    const bytes = await source.read(path);
    if (bytes !== undefined) yield { path, width: place.width, bytes };
  }
}
