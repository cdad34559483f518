/**
 * Brings a log's newest checkpoint before one witness, and keeps what the witness signs: in the
 * archive first, then in the table. A process that dies anywhere in between leaves a state from which
 * the next submission goes on.
 */
import type { Hash, Sha256 } from "../../core/hash.ts";
import type { Vkey } from "../../core/note.ts";
import { decodeUtf8, encodeUtf8 } from "../../core/text.ts";
import { formatAddCheckpoint } from "../../core/witness.ts";
import { type Archive, cosignaturePath } from "../../store/archive.ts";
import type { Sql } from "../../store/connect.ts";
import {
  type CosignedCheckpoint,
  insertCosignature,
  readCosigned,
} from "../../store/cosignatures.ts";
import { lastCosigned, recordWitnessSize } from "../../store/submissions.ts";
import type { Clock } from "../clock.ts";
import { type OpenedCosignature, openCosignature, textOf } from "./cosigned.ts";
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
}

/** A witness's clock may be this much ahead of ours. */
const SKEW_SECONDS = 300;

/**
 * Resolves when the witness has cosigned the newest checkpoint and that is stored, or had before.
 *
 * @throws WitnessError, also `witness-ahead`, `unsettled`, `archived-otherwise`, `future`,
 *   `bad-signature`, `unknown-key`; ArchiveError
 */
export async function submit(
  submitting: Submitting,
  witness: Witness,
  log: string,
): Promise<"cosigned" | "current"> {
  const { sql } = submitting;
  const known = await lastCosigned(sql, log, witness.vkey.id);
  const first = await newest(submitting, log);
  if (first.size === known) return "current";
  const told = await offer(submitting, witness, log, first, known);
  if (told === undefined) return "cosigned";

  // It has cosigned another size than we know of: what we lost the answer to, or what we have lost.
  const again = await newest(submitting, log);
  if (told > again.size) {
    await recordWitnessSize(sql, log, witness.vkey.id, told);
    throw new WitnessError("witness-ahead", `it has cosigned ${told}, sealed is ${again.size}`);
  }
  const between = await readCosigned(sql, log, told);
  if (between !== undefined) await settleArchived(submitting, witness, log, between);
  const third = await offer(submitting, witness, log, again, told);
  if (third === undefined) return "cosigned";
  throw new WitnessError("unsettled", `it has cosigned ${told}, and then ${third}`);
}

async function newest({ sql }: Submitting, log: string): Promise<CosignedCheckpoint> {
  const checkpoint = await readCosigned(sql, log);
  if (checkpoint === undefined) throw new Error("submit: a log without a checkpoint");
  return checkpoint;
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
