/** Whether anyone may read a log; restricted until an entry says otherwise, and the newest counts. */
import type { z } from "zod";
import { BODY, decodeEntry } from "../../core/entry.ts";
import type { Sql, Transaction } from "../../store/connect.ts";
import { readNewest } from "../../store/registers.ts";
import type { Clock, Random } from "../clock.ts";
import type { Appender } from "./append.ts";
import { salt } from "./chain.ts";
import type { Receipt } from "./commit.ts";

export const NewVisibility = BODY.visibility.pick({ public: true });
export type NewVisibility = z.infer<typeof NewVisibility>;

/**
 * Answered by the entry that says so already, if one does.
 *
 * @param by opaque id of the principal who asks
 * @throws Problem `not-found`, `approval-required`
 */
export async function setVisibility(
  { appender, random }: { appender: Appender; random: Random },
  { log, by }: { log: string; by: string },
  input: NewVisibility,
): Promise<Receipt> {
  const body = { ...input, approval: "", by, salt: salt(random) };
  return await appender.control(log, "visibility", async (_, __, tx) => {
    const standing = await newest(tx, log);
    return standing?.public === input.public ? standing.index : body;
  });
}

export interface Visibility {
  /** As the database said within the last second. */
  isPublic(log: string): Promise<boolean>;
}

/** A log that was restricted is restricted everywhere after so long. */
const KNOWN_MS = 1_000;
/** Anybody may ask for any name. */
const LOGS_MAX = 10_000;

interface Known {
  isPublic: boolean;
  at: number;
}

/** @param options.sql as reader */
export function openVisibility({ sql, clock }: { sql: Sql; clock: Clock }): Visibility {
  const known = new Map<string, Known>();
  return {
    isPublic: async (log) => {
      const before = known.get(log);
      // Before the look, and in both directions: a clock that stepped back must not prolong anything.
      const at = clock.now();
      if (before !== undefined && Math.abs(at - before.at) < KNOWN_MS) return before.isPublic;
      const isPublic = (await newest(sql, log))?.public ?? false;
      if (known.size >= LOGS_MAX) known.clear();
      known.set(log, { isPublic, at });
      return isPublic;
    },
  };
}

async function newest(
  sql: Sql | Transaction,
  log: string,
): Promise<{ index: bigint; public: boolean } | undefined> {
  const found = await readNewest(sql, log, "visibility");
  if (found === undefined) return undefined;
  const entry = decodeEntry(found.bytes);
  if (typeof entry === "string" || entry.kind !== "visibility") {
    throw new Error("visibility: another kind of entry");
  }
  return { index: found.index, public: entry.body.public };
}
