/** Exports whose time is over are removed: they can be made anew, as of the same entry to the same bytes. */
import type { Sql } from "../../store/connect.ts";
import type { ExportFiles } from "../../store/export-files.ts";
import { deleteExport, type ExpiredRow, listExpired } from "../../store/exports.ts";
import type { Clock } from "../clock.ts";
import { keptAt, noteAt } from "./kept.ts";

export interface Expiring {
  /** As writer. */
  sql: Sql;
  files: ExportFiles;
  clock: Clock;
  /** From when one was asked for. */
  keptMs: number;
  signal: AbortSignal;
  /** One that could not be removed: its turn comes again, and it keeps no other. */
  onFailure: (error: unknown, log?: string) => void;
}

const BATCH = 100;
/** So many times as long is kept what its place does not take: it may never come back. */
const UNDELIVERED = 2;
/** Until what failed on a schedule is asked for again. */
const FAILED_MS = 3_600_000;

/** The file first: a row without one is found again after a crash, and a file without its row never. */
export async function expireDue(expiring: Expiring): Promise<void> {
  const { sql, clock, keptMs, onFailure, signal } = expiring;
  const now = clock.now();
  const before = {
    asked: new Date(now - keptMs),
    undelivered: new Date(now - UNDELIVERED * keptMs),
    failed: new Date(now - FAILED_MS),
  };
  for (let after = 0n; ; ) {
    const rows = await listExpired(sql, after, before, BATCH);
    for (const row of rows) {
      if (signal.aborted) return;
      after = row.number;
      await expire(expiring, row).catch((error: unknown) => {
        if (!signal.aborted) onFailure(error, row.log);
      });
    }
    if (rows.length < BATCH) return;
  }
}

async function expire({ sql, files, signal }: Expiring, row: ExpiredRow): Promise<void> {
  for (const path of [keptAt(row), noteAt(row)]) {
    await files.remove(path, signal).catch((error: unknown) => {
      // What failed has no file, nor perhaps a folder yet: it is asked for again all the same.
      if (row.state !== "failed") throw error;
    });
  }
  await deleteExport(sql, row);
}
