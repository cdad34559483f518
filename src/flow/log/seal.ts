/**
 * Signs what logs have become: archive first, signature after, database last. A process that dies
 * between any two effects leaves a state from which the next seal goes on (DESIGN §5).
 */
import { formatCheckpoint } from "../../core/checkpoint.ts";
import type { Hash, Sha256 } from "../../core/hash.ts";
import { Problem } from "../../core/problem.ts";
import { decodeUtf8, encodeUtf8, equal } from "../../core/text.ts";
import { edgeRoot } from "../../core/tile.ts";
import { type Archive, checkpointPath } from "../../store/archive.ts";
import { insertCheckpoints } from "../../store/checkpoints.ts";
import type { Sql, Transaction } from "../../store/connect.ts";
import { readHeads } from "../../store/heads.ts";
import {
  ensureSeals,
  keepWaiting,
  lockSeals,
  moveSeals,
  type Seal,
  type SealMove,
} from "../../store/seals.ts";
import { settled } from "../../store/settled.ts";
import { transact } from "../../store/transact.ts";
import type { Clock } from "../clock.ts";
import { claim } from "./claim.ts";
import { assertAgreement, type SealGuard, type SeenHead } from "./guard.ts";
import { lay } from "./lay.ts";
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
 * @param options.entriesMax takes no more than so many of them, and leaves the rest to the next seal
 * @throws Problem `log-behind`, `archive-unavailable`, `signer-unavailable`: nothing was signed, and
 *   appends to this log are refused until a seal goes through
 */
export async function seal({
  log,
  entriesMax,
  ...sealer
}: Sealer & { log: string; entriesMax?: bigint | undefined }): Promise<Sealed | undefined> {
  try {
    const outcome = (await sealTogether(sealer, [log], entriesMax)).get(log);
    if (outcome instanceof Problem) throw outcome;
    return outcome;
  } catch (error) {
    const problem = refusalOf(error);
    if (problem === undefined) throw error;
    sealer.guard.sealFailed(log, problem);
    throw problem;
  }
}

/**
 * Seals several logs in one transaction; those that say nothing are not among the outcomes. A log that
 * is refused leaves the others alone, until they are signed: from there on all are recorded, or none,
 * and a seal of each alone goes on.
 */
export async function sealTogether(
  sealer: Sealer,
  logs: readonly string[],
  entriesMax?: bigint,
): Promise<Map<string, Sealed | Problem>> {
  const { sql, guard } = sealer;
  await ensureSeals(sql, logs);
  const { sealed, refused, unchanged } = await transact(sql, (tx) =>
    sealLocked(tx, sealer, logs, entriesMax),
  );
  for (const [log, problem] of refused) guard.sealFailed(log, problem);
  for (const log of [...sealed.keys(), ...unchanged]) guard.sealed(log);
  return new Map<string, Sealed | Problem>([...sealed, ...refused]);
}

/** What is to be signed next of a log, durable in the archive up to its tiles and the claim on it. */
interface Ready extends SealMove {
  signer: CheckpointSigner;
  tree: Sealed;
}

interface Outcomes {
  sealed: Map<string, Sealed>;
  refused: Map<string, Problem>;
  unchanged: string[];
}

async function sealLocked(
  tx: Transaction,
  sealer: Sealer,
  logs: readonly string[],
  entriesMax: bigint | undefined,
): Promise<Outcomes> {
  const assertSealable = sealer.guard.sealable(logs);
  const [seals] = await Promise.all([lockSeals(tx, logs), keepWaiting(tx)]);
  // After the locks, so that no head is older than its seal.
  const heads = await readHeads(tx, [...seals.keys()]);
  const outcomes: Outcomes = { sealed: new Map(), refused: new Map(), unchanged: [] };
  const ready: Ready[] = [];
  const prepareOne = async ([log, from]: [string, Seal]): Promise<void> => {
    try {
      const head = heads.get(log);
      if (head === undefined) throw new Error("seal: a seal without a head");
      await assertSealable(tx, log, head);
      const next = await prepare(tx, sealer, { log, from, head, entriesMax });
      if (next === undefined) outcomes.unchanged.push(log);
      else ready.push(next);
    } catch (error) {
      const problem = refusalOf(error);
      if (problem === undefined) throw error;
      outcomes.refused.set(log, problem);
    }
  };
  await settled(Array.from(seals, prepareOne));
  if (ready.length === 0) return outcomes;

  // After the claims, and under the locks: where one was lost meanwhile nothing is signed any more.
  await moveSeals(tx, ready);
  const signed = await settled(ready.map((next) => publish(sealer.archive, next)));
  await insertCheckpoints(tx, signed, sealer.clock.now());
  for (const { log, tree } of ready) outcomes.sealed.set(log, tree);
  return outcomes;
}

interface Candidate {
  log: string;
  from: Seal;
  head: SeenHead;
  entriesMax: bigint | undefined;
}

/** Undefined when nothing is new. */
async function prepare(
  tx: Transaction,
  sealer: Sealer,
  { log, from, head, entriesMax = head.size }: Candidate,
): Promise<Ready | undefined> {
  const { archive, signerFor, hash } = sealer;
  const signer = await signerFor(tx, log, head.size);
  await assertArchived(archive, signer, log, from, hash);
  if (from.size === head.size) return undefined;

  const layTo = async (size: bigint): Promise<Ready> => {
    const to = await lay(tx, { archive, hash, log }, from, size);
    if (size === head.size && !equal(to.leaf, head.leaf)) {
      throw logBehind(`the head names another leaf than entry ${head.size - 1n}`);
    }
    return { log, from, to, signer, tree: { size, root: edgeRoot(to.edge, hash) } };
  };
  const left = head.size - from.size;
  const ours = await layTo(left > entriesMax ? from.size + entriesMax : head.size);
  const claimed = await claim(archive, log, from.size, ours.tree);
  // Once more: retention removes a checkpoint before the claim on what followed it, so that whoever
  // comes too late to find the claim does not find the checkpoint either.
  if (claimed.made) await assertArchived(archive, signer, log, from, hash);
  // Whoever claimed it may have gone on long ago, and retention may have removed that checkpoint with
  // the claim behind it: signing it anew would open a second way on from there.
  else await assertAgreement(tx, sealer, log, head);
  if (claimed.size === ours.tree.size) return ours;
  // A sealer that is gone may have signed its tree: that one goes first, and the rest follows.
  if (claimed.size > head.size) throw logBehind(`claimed to ${claimed.size}, head at ${head.size}`);
  const theirs = await layTo(claimed.size);
  await claim(archive, log, from.size, theirs.tree);
  return theirs;
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

/**
 * With the note that is durable in the archive for this tree: ours, or of a sealer that died after it.
 * Tiles are durable: a signed root must never name a tile that a crash can lose.
 */
async function publish(
  archive: Archive,
  { log, from, signer, tree }: Ready,
): Promise<Sealed & { log: string; note: string; after: bigint }> {
  const checkpoint = { log, ...tree, after: from.size };
  const note = await signer.sign(formatCheckpoint({ origin: signer.vkey.name, ...tree }));
  const path = checkpointPath(log, tree.size);
  const created = await archive.create(path, encodeUtf8(note));
  if (created === "created") return { ...checkpoint, note };
  const adopted = await archivedNote(archive, signer, log, tree);
  if (adopted === undefined) throw logBehind(`checkpoint ${tree.size} vanished from the archive`);
  return { ...checkpoint, note: adopted };
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
