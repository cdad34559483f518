/**
 * Checkpoints as the archive holds them, signed by the log itself. A row only says where to look: whoever
 * has the service's database password can insert any, and can sign none.
 */
import type { Checkpoint } from "../../core/checkpoint.ts";
import { decodeUtf8 } from "../../core/text.ts";
import { type Archive, checkpointPath } from "../../store/archive.ts";
import type { Sql, Transaction } from "../../store/connect.ts";
import type { SignerFor } from "./signed-checkpoint.ts";

export interface Proven {
  archive: Archive;
  signerFor: SignerFor;
}

/** `note` has the log's own signatures alone. */
export type GenuineCheckpoint = Omit<Checkpoint, "origin"> & { note: string };

/**
 * Undefined unless the archive holds a checkpoint of this size that a key of the log signed.
 *
 * @throws ArchiveError `archive-unavailable`; Problem `signer-unavailable`
 */
export async function genuineCheckpoint(
  { archive, signerFor }: Pick<Proven, "signerFor"> & { archive: Pick<Archive, "get"> },
  sql: Sql | Transaction,
  log: string,
  size: bigint,
): Promise<GenuineCheckpoint | undefined> {
  const bytes = await archive.get(checkpointPath(log, size));
  const note = bytes && decodeUtf8(bytes);
  if (note === undefined) return undefined;
  const checkpoint = (await signerFor(sql, log, size)).open(note);
  return checkpoint?.size === size ? { size, root: checkpoint.root, note } : undefined;
}
