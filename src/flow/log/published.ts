/**
 * What of a log is shown to readers: a checkpoint as the archive holds it, signed by the log, with all that
 * was signed beside it. Rows of the database say which there are, and are believed in nothing.
 */
import type { Hash } from "../../core/hash.ts";
import type { Policy } from "../../core/policy.ts";
import { decodeUtf8 } from "../../core/text.ts";
import { checkpointPath, cosignaturePath } from "../../store/archive.ts";
import type { Sql } from "../../store/connect.ts";
import { type CosignedCheckpoint, listCosigned, readCosigned } from "../../store/cosignatures.ts";
import { asksForQuorum, genuineCosignatures, hasQuorum } from "./cosigned.ts";
import { type GenuineCheckpoint, genuineCheckpoint, type Proven } from "./genuine.ts";
import { refusalOf } from "./refusal.ts";

export interface PublishedCheckpoint {
  size: bigint;
  root: Hash;
  /** The log's own signatures, then the cosignatures. */
  note: string;
  /** How many cosignatures the note has. */
  cosigned: number;
  /** At least one of them is a witness's of the policy: somebody outside holds this checkpoint. */
  anchored: boolean;
}

/** Each may throw Problem `archive-unavailable`. */
export interface Published {
  /**
   * The newest that reaches the policy's quorum; without a policy, the newest. Its size never goes down
   * while the process lives, whatever a replica that lags has to say.
   */
  latest(log: string): Promise<PublishedCheckpoint | undefined>;
  /** The one of that size, if there is one and it is no newer than the newest that may be shown. */
  at(log: string, size: bigint): Promise<PublishedCheckpoint | undefined>;
}

export interface Publishing extends Proven {
  /** As reader. */
  sql: Sql;
  policy?: Policy | undefined;
}

const LOGS_MAX = 10_000;
/** Of those that were held against the archive; a note is some 300 bytes. */
const PROVEN_MAX = 10_000;
/** Sizes in one look; in steady use the first is the one. */
const PAGE = 16;
/** Lines of witnesses that the policy does not name, in one note. */
const OTHERS_MAX = 16;
const KEY_ID = /^[0-9a-f]{8}$/;

export function openPublished(publishing: Publishing): Published {
  const { sql, policy } = publishing;
  const quorum = asksForQuorum(policy) ? policy : undefined;
  /** By log, what was shown last, and how many cosignatures were stored of it. */
  const known = new Map<string, { shown: PublishedCheckpoint; stored: number }>();
  const proven = new Map<string, GenuineCheckpoint>();

  /** As the archive has it; what the row says beside its size is dropped. */
  async function prove(
    log: string,
    { size, cosignatures }: CosignedCheckpoint,
  ): Promise<CosignedCheckpoint | undefined> {
    const path = checkpointPath(log, size);
    const genuine = proven.get(path) ?? (await genuineCheckpoint(publishing, sql, log, size));
    if (genuine === undefined) return undefined;
    keep(proven, PROVEN_MAX, path, genuine);
    return { ...genuine, cosignatures };
  }

  async function newest(log: string): Promise<CosignedCheckpoint | undefined> {
    const from = known.get(log)?.shown.size ?? 0n;
    let below: bigint | undefined;
    do {
      const range = { from, below, first: "newest", limit: PAGE } as const;
      const page = await listCosigned(sql, log, range, quorum ? "cosigned" : "all");
      for (const row of page) {
        const found = await prove(log, row);
        if (found && (row.size === from || !quorum || hasQuorum(found, quorum))) return found;
      }
      if (page.length < PAGE) return undefined;
      below = page.at(-1)?.size;
      // Once all was looked through, what is older than a page gets no cosignature any more.
    } while (!known.has(log));
    return undefined;
  }

  async function latest(log: string): Promise<PublishedCheckpoint | undefined> {
    const found = await newest(log);
    const before = known.get(log);
    const stored = found?.cosignatures.length ?? 0;
    if (found === undefined || (before && isShown(found, before))) return before?.shown;
    const shown = await publishedOf(publishing, log, found);
    keep(known, LOGS_MAX, log, { shown, stored });
    return shown;
  }

  async function at(log: string, size: bigint): Promise<PublishedCheckpoint | undefined> {
    const shown = await latest(log);
    if (shown === undefined || size >= shown.size) return shown?.size === size ? shown : undefined;
    const row = await readCosigned(sql, log, size);
    const found = row && (await prove(log, row));
    return found && (await publishedOf(publishing, log, found));
  }

  return {
    latest: (log) => refusing(() => latest(log)),
    at: (log, size) => refusing(() => at(log, size)),
  };
}

async function refusing<T>(look: () => Promise<T>): Promise<T> {
  try {
    return await look();
  } catch (error) {
    throw refusalOf(error) ?? error;
  }
}

/** What came first goes first: it is found again. */
function keep<T>(map: Map<string, T>, max: number, key: string, value: T): void {
  const [oldest] = map.keys();
  if (map.size >= max && oldest !== undefined && !map.has(key)) map.delete(oldest);
  map.set(key, value);
}

/** Is it older than what is shown, or the same with nothing new beside it? */
function isShown(
  found: CosignedCheckpoint,
  { shown, stored }: { shown: PublishedCheckpoint; stored: number },
): boolean {
  if (found.size > shown.size) return false;
  return found.size < shown.size || found.cosignatures.length <= stored;
}

/** With the lines of the policy's witnesses that verify, and those of others that the archive holds too. */
async function publishedOf(
  { archive, policy }: Publishing,
  log: string,
  checkpoint: CosignedCheckpoint,
): Promise<PublishedCheckpoint> {
  const { size, root, note, cosignatures } = checkpoint;
  const genuine = policy === undefined ? [] : genuineCosignatures(checkpoint, policy);
  const held = new Set(genuine.map(({ vkey }) => vkey.id));
  const named = new Set(policy?.witnesses.map(({ vkey }) => vkey.id));
  const others = cosignatures
    .filter(({ key_id }) => KEY_ID.test(key_id) && !named.has(key_id))
    .slice(0, OTHERS_MAX);
  for (const { key_id, line } of others) {
    // A line that does not hold refuses the whole note to whoever knows its key.
    const bytes = await archive.get(cosignaturePath(log, size, key_id));
    if (bytes !== undefined && decodeUtf8(bytes) === line) held.add(key_id);
  }
  const lines = cosignatures.filter(({ key_id }) => held.has(key_id)).map(({ line }) => line);
  return {
    size,
    root,
    note: `${note}${lines.join("")}`,
    cosigned: lines.length,
    anchored: genuine.length > 0,
  };
}
