/** Whether anyone may read a log; restricted until an entry says otherwise, and the newest counts. */
import type { z } from "zod";
import { BODY, decodeEntry } from "../../core/entry.ts";
import type { Sql, Transaction } from "../../store/connect.ts";
import { readHeads } from "../../store/heads.ts";
import { readNewest } from "../../store/registers.ts";
import { transact } from "../../store/transact.ts";
import type { Clock, Random } from "../clock.ts";
import type { Appender } from "./append.ts";
import { salt } from "./chain.ts";
import type { Receipt } from "./commit-entry.ts";
import type { SealGuard } from "./guard.ts";

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
  /**
   * As the database said within the last second. Never of a log that the guard refuses: of a copy that went
   * back nobody knows what was restricted since.
   */
  isPublic(log: string): Promise<boolean>;
}

/** A log that was restricted is restricted everywhere after so long. */
const KNOWN_MS = 1_000;
/** Anybody may ask for any name. */
const LOGS_MAX = 10_000;

interface Known {
  isPublic: Promise<boolean>;
  at: number;
}

export interface Looking {
  /** As reader: names of logs that are not public go no further. */
  sql: Sql;
  /** As writer: a replica may not have heard yet that a log was restricted. */
  writer: Sql;
  guard: Pick<SealGuard, "sealable" | "state">;
  clock: Clock;
}

export function openVisibility(looking: Looking): Visibility {
  const { sql, clock } = looking;
  const known = new Map<string, Known>();
  const look = async (log: string): Promise<boolean> => {
    const said = await newest(sql, log);
    return said?.public === true && (await isConfirmed(looking, log));
  };
  return {
    isPublic: (log) => {
      const before = known.get(log);
      // Before the look, and in both directions: a clock that stepped back must not prolong anything.
      const at = clock.now();
      if (before !== undefined && Math.abs(at - before.at) < KNOWN_MS) return before.isPublic;
      const isPublic = look(log);
      if (known.size >= LOGS_MAX) known.clear();
      known.set(log, { isPublic, at });
      isPublic.catch(() => known.delete(log));
      return isPublic;
    },
  };
}

/** Where the writer or the archive cannot be asked the log is for those who have a token. */
async function isConfirmed({ writer, guard }: Looking, log: string): Promise<boolean> {
  const assertAgreeing = guard.sealable([log]);
  try {
    return await transact(writer, async (tx) => {
      const head = (await readHeads(tx, [log])).get(log);
      if (head === undefined) return false;
      await assertAgreeing(tx, log, head);
      // What a seal found, which may be more than the look before it.
      if (guard.state().get(log) === "log-behind") return false;
      return (await newest(tx, log))?.public === true;
    });
  } catch {
    return false;
  }
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
