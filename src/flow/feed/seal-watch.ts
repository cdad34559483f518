/** Tells whoever waits for it that a log is sealed further: one query in turn for all of them, while anybody waits. */
import { setTimeout as pause } from "node:timers/promises";
import { Problem } from "../../core/problem.ts";
import type { Sql } from "../../store/connect.ts";
import { readSealedSizes } from "../../store/feed.ts";
import type { FeedReader } from "./read.ts";

export interface SealWatch {
  /**
   * Resolves to true when the log is sealed beyond a size, to false when so many milliseconds are over, the signal
   * is aborted or the watch is closed; and at once where as many as may already wait for the same principal.
   *
   * @throws Problem `busy`: too many wait already
   */
  grown(log: string, wait: Wait, by: Pick<FeedReader, "id" | "signal">): Promise<boolean>;
  /** Nobody waits any more. */
  close(): void;
}

export interface Wait {
  beyond: bigint;
  ms: number;
}

interface Waiter {
  log: string;
  /** Of a principal. */
  id: string;
  beyond: bigint;
  answer: (grown: boolean) => void;
}

const LOOK_MS = 200;
const WAITERS_MAX = 1_000;
/** Of one principal, so that nobody takes the places of all others. */
export const WAITERS_OF_ONE_MAX = 20;

export function openSealWatch({ sql }: { sql: Sql }): SealWatch {
  const waiters = new Set<Waiter>();
  let looking = false;
  let closed = false;

  async function look(): Promise<void> {
    if (looking) return;
    looking = true;
    while (waiters.size > 0) {
      const logs = [...new Set(Array.from(waiters, ({ log }) => log))];
      // A look that fails is made again; what is wrong says the read that comes after the wait.
      const sizes = await readSealedSizes(sql, logs).catch(() => new Map<string, bigint>());
      for (const { answer, beyond, log } of waiters) {
        if ((sizes.get(log) ?? 0n) > beyond) answer(true);
      }
      await pause(LOOK_MS);
    }
    looking = false;
  }

  return {
    grown: async (log, { beyond, ms }, { id, signal }) => {
      if (closed || signal.aborted) return false;
      const own = Array.from(waiters).filter((waiter) => waiter.id === id);
      if (own.length >= WAITERS_OF_ONE_MAX) return false;
      if (waiters.size >= WAITERS_MAX) throw new Problem("busy");
      return await new Promise((resolve) => {
        const answer = (grown: boolean): void => {
          waiters.delete(waiter);
          clearTimeout(over);
          signal.removeEventListener("abort", gone);
          resolve(grown);
        };
        const gone = (): void => answer(false);
        const over = setTimeout(gone, ms);
        const waiter = { log, id, beyond, answer };
        signal.addEventListener("abort", gone);
        waiters.add(waiter);
        void look();
      });
    },
    close: () => {
      closed = true;
      for (const { answer } of waiters) answer(false);
    },
  };
}
