/**
 * Checkpoints of one log, from wherever they were seen, held against each other. Whether one follows from
 * another is computed from tiles that were proven under the larger one's root, never taken from a server.
 */
import type { Checkpoint } from "../../src/core/checkpoint.ts";
import { EMPTY_ROOT, type Hash, type Sha256 } from "../../src/core/hash.ts";
import { consistencyNodes, consistencyProof, verifyConsistency } from "../../src/core/proof.ts";
import { equal } from "../../src/core/text.ts";
import { tileNodes, tilesOf } from "../../src/core/tile.ts";
import type { OpenedCheckpoint } from "../archive/checkpoints.ts";
import { NotProven, Proven } from "../fetch/proven.ts";
import type { FindingCode } from "../finding.ts";
import type { Source } from "../source.ts";

/** A checkpoint that a trusted key has signed, and the address that showed it. */
export interface Sighting {
  from: string;
  checkpoint: OpenedCheckpoint;
}

/** What an address shows now; a witness has no tiles. */
export interface View extends Sighting {
  source: Source | undefined;
}

export interface Alarm {
  /** `split-view`: two truths were signed. `rollback`: an address went back. Else what does not hold. */
  code: "split-view" | "rollback" | FindingCode;
  detail: string;
  /** The notes as they were shown: the evidence. */
  notes: { from: string; note: string }[];
  /** From the first note's size to the second's, out of the second's own tiles: it does not hold. */
  proof: Hash[];
}

/** The first contradiction between what is shown now and what was seen before, if there is one. */
export async function compare(
  views: readonly View[],
  seen: readonly Sighting[],
  hash: Sha256,
): Promise<Alarm | undefined> {
  const fallen = rollback(views, seen);
  if (fallen !== undefined) return fallen;
  const newest = newestOf(views);
  if (newest === undefined) return undefined;
  try {
    const { checkpoint, source } = newest;
    const proven = await Proven.open({ sources: [source], checkpoint, hash });
    for (const other of [...seen, ...views]) {
      if (other.checkpoint.size > checkpoint.size) continue; // until the log shows as much
      const { holds, proof } = await follow(proven, other.checkpoint, checkpoint, hash);
      if (!holds) return splitView(other, newest, proof);
    }
    return undefined;
  } catch (error) {
    if (!(error instanceof NotProven)) throw error;
    const detail = `${newest.from}/${error.path}: ${error.message}`;
    return { code: error.code, detail, notes: notesOf(newest), proof: [] };
  }
}

/** The largest checkpoint that has tiles. */
export function newestOf(views: readonly View[]): (View & { source: Source }) | undefined {
  const [newest] = views
    .flatMap((view) => (view.source === undefined ? [] : [{ ...view, source: view.source }]))
    .sort((a, b) => (a.checkpoint.size < b.checkpoint.size ? 1 : -1));
  return newest;
}

/** Of an address of the log. A witness may lag behind itself (C2SP tlog-witness: up to an hour). */
function rollback(views: readonly View[], seen: readonly Sighting[]): Alarm | undefined {
  for (const view of views) {
    if (view.source === undefined) continue;
    const before = seen.find(
      ({ checkpoint, from }) => from === view.from && checkpoint.size > view.checkpoint.size,
    );
    if (before === undefined) continue;
    const detail = `${view.from} shows ${view.checkpoint.size} entries, after ${before.checkpoint.size}`;
    return { code: "rollback", detail, notes: notesOf(before, view), proof: [] };
  }
  return undefined;
}

async function follow(
  proven: Proven,
  from: Checkpoint,
  to: Checkpoint,
  hash: Sha256,
): Promise<{ holds: boolean; proof: Hash[] }> {
  if (from.size === 0n) return { holds: equal(from.root, EMPTY_ROOT), proof: [] };
  const names = tilesOf(consistencyNodes(from.size, to.size), to.size);
  const tiles = await Promise.all(names.map(({ level, index }) => proven.tile(level, index)));
  const proof = consistencyProof(from.size, to.size, tileNodes(tiles, hash), hash);
  const roots = { fromRoot: from.root, toRoot: to.root };
  return {
    holds: verifyConsistency({ from: from.size, to: to.size, proof, ...roots }, hash),
    proof,
  };
}

function splitView(older: Sighting, newer: Sighting, proof: Hash[]): Alarm {
  const sizes = `${older.checkpoint.size} entries are not those of ${newer.checkpoint.size}`;
  const detail = `two truths were signed: ${sizes}, as ${older.from} and ${newer.from} have shown`;
  return { code: "split-view", detail, notes: notesOf(older, newer), proof };
}

function notesOf(...sightings: readonly Sighting[]): Alarm["notes"] {
  return sightings.map(({ checkpoint, from }) => ({ from, note: checkpoint.note }));
}
