/**
 * One entry's proof, for whoever is shown it without the log: made from the tiles, and a second time
 * from nothing but the entries. It is given only where both are the same.
 */
import { decodeEntry } from "../../src/core/entry.ts";
import { type Hash, leafHash, type Sha256 } from "../../src/core/hash.ts";
import { inclusionNodes, inclusionProof, verifyInclusion } from "../../src/core/proof.ts";
import { Report, TYP } from "../../src/core/report.ts";
import { equal } from "../../src/core/text.ts";
import { bundlePath, TILE_WIDTH, tileNodes, tilesOf } from "../../src/core/tile.ts";
import { formatTlogProof } from "../../src/core/tlog-proof.ts";
import type { Tracking } from "../../src/core/unit.ts";
import { ReadAhead } from "../archive/ahead.ts";
import { splitBundle } from "../archive/block.ts";
import { type OpenedCheckpoint, openCheckpoint } from "../archive/checkpoints.ts";
import { type NewestOptions, newest } from "../fetch/newest.ts";
import { NotProven, Proven } from "../fetch/proven.ts";
import { CannotLook } from "../finding.ts";
import { readStatement } from "../prefix/statement.ts";
import type { Source } from "../source.ts";
import { EntryTree } from "./entry-tree.ts";

/** An entry by its index, or the usage entry of a job. */
export type Wanted = { index: bigint } | { job: string; tracking: Tracking | undefined };

export interface ProveOptions extends NewestOptions {
  wanted: Wanted;
  /** The checkpoint to prove it under; the newest without it. */
  size: bigint | undefined;
  hash: Sha256;
  onProgress?(done: bigint, bundles: bigint): void;
}

export interface Proved {
  index: bigint;
  checkpoint: OpenedCheckpoint;
  hashes: number;
  /** C2SP tlog-proof with the entry's bytes as its `extra`. */
  text: string;
}

interface Found {
  index: bigint;
  bytes: Uint8Array;
  tree: EntryTree;
}

/** @throws NotProven for what the log is at fault for, CannotLook for what is not there to be proven */
export async function prove(source: Source, options: ProveOptions): Promise<Proved> {
  const { hash } = options;
  const checkpoint = await checkpointAt(source, options);
  const { bytes, index, tree } = await find(source, checkpoint.size, options);
  const proven = await Proven.open({ sources: [source], checkpoint, hash });
  const { root, size } = checkpoint;
  const names = tilesOf(inclusionNodes(index, size), size);
  const tiles = await Promise.all(names.map(({ level, index: at }) => proven.tile(level, at)));
  const hashes = inclusionProof(index, size, tileNodes(tiles, hash), hash);
  const again = inclusionProof(index, size, tree.read, hash);
  const path = bundlePath(index / BigInt(TILE_WIDTH));
  if (!verifyInclusion({ leaf: leafHash(bytes, hash), index, size, proof: hashes, root }, hash)) {
    throw new NotProven("entry-altered", path, "not what the root covers", index);
  }
  const at = hashes.findIndex((node, i) => !equal(node, again[i] ?? NOTHING));
  if (at >= 0) {
    const detail = `the entries give another hash than the tiles at step ${at + 1} of the proof`;
    throw new NotProven("proof-differs", path, detail, index);
  }
  const text = formatTlogProof({ index, hashes, checkpoint: checkpoint.note, extra: bytes });
  return { index, checkpoint, hashes: hashes.length, text };
}

const NOTHING = new Uint8Array();

async function checkpointAt(
  source: Source,
  { size, ...options }: ProveOptions,
): Promise<OpenedCheckpoint> {
  const path = `checkpoint/${size}`;
  const file = size === undefined ? undefined : await source.read(path);
  const opened = file === undefined ? undefined : openCheckpoint(file, options);
  if (opened === "checkpoint-untrusted") throw new CannotLook(`${path} is not by a given key`);
  if (typeof opened === "string") throw new NotProven(opened, path, "it does not hold");
  if (opened !== undefined && opened.size !== size) {
    throw new NotProven("checkpoint-size", path, `it signs size ${opened.size}`);
  }
  const checkpoint = size === undefined ? await newest(source, options) : opened;
  if (checkpoint === undefined) throw new CannotLook("there is no such checkpoint");
  return checkpoint;
}

/** Goes through all entries: the tree that the second proof is from, and the entry on the way. */
async function find(
  source: Source,
  size: bigint,
  { hash, onProgress, wanted }: ProveOptions,
): Promise<Found> {
  const ahead = new ReadAhead(source, size);
  const tree = new EntryTree(hash);
  let found: Omit<Found, "tree"> | undefined;
  for (let bundle = 0n; bundle < ahead.end; bundle += 1n) {
    const entries = await entriesOf(ahead, bundle);
    const first = bundle * BigInt(TILE_WIDTH);
    const candidates = entries
      .map((bytes, i) => ({ bytes, index: first + BigInt(i) }))
      .filter(({ bytes, index }) => isWanted(wanted, bytes, index));
    for (const candidate of candidates) {
      if (found !== undefined) throw ambiguous(found.index, candidate.index);
      found = candidate;
    }
    const leaves: Hash[] = entries.map((entry) => leafHash(entry, hash));
    tree.add(leaves, candidates.length > 0);
    onProgress?.(bundle + 1n, ahead.end);
  }
  if (found === undefined) throw new CannotLook(`no such entry below the checkpoint of ${size}`);
  return { ...found, tree };
}

async function entriesOf(ahead: ReadAhead, index: bigint): Promise<Uint8Array[]> {
  const { bundle, width } = await ahead.read(index);
  const path = bundlePath(index, width);
  if (bundle === undefined) throw new NotProven("bundle-missing", path, "there is no such file");
  const entries = splitBundle(bundle.bytes).entries.slice(0, width);
  if (entries.length === width) return entries;
  throw new NotProven("bundle-width", path, `${entries.length} entries, not ${width}`);
}

function isWanted(wanted: Wanted, bytes: Uint8Array, index: bigint): boolean {
  if ("index" in wanted) return wanted.index === index;
  const entry = decodeEntry(bytes);
  if (typeof entry === "string" || entry.kind !== "usage") return false;
  if (wanted.tracking !== undefined && wanted.tracking !== entry.body.tracking) return false;
  const report = readStatement(entry.body.jws, TYP.report, Report);
  return typeof report !== "string" && report.payload.job.id === wanted.job;
}

function ambiguous(first: bigint, second: bigint): CannotLook {
  return new CannotLook(
    `entries ${first} and ${second} are both of that job: name one by --index, or its --tracking`,
  );
}
