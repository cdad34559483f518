/** What of a log is shown to readers: a checkpoint in the archive, with all that was signed beside it. */
import type { Hash } from "../../core/hash.ts";
import { type Policy, reachesQuorum, witnessId } from "../../core/policy.ts";
import type { Sql } from "../../store/connect.ts";
import { type CosignedCheckpoint, listCosigned, readCosigned } from "../../store/cosignatures.ts";
import { genuineCosignatures } from "./cosigned.ts";

export interface PublishedCheckpoint {
  size: bigint;
  root: Hash;
  /** The log's own signatures, then every cosignature that is stored. */
  note: string;
  /** How many cosignatures the note has. */
  cosigned: number;
  /** At least one of them is a witness's of the policy: somebody outside holds this checkpoint. */
  anchored: boolean;
}

export interface Published {
  /**
   * The newest that reaches the policy's quorum; without a policy, the newest. Its size never goes down
   * while the process lives, whatever a replica that lags has to say.
   */
  latest(log: string): Promise<PublishedCheckpoint | undefined>;
  /** The one of that size, if there is one and it is no newer than the newest that may be shown. */
  at(log: string, size: bigint): Promise<PublishedCheckpoint | undefined>;
}

export interface Publishing {
  /** As reader. */
  sql: Sql;
  policy?: Policy | undefined;
}

const LOGS_MAX = 10_000;
/** Sizes in one look; in steady use the first is the one. */
const PAGE = 16;

export function openPublished({ sql, policy }: Publishing): Published {
  const quorum = policy !== undefined && !reachesQuorum(policy, new Set()) ? policy : undefined;
  /** By log, what was shown last; undefined where nothing may be shown yet. */
  const known = new Map<string, PublishedCheckpoint | undefined>();

  async function newest(log: string): Promise<CosignedCheckpoint | undefined> {
    if (quorum === undefined) return await readCosigned(sql, log);
    const from = known.get(log)?.size ?? 0n;
    let below: bigint | undefined;
    do {
      const page = await listCosigned(sql, log, { from, below, first: "newest", limit: PAGE });
      const found = page.find((each) => each.size === from || hasQuorum(each, quorum));
      if (found !== undefined || page.length < PAGE) return found;
      below = page.at(-1)?.size;
      // Once all was looked through, what is older than a page gets no cosignature any more.
    } while (!known.has(log));
    return undefined;
  }

  async function latest(log: string): Promise<PublishedCheckpoint | undefined> {
    const found = await newest(log);
    const shown = known.get(log);
    if (found === undefined ? shown !== undefined : isShown(found, shown)) return shown;
    const next = found && publishedOf(found, policy);
    // The log that came first goes first: what was shown of it is found again.
    const [oldest] = known.keys();
    if (known.size >= LOGS_MAX && oldest !== undefined && !known.has(log)) known.delete(oldest);
    known.set(log, next);
    return next;
  }

  return {
    latest,
    at: async (log, size) => {
      const shown = await latest(log);
      if (shown === undefined || size >= shown.size)
        return shown?.size === size ? shown : undefined;
      const found = await readCosigned(sql, log, size);
      return found && publishedOf(found, policy);
    },
  };
}

/** Is it older than what is shown, or the same with nothing new beside it? */
function isShown(found: CosignedCheckpoint, shown: PublishedCheckpoint | undefined): boolean {
  if (shown === undefined || found.size > shown.size) return false;
  return found.size < shown.size || found.cosignatures.length <= shown.cosigned;
}

function hasQuorum(checkpoint: CosignedCheckpoint, policy: Policy): boolean {
  const held = genuineCosignatures(checkpoint, policy);
  return reachesQuorum(policy, new Set(held.map(({ vkey }) => witnessId(vkey))));
}

function publishedOf(
  checkpoint: CosignedCheckpoint,
  policy: Policy | undefined,
): PublishedCheckpoint {
  const { size, root, note, cosignatures } = checkpoint;
  const lines = cosignatures.map(({ line }) => line);
  return {
    size,
    root,
    note: `${note}${lines.join("")}`,
    cosigned: lines.length,
    anchored: policy !== undefined && genuineCosignatures(checkpoint, policy).length > 0,
  };
}
