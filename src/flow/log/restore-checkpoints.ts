/** Rows of archived checkpoints, and of what witnesses signed of them, for a database that lacks them. */
import type { Vkey } from "../../core/note.ts";
import { decodeUtf8, equal } from "../../core/text.ts";
import { checkpointPath, cosignaturePath } from "../../store/archive.ts";
import { readSizes, restoreCheckpoint, type StoredCheckpoint } from "../../store/checkpoints.ts";
import { insertCosignature } from "../../store/cosignatures.ts";
import { readHead } from "../../store/heads.ts";
import { retainedTo } from "../../store/retentions.ts";
import { readSeal } from "../../store/seals.ts";
import { transact } from "../../store/transact.ts";
import { inOrder } from "./archived.ts";
import { openCosignature, textOf } from "./cosigned.ts";
import { RecoveryError } from "./recovery.ts";
import type { Survey, Surveying } from "./survey.ts";

export interface Restoring extends Surveying {
  /** Of the policy: whose cosignatures are restored. */
  witnesses: readonly Vkey[];
}

/**
 * Of archived checkpoints that the table lacks, up to the newest. What retention has removed, and the
 * archive would not let go, is not missing.
 */
export async function missingSizes(
  { sql, log }: Surveying,
  { roots }: Pick<Survey, "roots">,
): Promise<bigint[]> {
  const known = new Set(await readSizes(sql, log));
  const retained = await retainedTo(sql, log);
  return [...roots.keys()].filter((size) => size > retained && !known.has(size));
}

/**
 * The sealer died before it wrote them, or the database was restored. By now the entries say which
 * keys the log had; a note that none of them signed is passed over.
 *
 * @throws RecoveryError `archive-altered` for a signed one that the tree contradicts
 */
export async function restoreCheckpoints(
  restoring: Restoring,
  found: Pick<Survey, "roots">,
  sizes: readonly bigint[],
): Promise<void> {
  const { archive, log, signerFor, sql } = restoring;
  const restored = await transact(sql, async (tx) => {
    const head = await readHead(tx, log);
    // Past the seal a sealer may be about to write the row itself.
    const { size: sealed } = await readSeal(tx, log);
    const settled = sizes.filter((size) => size <= sealed);
    const signer = await signerFor(tx, log, head?.size ?? 0n);
    const checkpoints: StoredCheckpoint[] = [];
    const read = inOrder(settled, (size) => archive.get(checkpointPath(log, size)));
    for await (const { item: size, value: bytes } of read) {
      const note = (bytes && decodeUtf8(bytes)) ?? "";
      const checkpoint = signer.open(note);
      const root = found.roots.get(size);
      if (checkpoint?.size !== size || root === undefined) continue;
      if (!equal(checkpoint.root, root)) {
        throw new RecoveryError("archive-altered", `checkpoint ${size} contradicts the newest one`);
      }
      const stored = { log, size, root, note };
      await restoreCheckpoint(tx, stored);
      checkpoints.push(stored);
    }
    return checkpoints;
  });
  for (const checkpoint of restored) await restoreCosignatures(restoring, checkpoint);
}

/** Those that verify; what does not is for the next submission to be loud about. */
async function restoreCosignatures(
  { archive, log, sql, witnesses }: Restoring,
  { size, note }: StoredCheckpoint,
): Promise<void> {
  const read = inOrder(witnesses, (vkey) => archive.get(cosignaturePath(log, size, vkey.id)));
  for await (const { item: vkey, value: bytes } of read) {
    const opened = bytes && openCosignature(textOf(note), decodeUtf8(bytes) ?? "", vkey);
    if (typeof opened !== "object") continue;
    const { line, time } = opened;
    await insertCosignature(sql, { log, size, name: vkey.name, key_id: vkey.id, line, time });
  }
}
