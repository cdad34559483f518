/**
 * Anchors: checkpoints that somebody besides the operator holds. Either a witness of the policy has
 * cosigned one, or the archive cannot let go of it until a day that has not come.
 */
import type { Hash } from "../../core/hash.ts";
import type { Policy } from "../../core/policy.ts";
import { checkpointPath } from "../../store/archive.ts";
import { listCheckpoints } from "../../store/checkpoints.ts";
import type { Sql } from "../../store/connect.ts";
import { type CosignedCheckpoint, listCosigned, readCosigned } from "../../store/cosignatures.ts";
import { readPublicationLag } from "../../store/rounds.ts";
import { readWitnessDoubts, readWitnessLag } from "../../store/submissions.ts";
import type { Clock } from "../clock.ts";
import { asksForQuorum, genuineCosignatures } from "./cosigned.ts";
import { genuineCheckpoint, type Proven } from "./genuine.ts";
import { openLocks } from "./locked.ts";

export interface Anchoring extends Proven {
  sql: Sql;
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
  anchoring: Anchoring,
  log: string,
  size: bigint,
): Promise<Anchor | undefined> {
  const { sql, policy } = anchoring;
  if (policy === undefined) return undefined;
  for (let from = size; ; ) {
    const page = await listCosigned(sql, log, { from, first: "oldest", limit: PAGE });
    for (const { size: at, cosignatures } of page) {
      const genuine = await genuineCheckpoint(anchoring, sql, log, at);
      const anchor = genuine && witnessedAnchor({ ...genuine, cosignatures }, policy);
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
  anchoring: Anchoring,
  log: string,
  size: bigint,
): Promise<Anchor | undefined> {
  const { sql, archive, clock } = anchoring;
  const checkpoint = await genuineCheckpoint(anchoring, sql, log, size);
  const until = await archive.lockedUntil(checkpointPath(log, size));
  if (checkpoint === undefined || until === undefined || +until <= clock.now()) return undefined;
  return { kind: "locked", size, root: checkpoint.root, until };
}

/** Of all logs together: read by anyone, so it names none. */
export interface Anchors {
  /**
   * `none`: at least one log is its operator's word. `witness-ahead`: a witness has cosigned more of some
   * log than we have, and has signed nothing since; our copy went back, or it lies. `witness-conflict`: it
   * refuses ours as no continuation of what it has cosigned.
   */
  state: "none" | "witnessed" | "locked" | "witness-ahead" | "witness-conflict";
  /** Logs whose newest checkpoint nobody outside holds. */
  logs: number;
  /** Age of the oldest checkpoint beyond what is held outside; 0 when there is none. */
  lag_ms: number;
  /** Of checkpoints that readers are not shown yet, because the quorum has not signed them. */
  unpublished: { logs: number; lag_ms: number };
}

export const NO_ANCHORS: Anchors = {
  state: "none",
  logs: 0,
  lag_ms: 0,
  unpublished: { logs: 0, lag_ms: 0 },
};

/** Looks at all logs, again and again. @throws ArchiveError `archive-unavailable` */
export function openAnchors(anchoring: Anchoring): () => Promise<Anchors> {
  const { sql, archive, policy, clock } = anchoring;
  const keyIds = (policy?.witnesses ?? []).map(({ vkey }) => vkey.id);
  const locks = openLocks(anchoring);
  const age = (since: Date | null) => (since === null ? 0 : Math.max(0, clock.now() - +since));
  return async () => {
    const { cosigned, behind, since } = await readWitnessLag(sql, keyIds);
    const waiting = asksForQuorum(policy) ? await readPublicationLag(sql) : undefined;
    const unpublished = waiting
      ? { logs: Number(waiting.behind), lag_ms: age(waiting.since) }
      : NO_ANCHORS.unpublished;
    const found = { logs: Number(behind), lag_ms: age(since), unpublished };
    const { ahead, conflicting } = await readWitnessDoubts(sql, keyIds);
    if (conflicting > 0n) return { state: "witness-conflict", ...found };
    if (ahead > 0n) return { state: "witness-ahead", ...found };
    if (cosigned > 0n) return { state: "witnessed", ...found };
    if (archive.lockMs === 0) return { state: "none", ...found };
    const { sealed, logs, lag_ms } = await locks.look();
    return { state: sealed > 0 && logs === 0 ? "locked" : "none", logs, lag_ms, unpublished };
  };
}
