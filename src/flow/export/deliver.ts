/** Copies of exports go where the schedule says, each with its manifest, and its note as the last. */
import type { Manifest } from "../../core/export/manifest.ts";
import type { Sql } from "../../store/connect.ts";
import type { ExportFiles } from "../../store/export-files.ts";
import { isOvertaken, listUndelivered, setDelivered, setPending } from "../../store/exports.ts";
import type { Clock } from "../clock.ts";
import { hashed, whole } from "./hashed.ts";
import { type Held, holding } from "./hold.ts";
import { keptAt } from "./kept.ts";
import { isSigned, signManifest } from "./note.ts";
import { type Exports, fileName, parseManifest } from "./read.ts";

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

/**
 * All that is done and not delivered, the oldest first; what another process is copying is left to it. A place that
 * takes nothing is asked once: what else goes there would wait as long, and what goes elsewhere behind it.
 */
export async function deliverDue(delivering: Delivering): Promise<void> {
  const { holds, idleMs, onFailure, signal, sql } = delivering;
  const away = new Set<string>();
  for (let after = 0n; !signal.aborted; ) {
    const [row] = await listUndelivered(sql, { after, except: [...away] }, 1);
    if (row === undefined) return;
    after = row.number;
    const copy = (held: Held): Promise<Failed> => copyHeld(delivering, held, away);
    const failed = await holding(holds, row, copy, idleMs).catch((error: unknown) => ({ error }));
    if (failed !== undefined && !signal.aborted) onFailure(failed.error, row.log);
  }
}

type Failed = { error: unknown } | undefined;

/** What another process has delivered since it was listed, or makes again, stays as it is. */
async function copyHeld(delivering: Delivering, held: Held, away: Set<string>): Promise<Failed> {
  const { clock, open, signal } = delivering;
  const { tx, row } = held;
  const { deliver_to: to, delivered_at, log, manifest } = row;
  if (to === null || manifest === null || delivered_at !== null) return undefined;
  if (!(await isSigned(delivering, row, manifest)))
    return await again(held, new Damaged(`exports: of ${keptAt(row)} another manifest was signed`));
  const note = await signManifest(delivering.keyring, row, manifest);
  const path = `${log}/${fileName(row)}`;
  const own = openOwn();
  const file = unlessErased(held, sound(delivering, held, parseManifest(manifest)));
  try {
    const target = await open(to);
    await target.write(path, own.watched(file), signal);
    await target.write(`${path}.manifest.json`, whole(manifest), signal);
    const last = own.watched(unlessErased(held, whole(note)));
    await target.write(`${path}.manifest.note`, last, signal);
  } catch (error) {
    if (error !== own.failure()) away.add(to);
    if (!(error instanceof Damaged)) throw error;
    return await again(held, error);
  }
  await setDelivered(tx, row, new Date(clock.now()));
  return undefined;
}

class Damaged extends Error {}

async function again({ tx, row }: Held, error: Damaged): Promise<Failed> {
  await setPending(tx, row);
  return { error };
}

/** Nobody is given other bytes under the note of these: a file that is damaged ends before it has a name there. */
async function* sound(
  { files, signal }: Delivering,
  { row, whileHeld }: Held,
  { bytes, sha256 }: Manifest,
): AsyncGenerator<Uint8Array> {
  const path = keptAt(row);
  const damaged = (): never => {
    throw new Damaged(`exports: ${path} is not what was made, and is made again`);
  };
  const to = Number(bytes);
  if ((await files.size(path, signal)) !== to) damaged();
  const read = files.read(path, { from: 0, to }, signal);
  yield* hashed(whileHeld(read, signal), (found) => {
    if (found !== sha256) damaged();
  });
}

/** Asked once more before it has its name: copying may have taken hours. */
async function* unlessErased(
  { tx, row }: Held,
  chunks: AsyncIterable<Uint8Array>,
): AsyncGenerator<Uint8Array> {
  yield* chunks;
  if (await isOvertaken(tx, row)) throw new Error("exports: a name was erased meanwhile");
}

/** Tells what could not be had from what could not be written. */
function openOwn() {
  let failed: unknown;
  return {
    failure: () => failed,
    watched: async function* (chunks: AsyncIterable<Uint8Array>): AsyncGenerator<Uint8Array> {
      try {
        yield* chunks;
      } catch (error) {
        failed = error;
        throw error;
      }
    },
  };
}
