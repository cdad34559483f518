/** An export is made: read as of one index, written as it is read, hashed as it is written. */
import { createHash } from "node:crypto";
import { encodeManifest, type Manifest } from "../../core/export/manifest.ts";
import type { ExportName } from "../../core/export/tables.ts";
import { Problem } from "../../core/problem.ts";
import { encodeBase64 } from "../../core/text.ts";
import { instantText } from "../../core/unit.ts";
import { ArchiveError } from "../../store/archive.ts";
import type { Sql, Transaction } from "../../store/connect.ts";
import { type ExportFiles, ExportFilesError } from "../../store/export-files.ts";
import {
  type Covering,
  type ExportRow,
  endExport,
  readNewestDone,
  setProgress,
} from "../../store/exports.ts";
import { listLogs } from "../../store/logs.ts";
import { transact } from "../../store/transact.ts";
import { limitTransaction } from "../../store/transaction.ts";
import type { Clock } from "../clock.ts";
import { failureOf } from "../log/failure.ts";
import { decodedAs } from "../usage/show.ts";
import { signedHash } from "./closing-set.ts";
import { contentOf } from "./content.ts";
import { whole } from "./hashed.ts";
import { type Held, holding } from "./hold.ts";
import { keptAt, noteAt } from "./kept.ts";
import { named } from "./named.ts";
import { coveringOf, type Notary, signManifest } from "./note.ts";
import { askedFor } from "./read.ts";
import type { Source } from "./source.ts";

export interface Making extends Notary {
  /** As writer. */
  sql: Sql;
  /** As writer, and no part of `sql`: whoever holds an export by one of these waits for one of those. */
  holds: Sql;
  files: ExportFiles;
  sources: Readonly<Partial<Record<ExportName, Source>>>;
  clock: Clock;
  /** Name and version of this program, as the manifest has them. */
  generator: string;
  /** Ends what is under way: another process makes it. */
  signal: AbortSignal;
}

/** Of a log of any length. Nobody queues at a transaction that only reads. */
const STATEMENT_MS = 3_600_000;
/** While files are written, as long as the export itself is held. */
const IDLE_MS = 600_000;
/** Between two words of how far it is: each is a version of the row. */
const PROGRESS_MS = 1_000;
/** For so long whoever asked is kept waiting for what may pass. What a schedule asks for has nobody to ask again. */
const WAIT_MS = 86_400_000;

interface Made {
  bytes: bigint;
  manifest: string;
}

/**
 * One that another process is making is left to it, and so is what has ended since it was listed; should that
 * process die, its lock goes with it. So nothing is ever half made: the file has its name when it is whole, then its manifest
 * is signed, and the row gets it when both are there, before anybody else can have them.
 *
 * @throws what kept it from being made: where that may pass, it still waits
 */
export async function make(making: Making, listed: ExportRow): Promise<void> {
  const failed = await holding(making.holds, listed, async (held) => {
    if (held.row.state !== "pending") return undefined;
    return await makeHeld(making, held);
  });
  if (failed !== undefined) throw failed.error;
}

/** Ends the row, also of what failed: with its error, which is thrown when that is written. */
async function makeHeld(making: Making, held: Held): Promise<{ error: unknown } | undefined> {
  const { sql, clock, signal } = making;
  const { tx, row } = held;
  const progress = openProgress(sql, row);
  let made: Made;
  try {
    const covering = await coveringOf(making, sql, row);
    const work = (snapshot: Transaction): Promise<Made> =>
      makeIn(snapshot, making, { ...held, covering }, progress.told);
    made = await transact(sql, work, "isolation level repeatable read read only").finally(
      progress.settled,
    );
    await keepNote(making, held, made.manifest);
  } catch (error) {
    const isOver = row.origin === null && clock.now() - row.asked_at.getTime() >= WAIT_MS;
    if (signal.aborted || (mayPass(error) && !isOver)) throw error;
    await endExport(tx, row, { error: codeOf(error) }, new Date(clock.now()));
    return { error };
  }
  await endExport(tx, row, made, new Date(clock.now()));
  return undefined;
}

/** No snapshot waits for a signer. */
async function keepNote(
  { files, keyring, signal }: Making,
  { row, whileHeld }: Held,
  json: string,
): Promise<void> {
  const note = await signManifest(keyring, row, json);
  await files.renew(noteAt(row), whileHeld(whole(note), signal), signal);
}

async function makeIn(
  tx: Transaction,
  { clock, files, generator, signal, sources }: Making,
  { covering, row, whileHeld }: Held & { covering: Covering },
  told: (bytes: bigint) => void,
): Promise<Made> {
  await limitTransaction(tx, { statement: STATEMENT_MS, idle: IDLE_MS });
  const { format, name, parameters } = askedFor(row);
  const source = sources[name];
  if (source === undefined) throw new Error(`exports: nothing makes ${name}`);
  await assertThere(tx, files, signal);
  const { log, as_of: asOf } = row;
  const origin = { tx, log, asOf, parameters };
  const bare = source(origin);
  const sheet = parameters.names ? named(bare, origin) : bare;
  const content = contentOf(sheet, format);
  const signed = await signedHash(tx, { log, asOf, format, name, parameters });
  const digest = createHash("sha256");
  let sha256 = "";
  let bytes = 0n;
  await files.renew(keptAt(row), hashed(), signal);
  const { rows, totals } = await content.figures();
  const manifest: Manifest = {
    as_of: String(asOf),
    bytes: String(bytes),
    checkpoint: { root: encodeBase64(covering.root), size: String(covering.size) },
    columns: sheet.columns.map((column) => column.name),
    created_at: instantText(clock.now()),
    ...{ format, generator, log, name, parameters, totals },
    instance: await instanceOf(tx, log),
    range: { from: parameters.from ?? "0", to: String(asOf) },
    rows: String(rows),
    sha256,
    v: "1",
  };
  return { bytes, manifest: encodeManifest(manifest) };

  async function* hashed(): AsyncGenerator<Uint8Array> {
    for await (const chunk of whileHeld(content.bytes, signal)) {
      digest.update(chunk);
      bytes += BigInt(chunk.length);
      told(bytes);
      yield chunk;
    }
    sha256 = digest.digest("base64");
    // Before the file gets its name: of a closed month nobody is given another one than its entry names.
    if (signed !== undefined && sha256 !== signed) {
      throw new Error(`exports: ${name} is not what was signed with its month`);
    }
  }
}

/**
 * What has taken a file knows that it has: a folder where nothing was ever kept may be the one where the disk is to be
 * mounted, and what is written beneath that is seen by nobody afterwards.
 *
 * @throws ExportFilesError `exports-unavailable`
 */
async function assertThere(
  tx: Transaction,
  files: ExportFiles,
  signal: AbortSignal,
): Promise<void> {
  const done = await readNewestDone(tx);
  if (done !== undefined) await files.size(keptAt(done), signal);
}

async function instanceOf(tx: Transaction, log: string): Promise<Manifest["instance"]> {
  const [listed] = await listLogs(tx, log);
  if (listed === undefined) throw new Error("exports: of no log");
  const { platform, unique_id } = decodedAs("log", listed.genesis).body;
  return { platform, unique_id };
}

/** What failed so is tried again. Whatever else there is would be the same again, so that it is said. */
export function mayPass(error: unknown): boolean {
  if (error instanceof ExportFilesError) return error.code !== "no-room";
  if (error instanceof Problem) return error.status === UNAVAILABLE;
  return error instanceof ArchiveError || failureOf(error) === "later";
}

const UNAVAILABLE = 503;

function codeOf(error: unknown): string {
  const isKnown =
    error instanceof ExportFilesError || error instanceof ArchiveError || error instanceof Problem;
  if (isKnown) return error.code;
  return mayPass(error) ? "busy" : "internal";
}

/**
 * Said beside the work, on another connection, one word at a time: nobody waits for it while they hold one.
 */
function openProgress(sql: Sql, row: ExportRow) {
  let saying: Promise<void> | undefined;
  let next = performance.now() + PROGRESS_MS;
  return {
    told: (bytes: bigint): void => {
      if (performance.now() < next) return;
      next = performance.now() + PROGRESS_MS;
      saying ??= setProgress(sql, row, bytes)
        .catch(() => undefined)
        .then(() => {
          saying = undefined;
        });
    },
    settled: async (): Promise<void> => await saying,
  };
}
