/** Copies of exports go where the schedule says, each with its manifest, and its note as the last. */
import { encodeUtf8 } from "../../core/text.ts";
import type { Sql } from "../../store/connect.ts";
import type { ExportFiles } from "../../store/export-files.ts";
import { type ExportRow, listUndelivered, setDelivered } from "../../store/exports.ts";
import type { Clock } from "../clock.ts";
import { type Held, holding } from "./hold.ts";
import { type Exports, fileName, keptAt, noteFor, parseManifest } from "./read.ts";

export interface Delivering extends Exports {
  /** As writer, and no part of `sql`: whoever holds an export by one of these waits for one of those. */
  holds: Sql;
  clock: Clock;
  /** What a rule's `to` names. @throws Error for what is none */
  open: (location: string) => Promise<ExportFiles>;
  signal: AbortSignal;
  /** A copy that could not be made: its turn comes again. */
  onFailure: (error: unknown, log?: string) => void;
  /** How long a process may be stopped before another one copies what it was copying. */
  idleMs?: number;
}

/** All that is done and not delivered, the oldest first; what another process is copying is left to it. */
export async function deliverDue(delivering: Delivering): Promise<void> {
  const { onFailure, signal, sql } = delivering;
  for (let after = 0n; !signal.aborted; ) {
    const [row] = await listUndelivered(sql, after, 1);
    if (row === undefined) return;
    after = row.number;
    await deliver(delivering, row).catch((error: unknown) => {
      if (!signal.aborted) onFailure(error, row.log);
    });
  }
}

async function deliver(delivering: Delivering, listed: ExportRow): Promise<void> {
  const { holds, idleMs } = delivering;
  await holding(holds, listed, (held) => copyHeld(delivering, held), idleMs);
}

/** What another process has delivered since it was listed stays as it is. */
async function copyHeld(delivering: Delivering, { tx, row, whileHeld }: Held): Promise<void> {
  const { clock, files, keyring, open, signal } = delivering;
  const { deliver_to: to, delivered_at, log, manifest } = row;
  if (delivered_at !== null) return;
  if (to === null || manifest === null) throw new Error("exports: nothing to deliver");
  const target = await open(to);
  const note = await noteFor(keyring, row, manifest);
  const range = { from: 0, to: Number(parseManifest(manifest).bytes) };
  const path = `${log}/${fileName(row)}`;
  await target.write(path, whileHeld(files.read(keptAt(row), range), signal));
  await target.write(`${path}.manifest.json`, whole(manifest));
  await target.write(`${path}.manifest.note`, whole(note));
  await setDelivered(tx, row, new Date(clock.now()));
}

async function* whole(text: string): AsyncGenerator<Uint8Array> {
  yield encodeUtf8(text);
}
