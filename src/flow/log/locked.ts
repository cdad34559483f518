/** Of which logs the archive cannot let go: judged for each, and the worst counts. */
import { type Archive, checkpointPath } from "../../store/archive.ts";
import type { Sql } from "../../store/connect.ts";
import { readNewestSeals, type SealedAt } from "../../store/seals.ts";
import type { Clock } from "../clock.ts";

export interface Locks {
  look(): Promise<LockLag>;
}

/** Logs whose newest checkpoint could be removed, of all that are sealed, and how old the oldest is. */
export interface LockLag {
  sealed: number;
  logs: number;
  lag_ms: number;
}

/** Each is a request to the store; the next look goes on with the logs that follow. */
const ASKED_MAX = 16;

/**
 * What is put is locked as it is put, for as long as the store was set up for: so a lock's end is known from
 * when a checkpoint was sealed. Whether it is true the store is asked, of a few logs at each look, in turn.
 */
export function openLocks({
  sql,
  archive,
  clock,
}: {
  sql: Sql;
  archive: Archive;
  clock: Clock;
}): Locks {
  /** By log, of the size that was asked for. */
  let told = new Map<string, { size: bigint; until: number }>();
  let after = "";

  async function ask(sealed: readonly SealedAt[]): Promise<void> {
    const next = sealed.findIndex(({ log }) => log > after);
    const from = Math.max(next, 0);
    const turn = [...sealed.slice(from), ...sealed.slice(0, from)].slice(0, ASKED_MAX);
    await Promise.all(
      turn.map(async ({ log, size }) => {
        const until = await archive.lockedUntil(checkpointPath(log, size));
        told.set(log, { size, until: until === undefined ? 0 : +until });
      }),
    );
    after = turn.at(-1)?.log ?? "";
    told = new Map(sealed.flatMap(({ log }) => entryOf(told, log)));
  }

  function isHeld({ log, size, at }: SealedAt): boolean {
    const last = told.get(log);
    const until = last?.size === size ? last.until : +at + archive.lockMs;
    return until > clock.now() && last?.until !== 0;
  }

  return {
    look: async () => {
      const sealed = await readNewestSeals(sql);
      await ask(sealed);
      const open = sealed.filter((each) => !isHeld(each));
      const oldest = Math.min(...open.map(({ at }) => +at), clock.now());
      return { sealed: sealed.length, logs: open.length, lag_ms: clock.now() - oldest };
    },
  };
}

/** Of logs that are gone nothing is kept. */
function entryOf<T>(map: ReadonlyMap<string, T>, log: string): [string, T][] {
  const value = map.get(log);
  return value === undefined ? [] : [[log, value]];
}
