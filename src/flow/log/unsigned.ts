/**
 * What lies in the archive past the newest checkpoint: a sealer that stopped before it signed leaves
 * bundles and tiles of entries that no checkpoint covers. What goes on from the log belongs to it
 * still; what does not would contradict the next seal, and has to make room.
 */
import { decodeBundle, encodeBundle } from "../../core/bundle.ts";
import { decodeEntry } from "../../core/entry.ts";
import { leafHash } from "../../core/hash.ts";
import { equal } from "../../core/text.ts";
import {
  bundlePath,
  parseTilePath,
  partialTiles,
  type Tile,
  type TilePath,
  tilePath,
} from "../../core/tile.ts";
import type { Transaction } from "../../store/connect.ts";
import { readEntries } from "../../store/entries.ts";
import type { Head } from "../../store/heads.ts";
import type { Seal } from "../../store/seals.ts";
import { type Archived, inOrder, WIDTH } from "./archived.ts";
import { extend } from "./extend.ts";
import { follows } from "./replay.ts";

/** A seal puts files in groups of fewer blocks than this: after so many empty ones nothing comes. */
const EMPTY_BLOCKS_MAX = 16;
const LEVEL_BITS = 8n;

type Place = Pick<Head, "size" | "leaf" | "at">;

/** Entries `from` … of the log. */
export interface Unsigned {
  from: bigint;
  entries: Uint8Array[];
}

/** Pages of archived entries that go on from this place, as far as they do. */
export async function* unsignedAfter(at: Archived, start: Place): AsyncGenerator<Unsigned> {
  for (let place = start; ; ) {
    const next = await following(at, place);
    if (next === undefined) return;
    yield next.page;
    place = next.place;
    if (place.size % WIDTH !== 0n) return;
  }
}

/** Of several sealers that stopped, the one that came furthest counts. */
async function following(
  at: Archived,
  start: Place,
): Promise<{ page: Unsigned; place: Place } | undefined> {
  const index = start.size / WIDTH;
  const skipped = Number(start.size % WIDTH);
  for (const { path, width } of await versions(at, bundlePath(index))) {
    if (width <= skipped) continue;
    const bundle = decodeBundle((await at.archive.get(`${at.log}/${path}`)) ?? new Uint8Array());
    const entries = bundle?.length === width ? bundle.slice(skipped) : [];
    const place = entries.length > 0 ? walked(at, start, entries) : undefined;
    if (place !== undefined) return { page: { from: start.size, entries }, place };
  }
  return undefined;
}

/** Behind these entries; undefined if one of them does not go on from the one before. */
function walked(
  { log, hash }: Archived,
  start: Place,
  entries: readonly Uint8Array[],
): Place | undefined {
  let place = start;
  for (const bytes of entries) {
    const entry = decodeEntry(bytes);
    if (typeof entry === "string" || !follows(place, log, entry)) return undefined;
    place = { size: place.size + 1n, leaf: leafHash(bytes, hash), at: entry.at };
  }
  return place;
}

/**
 * Paths of tiles and bundles about the checkpoint and past it that the database does not give, as it
 * stands with `size` entries. Asked under the lock of the seal: nobody else archives then.
 *
 * @param checkpoint what a seal at the newest checkpoint says
 */
export async function leftovers(
  tx: Transaction,
  at: Archived,
  checkpoint: Seal,
  size: bigint,
): Promise<string[]> {
  const given = await tilesPast(tx, at, checkpoint, size);
  const found: string[] = [];
  for await (const file of filesPast(at, checkpoint.size)) {
    const path = `${at.log}/${file.path}`;
    const bytes = await at.archive.get(path);
    const expected =
      file.kind === "entries" ? await bundleOf(tx, at, file, size) : tileOf(given, file);
    if (bytes === undefined || (expected !== undefined && equal(bytes, expected))) continue;
    found.push(path);
  }
  return found;
}

/** By level and index; of unfinished ones, what there is. */
async function tilesPast(
  tx: Transaction,
  { log, hash }: Archived,
  checkpoint: Seal,
  size: bigint,
): Promise<Map<string, Uint8Array>> {
  const tiles = new Map<string, Uint8Array>();
  const add = ({ level, index, bytes }: Tile) => tiles.set(`${level}/${index}`, bytes);
  let { edge } = checkpoint;
  for await (const page of extend(tx, log, checkpoint, size, hash)) {
    page.full.forEach(add);
    edge = page.edge;
  }
  partialTiles(edge).forEach(add);
  return tiles;
}

type File = TilePath & { path: string };

function tileOf(given: ReadonlyMap<string, Uint8Array>, file: File): Uint8Array | undefined {
  if (file.kind === "entries") return undefined;
  const { level, index, width } = file;
  const bytes = given.get(`${level}/${index}`);
  const length = width * 32;
  return bytes === undefined || bytes.length < length ? undefined : bytes.subarray(0, length);
}

async function bundleOf(
  tx: Transaction,
  { log }: Archived,
  { index, width }: File,
  size: bigint,
): Promise<Uint8Array | undefined> {
  const first = index * WIDTH;
  const end = first + BigInt(width);
  if (end > size) return undefined;
  const rows = await readEntries(tx, log, first, end);
  return encodeBundle(rows.map(({ bytes }) => bytes));
}

/** All that says something of entries from `size` on, and what shares a tile or bundle with them. */
async function* filesPast(at: Archived, size: bigint): AsyncGenerator<File> {
  yield* run(at, 0, size, bundlePath);
  for (let level = 0; level * Number(LEVEL_BITS) < 63; level += 1) {
    let any = false;
    for await (const file of run(at, level, size, (index) => tilePath(level, index))) {
      any = true;
      yield file;
    }
    // A level is begun when the first tile below is full.
    if (!any && size >> (LEVEL_BITS * BigInt(level)) === 0n) return;
  }
}

async function* run(
  at: Archived,
  level: number,
  size: bigint,
  pathOf: (index: bigint) => string,
): AsyncGenerator<File> {
  const shift = LEVEL_BITS * BigInt(level);
  const first = size >> (shift + LEVEL_BITS);
  let empty = 0;
  const found = inOrder(from(first), (index) => versions(at, pathOf(index)));
  for await (const { item: index, value: files } of found) {
    empty = files.length === 0 ? empty + 1 : 0;
    if (empty === EMPTY_BLOCKS_MAX) return;
    for (const file of files) {
      const end = (index * WIDTH + BigInt(file.width)) << shift;
      // Of the unfinished one all: a log that went another way once may have left some.
      if (end > size || index === first) yield file;
    }
  }
}

function* from(first: bigint): Generator<bigint> {
  for (let index = first; ; index += 1n) yield index;
}

/** All files of one tile or bundle, the widest first. */
async function versions({ archive, log }: Archived, full: string): Promise<File[]> {
  const [whole, partial] = await Promise.all([
    archive.get(`${log}/${full}`),
    archive.partials(`${log}/${full}`),
  ]);
  const paths = partial.map((path) => path.slice(log.length + 1));
  if (whole !== undefined) paths.push(full);
  return paths
    .flatMap((path) => {
      const parsed = parseTilePath(path);
      return parsed === undefined ? [] : [{ ...parsed, path }];
    })
    .sort((a, b) => b.width - a.width);
}
