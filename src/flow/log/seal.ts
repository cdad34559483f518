/**
 * Signs what a log has become: archive first, signature after, database last. A process that dies
 * between any two effects leaves a state from which the next seal goes on (DESIGN §5).
 */
import { encodeBundle } from "../../core/bundle.ts";
import { formatCheckpoint } from "../../core/checkpoint.ts";
import type { Hash, Sha256 } from "../../core/hash.ts";
import { decodeUtf8, encodeUtf8, equal } from "../../core/text.ts";
import {
  bundlePath,
  edgeRoot,
  partialTiles,
  TILE_WIDTH,
  type Tile,
  tilePath,
} from "../../core/tile.ts";
import { type Archive, checkpointPath } from "../../store/archive.ts";
import { insertCheckpoint } from "../../store/checkpoints.ts";
import type { Sql, Transaction } from "../../store/connect.ts";
import type { NewFile } from "../../store/durable-files.ts";
import { ensureSeal, keepWaiting, lockSeal, moveSeal, type Seal } from "../../store/seals.ts";
import { transact } from "../../store/transact.ts";
import type { Clock } from "../clock.ts";
import { extend } from "./extend.ts";
import type { SealGuard } from "./guard.ts";
import { logBehind, refusalOf } from "./refusal.ts";
import type { CheckpointSigner, SignerFor } from "./signed-checkpoint.ts";

export interface Sealer {
  /** As writer. */
  sql: Sql;
  archive: Archive;
  guard: SealGuard;
  signerFor: SignerFor;
  clock: Clock;
  hash?: Sha256;
}

/** A signed tree: `root` is that of entries 0 … size−1. */
export interface Sealed {
  size: bigint;
  root: Hash;
}

/**
 * Seals all that is committed. Undefined when nothing is new, or another process is at it.
 *
 * @throws Problem `log-behind`, `archive-unavailable`, `signer-unavailable`: nothing was signed, and
 *   appends to this log are refused until a seal goes through
 */
export async function seal(options: Sealer & { log: string }): Promise<Sealed | undefined> {
  const { sql, guard, log } = options;
  await ensureSeal(sql, log);
  try {
    const outcome = await transact(sql, (tx) => sealLocked(tx, options));
    if (outcome === "busy") return undefined;
    guard.sealed(log);
    return outcome === "unchanged" ? undefined : outcome;
  } catch (error) {
    const problem = refusalOf(error);
    if (problem === undefined) throw error;
    guard.sealFailed(log, problem);
    throw problem;
  }
}

async function sealLocked(
  tx: Transaction,
  { archive, guard, signerFor, clock, hash, log }: Sealer & { log: string },
): Promise<Sealed | "busy" | "unchanged"> {
  await keepWaiting(tx);
  const from = await lockSeal(tx, log);
  if (from === undefined) return "busy";
  // After the lock, so that the head is never older than the seal.
  const head = await guard.assertSealable(tx, log);
  const signer = await signerFor(tx, log, head.size);
  await assertArchived(archive, signer, log, from, hash);
  if (from.size === head.size) return "unchanged";

  const to = await archiveTree(tx, archive, log, from, head.size, hash);
  if (!equal(to.leaf, head.leaf))
    throw logBehind(`the head names another leaf than entry ${head.size - 1n}`);
  // Under a lock that was lost meanwhile this fails, and nothing is signed any more.
  await moveSeal(tx, log, from, to);
  const tree = { size: to.size, root: edgeRoot(to.edge, hash) };
  // Tiles are durable: a signed root must never name a tile that a crash can lose.
  const note = await publish(archive, signer, log, tree);
  await insertCheckpoint(tx, { log, ...tree, note }, clock.now(), from.size);
  return tree;
}

/** Only archived checkpoints are built upon: what the database says was sealed may be out of date. */
async function assertArchived(
  archive: Archive,
  signer: CheckpointSigner,
  log: string,
  from: Seal,
  hash: Sha256 | undefined,
): Promise<void> {
  if (from.size === 0n) return;
  const tree = { size: from.size, root: edgeRoot(from.edge, hash) };
  const note = await archivedNote(archive, signer, log, tree);
  if (note === undefined) throw logBehind(`sealed to ${from.size}, which is not in the archive`);
}

/** Bundles and tiles of everything new, durable; the full ones as they fill, the partial ones last. */
async function archiveTree(
  tx: Transaction,
  archive: Archive,
  log: string,
  from: Seal,
  size: bigint,
  hash: Sha256 | undefined,
): Promise<Seal> {
  let to = from;
  let files: NewFile[] = [];
  let open: Uint8Array[] = [];
  let bundle = from.size / BigInt(TILE_WIDTH);
  for await (const page of extend(tx, log, from, size, hash)) {
    to = { size: page.size, leaf: page.leaf, edge: page.edge };
    open = [...open, ...page.entries];
    for (; open.length >= TILE_WIDTH; open = open.slice(TILE_WIDTH), bundle += 1n) {
      files.push(bundleFile(log, bundle, open.slice(0, TILE_WIDTH)));
    }
    files.push(...page.full.map((tile) => tileFile(log, tile)));
    if (page.size === size) break;
    await archive.put(files);
    files = [];
  }
  if (open.length > 0) files.push(bundleFile(log, bundle, open));
  files.push(...partialTiles(to.edge).map((tile) => tileFile(log, tile)));
  await archive.put(files);
  return to;
}

function bundleFile(log: string, index: bigint, entries: readonly Uint8Array[]): NewFile {
  return { path: `${log}/${bundlePath(index, entries.length)}`, bytes: encodeBundle(entries) };
}

function tileFile(log: string, { level, index, width, bytes }: Tile): NewFile {
  return { path: `${log}/${tilePath(level, index, width)}`, bytes };
}

/** The note that is durable in the archive for this tree: ours, or of a sealer that died after it. */
async function publish(
  archive: Archive,
  signer: CheckpointSigner,
  log: string,
  tree: Sealed,
): Promise<string> {
  const note = await signer.sign(formatCheckpoint({ origin: signer.vkey.name, ...tree }));
  const path = checkpointPath(log, tree.size);
  if ((await archive.create(path, encodeUtf8(note))) === "created") return note;
  const adopted = await archivedNote(archive, signer, log, tree);
  if (adopted === undefined) throw logBehind(`checkpoint ${tree.size} vanished from the archive`);
  return adopted;
}

/** @throws Problem `log-behind` when the archive holds a checkpoint of this size for another tree */
async function archivedNote(
  archive: Archive,
  signer: CheckpointSigner,
  log: string,
  { size, root }: Sealed,
): Promise<string | undefined> {
  const bytes = await archive.get(checkpointPath(log, size));
  if (bytes === undefined) return undefined;
  const note = decodeUtf8(bytes) ?? "";
  const checkpoint = signer.open(note);
  if (checkpoint?.size !== size || !equal(checkpoint.root, root)) {
    throw logBehind(`the archive's checkpoint ${size} is another one`);
  }
  return note;
}
