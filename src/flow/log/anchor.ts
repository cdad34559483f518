/**
 * Anchors: checkpoints that somebody besides the operator holds. Either a witness of the policy has
 * cosigned one, or the archive cannot let go of it until a day that has not come.
 */
import type { Hash } from "../../core/hash.ts";
import type { Policy } from "../../core/policy.ts";
import { type Archive, checkpointPath } from "../../store/archive.ts";
import { listCheckpoints } from "../../store/checkpoints.ts";
import type { Sql } from "../../store/connect.ts";
import { type CosignedCheckpoint, listCosigned, readCosigned } from "../../store/cosignatures.ts";
import { listLogs } from "../../store/logs.ts";
import { countWitnessAhead, readWitnessLag } from "../../store/submissions.ts";
import type { Clock } from "../clock.ts";
import { genuineCosignatures } from "./cosigned.ts";

export interface Anchoring {
  sql: Sql;
  archive: Archive;
  /** Without one no cosignature counts: nobody has said who is outside. */
  policy?: Policy | undefined;
  clock: Clock;
}

/** A checkpoint, and who holds the operator to it. */
export type Anchor = { size: bigint; root: Hash } & (
  | { kind: "witnessed"; by: { name: string; time: bigint /* seconds */ }[] }
  | { kind: "locked"; until: Date }
);

const PAGE = 16;
const SIZE_MAX = 2n ** 63n - 1n;

/**
 * The oldest anchored checkpoint of at least so many entries; undefined while there is none. What is to
 * be final, as a month that closes, is so from then on and not before. Signatures are verified, and the
 * lock is read back from the store, whenever this is asked.
 *
 * @throws ArchiveError `archive-unavailable`
 */
export async function anchorOf(
  anchoring: Anchoring,
  log: string,
  size: bigint,
): Promise<Anchor | undefined> {
  const witnessed = await oldestWitnessed(anchoring, log, size);
  if (anchoring.archive.lockMs === 0) return witnessed;
  const [oldest] = await listCheckpoints(anchoring.sql, log, {
    after: size - 1n,
    upTo: (witnessed?.size ?? SIZE_MAX) - 1n,
    limit: 1,
  });
  // The oldest may be out of its lock by now; what was sealed last is not.
  const newest =
    witnessed === undefined ? (await readCosigned(anchoring.sql, log))?.size : undefined;
  for (const candidate of [oldest, newest]) {
    const locked =
      candidate && candidate >= size ? await lockOf(anchoring, log, candidate) : undefined;
    if (locked !== undefined) return locked;
  }
  return witnessed;
}

async function oldestWitnessed(
  { sql, policy }: Anchoring,
  log: string,
  size: bigint,
): Promise<Anchor | undefined> {
  if (policy === undefined) return undefined;
  for (let from = size; ; ) {
    const page = await listCosigned(sql, log, { from, first: "oldest", limit: PAGE });
    for (const checkpoint of page) {
      const anchor = witnessedAnchor(checkpoint, policy);
      if (anchor !== undefined) return anchor;
    }
    const last = page.at(-1);
    if (last === undefined || page.length < PAGE) return undefined;
    from = last.size + 1n;
  }
}

function witnessedAnchor(checkpoint: CosignedCheckpoint, policy: Policy): Anchor | undefined {
  const by = genuineCosignatures(checkpoint, policy);
  const { size, root } = checkpoint;
  if (by.length === 0) return undefined;
  return {
    kind: "witnessed",
    size,
    root,
    by: by.map(({ vkey, time }) => ({ name: vkey.name, time })),
  };
}

async function lockOf(
  { sql, archive, clock }: Anchoring,
  log: string,
  size: bigint,
): Promise<Anchor | undefined> {
  const checkpoint = await readCosigned(sql, log, size);
  const until = await archive.lockedUntil(checkpointPath(log, size));
  if (checkpoint === undefined || until === undefined || +until <= clock.now()) return undefined;
  return { kind: "locked", size, root: checkpoint.root, until };
}

/** Of all logs together: read by anyone, so it names none. */
export interface Anchors {
  /**
   * `none`: the log is its operator's word. `witness-ahead`: a witness has cosigned more of some log
   * than we have of it; our copy went back.
   */
  state: "none" | "witnessed" | "locked" | "witness-ahead";
  /** Logs whose newest checkpoint nobody outside holds. */
  logs: number;
  /** Age of the oldest checkpoint beyond what is held outside; 0 when there is none. */
  lag_ms: number;
}

export const NO_ANCHORS: Anchors = { state: "none", logs: 0, lag_ms: 0 };

/** @throws ArchiveError `archive-unavailable` */
export async function readAnchors(anchoring: Anchoring): Promise<Anchors> {
  const { sql, archive, policy, clock } = anchoring;
  const keyIds = (policy?.witnesses ?? []).map(({ vkey }) => vkey.id);
  const { cosigned, behind, since } = await readWitnessLag(sql, keyIds);
  const lag_ms = since === null ? 0 : Math.max(0, clock.now() - +since);
  const logs = Number(behind);
  if ((await countWitnessAhead(sql, keyIds)) > 0n) return { state: "witness-ahead", logs, lag_ms };
  if (cosigned > 0n) return { state: "witnessed", logs, lag_ms };
  if (archive.lockMs > 0) {
    // One stands for all: what is put is locked as it is put.
    const sealed = (await listLogs(sql)).find((log) => log.sealed > 0n);
    const lock = sealed && (await lockOf(anchoring, sealed.log, sealed.sealed));
    if (lock !== undefined) return { state: "locked", logs: 0, lag_ms: 0 };
  }
  return { state: "none", logs, lag_ms };
}
