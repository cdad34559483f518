/**
 * Brings a log's checkpoint before one witness, and keeps what the witness signs: in the
 * archive first, then in the table. A process that dies anywhere in between leaves a state from which
 * the next submission goes on.
 */
import type { Hash, Sha256 } from "../../core/hash.ts";
import type { Vkey } from "../../core/note.ts";
import type { Policy } from "../../core/policy.ts";
import { decodeUtf8, encodeUtf8 } from "../../core/text.ts";
import { formatAddCheckpoint } from "../../core/witness.ts";
import { type Archive, cosignaturePath } from "../../store/archive.ts";
import type { Sql } from "../../store/connect.ts";
import {
  type CosignedCheckpoint,
  insertCosignature,
  readCosigned,
} from "../../store/cosignatures.ts";
import { endRound, roundSize } from "../../store/rounds.ts";
import {
  lastCosigned,
  recordAgreement,
  recordConflict,
  recordWitnessSize,
} from "../../store/submissions.ts";
import type { Clock } from "../clock.ts";
import {
  asksForQuorum,
  hasQuorum,
  type OpenedCosignature,
  openCosignature,
  textOf,
} from "./cosigned.ts";
import { proveConsistency } from "./prove.ts";
import { addCheckpoint, WitnessError } from "./witness.ts";

/** A witness that can be asked. */
export interface Witness {
  /** As the policy names it. */
  name: string;
  vkey: Vkey;
  url: string;
}

export interface Submitting {
  /** As writer: what a replica does not show yet would look like a witness that is ahead. */
  sql: Sql;
  archive: Archive;
  clock: Clock;
  hash?: Sha256;
  signal: AbortSignal;
  /** Of one request. */
  timeoutMs?: number;
  /** Its quorum decides what is published; without one every witness is asked for the newest. */
  policy?: Policy | undefined;
  /** For how long all are asked for one checkpoint, unless the quorum is reached before. */
  roundMs?: number;
}

/** A witness's clock may be this much ahead of ours. */
const SKEW_SECONDS = 300;
const ROUND_MS = 300_000;
/** What witnesses answer to a tree that does not continue theirs. */
const CONFLICTS = ["422", "conflict"];

/**
 * Resolves when the witness has cosigned the checkpoint that all are asked for now, and that is stored,
 * or had before: the newest, or with a quorum the one of the round that runs (store/rounds.ts).
 *
 * @throws WitnessError, also `witness-ahead`, `witness-conflict`, `unsettled`, `archived-otherwise`,
 *   `future`, `bad-signature`, `unknown-key`; ArchiveError
 */
export async function submit(
  submitting: Submitting,
  witness: Witness,
  log: string,
): Promise<"cosigned" | "current"> {
  const { sql } = submitting;
  const known = await lastCosigned(sql, log, witness.vkey.id);
  const first = await wanted(submitting, log);
  if (first.size <= known) return "current";
  try {
    const cosigned = await bring(submitting, witness, log, { first, known });
    await endIfReached(submitting, log, cosigned);
    return "cosigned";
  } catch (error) {
    if (!(error instanceof WitnessError && CONFLICTS.includes(error.reason))) throw error;
    await recordConflict(sql, log, witness.vkey.id);
    const told = `it refuses what follows as no continuation of what it has cosigned: ${error.message}`;
    throw new WitnessError("witness-conflict", told, { cause: error });
  }
}

/** @returns the size that it has cosigned in the end */
async function bring(
  submitting: Submitting,
  witness: Witness,
  log: string,
  { first, known }: { first: CosignedCheckpoint; known: bigint },
): Promise<bigint> {
  const { sql, clock } = submitting;
  const told = await offer(submitting, witness, log, first, known);
  if (told === undefined) return first.size;

  // It has cosigned another size than we know of: what we lost the answer to, or what we have lost.
  const isPast = told > first.size;
  if (isPast) await endRound(sql, log, { size: first.size, now: clock.now(), reached: false });
  const again = isPast ? await wanted(submitting, log) : first;
  if (told > again.size) {
    await recordWitnessSize(sql, log, witness.vkey.id, told);
    throw new WitnessError("witness-ahead", `it has cosigned ${told}, sealed is ${again.size}`);
  }
  const between = await readCosigned(sql, log, told);
  if (between !== undefined) await settleArchived(submitting, witness, log, between);
  const third = await offer(submitting, witness, log, again, told);
  if (third === undefined) return again.size;
  throw new WitnessError("unsettled", `it has cosigned ${told}, and then ${third}`);
}

async function wanted(
  { sql, policy, clock, roundMs = ROUND_MS }: Submitting,
  log: string,
): Promise<CosignedCheckpoint> {
  if (asksForQuorum(policy)) {
    const now = clock.now();
    const size = await roundSize(sql, log, { now, until: now + roundMs });
    const checkpoint = await readCosigned(sql, log, size);
    if (checkpoint !== undefined) return checkpoint;
    // Nobody has cosigned it for so long that retention took it.
    await endRound(sql, log, { size, now, reached: false });
  }
  const newest = await readCosigned(sql, log);
  if (newest === undefined) throw new Error("submit: a log without a checkpoint");
  return newest;
}

/** The next round begins when somebody is due. */
async function endIfReached(
  { sql, policy, clock }: Submitting,
  log: string,
  size: bigint,
): Promise<void> {
  if (!asksForQuorum(policy)) return;
  const checkpoint = await readCosigned(sql, log, size);
  if (checkpoint === undefined || !hasQuorum(checkpoint, policy)) return;
  await endRound(sql, log, { size, now: clock.now(), reached: true });
}

/** Undefined when it is cosigned; else the size that the witness goes on from instead of `old`. */
async function offer(
  submitting: Submitting,
  witness: Witness,
  log: string,
  checkpoint: CosignedCheckpoint,
  old: bigint,
): Promise<bigint | undefined> {
  if (await settleArchived(submitting, witness, log, checkpoint)) return undefined;
  const { archive, hash, signal, timeoutMs, clock } = submitting;
  const proof: Hash[] =
    old === 0n
      ? []
      : await proveConsistency({ archive, ...(hash && { hash }) }, log, old, checkpoint.size);
  const body = formatAddCheckpoint({ old, proof, checkpoint: checkpoint.note });
  const answer = await addCheckpoint({ url: witness.url, body, signal, timeoutMs });
  if (answer.kind === "size") return answer.size;
  const opened = openCosignature(textOf(checkpoint.note), answer.body, witness.vkey);
  if (typeof opened === "string") throw new WitnessError(opened, "it answered no cosignature");
  if (Number(opened.time) > clock.now() / 1_000 + SKEW_SECONDS) {
    throw new WitnessError("future", `its clock says ${opened.time}`);
  }
  await store(submitting, witness, log, checkpoint, opened);
  await recordAgreement(submitting.sql, log, witness.vkey.id);
  return undefined;
}

async function store(
  submitting: Submitting,
  witness: Witness,
  log: string,
  checkpoint: CosignedCheckpoint,
  { line, time }: OpenedCosignature,
): Promise<void> {
  const { archive, sql } = submitting;
  const { name, id } = witness.vkey;
  const path = cosignaturePath(log, checkpoint.size, id);
  if ((await archive.create(path, encodeUtf8(line))) === "exists") {
    // Of another process, or of one that died before the row: that one stays.
    await settleArchived(submitting, witness, log, checkpoint);
    return;
  }
  await insertCosignature(sql, { log, size: checkpoint.size, name, key_id: id, line, time });
}

/** Gives the archive's cosignature its row; false when there is none in the archive. */
async function settleArchived(
  { archive, sql }: Submitting,
  { vkey }: Witness,
  log: string,
  { size, note }: CosignedCheckpoint,
): Promise<boolean> {
  const bytes = await archive.get(cosignaturePath(log, size, vkey.id));
  if (bytes === undefined) return false;
  const opened = openCosignature(textOf(note), decodeUtf8(bytes) ?? "", vkey);
  if (typeof opened === "string") {
    throw new WitnessError("archived-otherwise", `the archive's cosignature of ${size}: ${opened}`);
  }
  const { line, time } = opened;
  await insertCosignature(sql, { log, size, name: vkey.name, key_id: vkey.id, line, time });
  return true;
}
