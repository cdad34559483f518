/** An export is in the hands of one process for as long as it works on it, however long that takes. */
import type { Sql, Transaction } from "../../store/connect.ts";
import { type ExportRow, lockExport, readExport } from "../../store/exports.ts";
import { transact } from "../../store/transact.ts";
import { limitTransaction } from "../../store/transaction.ts";

/** Whoever is stopped for longer leaves the export to another process. */
const IDLE_MS = 600_000;
/** A process that lives says so as often before that. */
const BEATS = 10;

export interface Held {
  /** Holds the lock: what is written in it is written only if nobody else had the export meanwhile. */
  tx: Transaction;
  /** As it is under the lock: what was listed may have come to its end, or be removed, since. */
  row: ExportRow;
  /** What is written of it, until that is over, another process has the export, or `signal` says so. */
  whileHeld: (chunks: AsyncIterable<Uint8Array>, signal: AbortSignal) => AsyncGenerator<Uint8Array>;
}

/**
 * The transaction keeps no snapshot and no row: a file that takes hours is in nobody's way.
 *
 * @param holds connections that nobody waits for who has one of a pool that `work` asks: they would wait for each other
 * @param idleMs how long a process may be stopped
 * @returns undefined, and nothing was done, where another process has it or it is gone
 */
export async function holding<T>(
  holds: Sql,
  of: Pick<ExportRow, "log" | "id">,
  work: (held: Held) => Promise<T>,
  idleMs = IDLE_MS,
): Promise<T | undefined> {
  const hold = async (tx: Transaction): Promise<T | undefined> => {
    if (!(await lockExport(tx, of))) return undefined;
    await limitTransaction(tx, { idle: idleMs });
    // By a statement of its own: that of the lock saw what was there before another process let go of it.
    const row = await readExport(tx, of);
    if (row === undefined) return undefined;
    const lost = new AbortController();
    const ask = async (): Promise<void> => void (await tx`select`);
    const beat = setInterval(() => void ask().catch((error) => lost.abort(error)), idleMs / BEATS);
    try {
      return await work({ tx, row, whileHeld: whileHeldBy(ask, lost.signal) });
    } finally {
      clearInterval(beat);
    }
  };
  return await transact(holds, hold, "isolation level read committed");
}

function whileHeldBy(ask: () => Promise<void>, lost: AbortSignal): Held["whileHeld"] {
  return async function* (chunks, signal) {
    const over = AbortSignal.any([lost, signal]);
    for await (const chunk of chunks) {
      over.throwIfAborted();
      yield chunk;
    }
    // Once more before the file gets its name: it would take the place of one that another process has made.
    await ask();
  };
}
