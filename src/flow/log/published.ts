/** What of a log is shown to readers: a checkpoint in the archive, with all that was signed beside it. */
import type { Hash } from "../../core/hash.ts";
import type { Sql } from "../../store/connect.ts";
import { type CosignedCheckpoint, readCosigned } from "../../store/cosignatures.ts";

export interface PublishedCheckpoint {
  size: bigint;
  root: Hash;
  /** The log's own signatures, then every cosignature that is stored. */
  note: string;
  /** How many cosignatures the note has. */
  cosigned: number;
  /** A party outside the operator's control holds this checkpoint. */
  anchored: boolean;
}

export interface Published {
  /** The newest that may be shown; its size never goes down. */
  latest(log: string): Promise<PublishedCheckpoint | undefined>;
  /** The one of that size, if there is one and it is no newer than the newest that may be shown. */
  at(log: string, size: bigint): Promise<PublishedCheckpoint | undefined>;
}

/** @param options.sql as reader */
export function openPublished({ sql }: { sql: Sql }): Published {
  const latest = async (log: string): Promise<PublishedCheckpoint | undefined> => {
    const found = await readCosigned(sql, log);
    return found && published(found);
  };
  return {
    latest,
    at: async (log, size) => {
      const newest = await latest(log);
      if (newest === undefined || size > newest.size) return undefined;
      const found = await readCosigned(sql, log, size);
      return found && published(found);
    },
  };
}

function published({ size, root, note, cosignatures }: CosignedCheckpoint): PublishedCheckpoint {
  const lines = cosignatures.map(({ line }) => line);
  return {
    size,
    root,
    note: `${note}${lines.join("")}`,
    cosigned: lines.length,
    anchored: lines.length > 0,
  };
}
