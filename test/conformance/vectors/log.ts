/** A real log of 15 entries, written by Tessera: our code makes the same files, byte for byte. */
import { decodeBundle, encodeBundle } from "../../../src/core/bundle.ts";
import { formatCheckpoint, parseCheckpoint } from "../../../src/core/checkpoint.ts";
import { verifyByPoints } from "../../../src/core/ed25519.ts";
import { leafHash } from "../../../src/core/hash.ts";
import { openNote, parseVkey, type Vkey } from "../../../src/core/note.ts";
import { encodeUtf8, equal } from "../../../src/core/text.ts";
import {
  bundlePath,
  type Edge,
  EMPTY_EDGE,
  edgeRoot,
  grow,
  partialTiles,
  tilePath,
} from "../../../src/core/tile.ts";
import { readBytes, readJson, readText, type Vector, vector } from "../vector.ts";

interface Index {
  vkey: string;
  leaves_utf8: string[];
  checkpoints_by_size: Record<string, string>;
}

const ROOT = "tessera-log";

export function* logVectors(folder: string): Generator<Vector> {
  const index = readJson<Index>(folder, `${ROOT}/index.json`);
  const vkey = parseVkey(index.vkey);
  yield vector("tessera vkey", vkey !== undefined);
  const vkeys = vkey === undefined ? [] : [vkey];
  const entries = index.leaves_utf8.map(encodeUtf8);
  let edge = EMPTY_EDGE;
  yield checkpoint(folder, index, edge, vkeys);
  for (const [at, entry] of entries.entries()) {
    edge = grow(edge, [leafHash(entry)]).edge;
    yield checkpoint(folder, index, edge, vkeys);
    yield* partialTiles(edge).map(({ level, index: tile, width, bytes }) =>
      file(folder, tilePath(level, tile, width), bytes),
    );
    yield* bundle(folder, entries.slice(0, at + 1));
  }
  const newest = readText(folder, `${ROOT}/checkpoint`);
  yield vector("tessera checkpoint", newest === index.checkpoints_by_size[entries.length]);
}

/** The signed text is the one that we would sign for this edge. */
function checkpoint(folder: string, index: Index, edge: Edge, vkeys: Vkey[]): Vector {
  const name = `tessera checkpoint.${edge.size}`;
  const note = readText(folder, `${ROOT}/checkpoint.${edge.size}`);
  const opened = openNote(note, vkeys, verifyByPoints);
  if ("problem" in opened) return vector(name, false, opened.problem);
  const origin = parseCheckpoint(opened.text)?.origin ?? "";
  const ours = formatCheckpoint({ origin, size: edge.size, root: edgeRoot(edge) });
  const indexed = index.checkpoints_by_size[String(edge.size)] === note;
  return vector(name, ours === opened.text && indexed, ours);
}

function* bundle(folder: string, entries: readonly Uint8Array[]): Generator<Vector> {
  const path = bundlePath(0n, entries.length);
  yield file(folder, path, encodeBundle(entries));
  const read = decodeBundle(readBytes(folder, `${ROOT}/${path}`)) ?? [];
  const same =
    read.length === entries.length &&
    read.every((entry, i) => equal(entry, entries[i] ?? entry.subarray(1)));
  yield vector(`tessera ${path} is read back`, same);
}

function file(folder: string, path: string, bytes: Uint8Array): Vector {
  return vector(`tessera ${path}`, equal(readBytes(folder, `${ROOT}/${path}`), bytes));
}
