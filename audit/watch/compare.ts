/**
 * Checkpoints of one log, from wherever they were seen, held against each other. Two roots of one size
 * need nothing else. Whether a smaller one is in a larger one's tree is computed from tiles that were
 * proven under the larger one's root, from whichever address has them, and never taken from a server.
 */
import type { Checkpoint } from "../../src/core/checkpoint.ts";
import { EMPTY_ROOT, type Hash, type Sha256 } from "../../src/core/hash.ts";
import { consistencyNodes, consistencyProof, verifyConsistency } from "../../src/core/proof.ts";
import { encodeBase64, equal } from "../../src/core/text.ts";
import { tileNodes, tilesOf } from "../../src/core/tile.ts";
import type { OpenedCheckpoint } from "../archive/checkpoints.ts";
import { NotProven, Proven } from "../fetch/proven.ts";
import { CannotLook, type FindingCode } from "../finding.ts";
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

/** A tree whose tiles did not come: of whom, and why. */
export interface Missed {
  from: string;
  reason: string;
}

export interface Alarm {
  /**
   * `split-view`: two truths were signed. `rollback`: an address went back. `withheld`: the log does not
   * show what was seen. Else what does not hold of the tiles under a signed root.
   */
  code: "split-view" | "rollback" | "withheld" | FindingCode;
  detail: string;
  /** The notes as they were shown, each signed by the log: the evidence. */
  notes: { from: string; note: string }[];
  /** From the first note's size to the second's, out of the second's own tiles: it does not hold. */
  proof: Hash[];
}

export interface Comparison {
  /** The first contradiction; without any, the first tree that no address had the tiles of. */
  alarm: Alarm | undefined;
  /** Size of the largest tree whose tiles gave its root. */
  proven: bigint | undefined;
  /** Trees that are in a larger one: those of `nameOf`. */
  covered: Set<string>;
  missed: Missed[];
}

interface Comparing {
  views: readonly View[];
  /** What was seen before the addresses were asked: what came in meanwhile makes no rollback. */
  before: readonly Sighting[];
  /** All that was ever seen and is in no larger tree, with what is shown now. */
  seen: readonly Sighting[];
  hash: Sha256;
}

export async function compare({ before, hash, seen, views }: Comparing): Promise<Comparison> {
  const covered = new Set<string>();
  const missed: Missed[] = [];
  const plain = rollback(views, before) ?? twoRoots(seen);
  if (plain !== undefined) return { alarm: plain, proven: undefined, covered, missed };
  let proven: bigint | undefined;
  let fault: Alarm | undefined;
  // Who claims the largest tree and withholds its tiles must not keep the others from being compared.
  for (const { sources, tree } of treesOf(views)) {
    if (covered.has(nameOf(tree.checkpoint))) continue;
    const tiles = await tried(() => openTiles(tree, sources, hash));
    const failures = tiles instanceof Proven ? [] : [tiles];
    if (tiles instanceof Proven) {
      proven ??= tree.checkpoint.size;
      for (const other of seen) {
        const name = nameOf(other.checkpoint);
        if (other.checkpoint.size >= tree.checkpoint.size || covered.has(name)) continue;
        const held = await tried(() => follow(tiles, other.checkpoint, tree.checkpoint, hash));
        if (held instanceof Error) failures.push(held);
        else if (held.holds) covered.add(name);
        else return { alarm: splitView(other, tree, held.proof), proven, covered, missed };
      }
    }
    const [failure] = failures;
    if (failure instanceof NotProven) fault ??= notGiven(tree, failure);
    else if (failure !== undefined) missed.push({ from: tree.from, reason: failure.message });
  }
  return { alarm: fault, proven, covered, missed };
}

/** One name for one tree, whoever shows it. */
export function nameOf({ root, size }: Checkpoint): string {
  return `${size} ${encodeBase64(root)}`;
}

/** The view of the log, and no witness's, that shows most. */
export function largestOf(views: readonly View[]): View | undefined {
  return views.filter(({ source }) => source !== undefined).sort(descending)[0];
}

function descending(a: Sighting, b: Sighting): number {
  const [x, y] = [a.checkpoint.size, b.checkpoint.size];
  return x === y ? 0 : x < y ? 1 : -1;
}

/** Of an address of the log. A witness may lag behind itself (C2SP tlog-witness: up to an hour). */
function rollback(views: readonly View[], before: readonly Sighting[]): Alarm | undefined {
  for (const view of views) {
    if (view.source === undefined) continue;
    const larger = before.find(
      ({ checkpoint, from }) => from === view.from && checkpoint.size > view.checkpoint.size,
    );
    if (larger === undefined) continue;
    const detail = `${view.from} shows ${view.checkpoint.size} entries, after ${larger.checkpoint.size}`;
    return { code: "rollback", detail, notes: notesOf(larger, view), proof: [] };
  }
  return undefined;
}

/** Needs no tiles: so nobody can hide it by withholding them. */
function twoRoots(seen: readonly Sighting[]): Alarm | undefined {
  const bySize = new Map<bigint, Sighting>();
  for (const one of seen) {
    const other = bySize.get(one.checkpoint.size) ?? one;
    if (!equal(other.checkpoint.root, one.checkpoint.root)) return splitView(other, one, []);
    bySize.set(one.checkpoint.size, other);
  }
  return undefined;
}

/** The trees that the log shows, the largest first, each with all addresses that may have its tiles. */
function treesOf(views: readonly View[]): { tree: Sighting; sources: Source[] }[] {
  const shown = views.flatMap(({ source, ...tree }) => (source ? [{ tree, source }] : []));
  const trees = new Map<string, Sighting>();
  for (const { tree } of shown) trees.set(nameOf(tree.checkpoint), tree);
  return [...trees.values()].sort(descending).map((tree) => {
    const isOwn = (from: Sighting): boolean => nameOf(from.checkpoint) === nameOf(tree.checkpoint);
    const own = shown.filter((from) => isOwn(from.tree));
    const others = shown.filter((from) => !isOwn(from.tree));
    return { tree, sources: [...own, ...others].map(({ source }) => source) };
  });
}

async function openTiles(
  { checkpoint }: Sighting,
  sources: readonly Source[],
  hash: Sha256,
): Promise<Proven> {
  return await Proven.open({ sources, checkpoint, hash });
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

/** What it gives, or why it could not be looked at, or was not what the signed root says. */
async function tried<T>(work: () => Promise<T>): Promise<T | NotProven | CannotLook> {
  try {
    return await work();
  } catch (error) {
    if (error instanceof NotProven || error instanceof CannotLook) return error;
    throw error;
  }
}

function notGiven(tree: Sighting, { code, message, path }: NotProven): Alarm {
  const detail = `${tree.from}/${path}: ${message}`;
  return { code, detail, notes: notesOf(tree), proof: [] };
}

function splitView(older: Sighting, newer: Sighting, proof: Hash[]): Alarm {
  const sizes = `${older.checkpoint.size} entries are not those of ${newer.checkpoint.size}`;
  const detail = `two truths were signed: ${sizes}, as ${older.from} and ${newer.from} have shown`;
  return { code: "split-view", detail, notes: notesOf(older, newer), proof };
}

export function notesOf(...sightings: readonly Sighting[]): Alarm["notes"] {
  return sightings.map(({ checkpoint, from }) => ({ from, note: checkpoint.note }));
}
