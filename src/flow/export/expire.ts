/** Exports whose time is over are removed: they can be made anew, as of the same entry to the same bytes. */
import type { Sql } from "../../store/connect.ts";
import type { ExportFiles } from "../../store/export-files.ts";
import { deleteExport, listExpired } from "../../store/exports.ts";
import type { Clock } from "../clock.ts";
import { keptAt } from "./read.ts";

export interface Expiring {
  /** As writer. */
  sql: Sql;
  files: ExportFiles;
  clock: Clock;
  /** From when one was asked for. */
  keptMs: number;
  signal: AbortSignal;
}

const BATCH = 100;
/** Until what failed on a schedule is asked for again. */
const FAILED_MS = 3_600_000;

/** The file first: a row without one is found again after a crash, and a file without its row never. */
export async function expireDue({ sql, files, clock, keptMs, signal }: Expiring): Promise<void> {
  const now = clock.now();
  const before = { asked: new Date(now - keptMs), failed: new Date(now - FAILED_MS) };
  for (const row of await listExpired(sql, before, BATCH)) {
    if (signal.aborted) return;
    await files.remove(keptAt(row), signal).catch((error: unknown) => {
      // What failed has no file, nor perhaps a folder yet: it is asked for again all the same.
      if (row.state !== "failed") throw error;
    });
    await deleteExport(sql, row);
  }
}
