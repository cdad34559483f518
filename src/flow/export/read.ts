/** What became of exports: where each stands, its manifest under the log's keys, and its bytes. */
import { Manifest, Parameters } from "../../core/export/manifest.ts";
import type { ExportName, Format } from "../../core/export/tables.ts";
import { parseCanonical } from "../../core/json.ts";
import { Problem } from "../../core/problem.ts";
import { decodeBase64, encodeHex, encodeUtf8 } from "../../core/text.ts";
import type { Sql } from "../../store/connect.ts";
import { type ByteRange, type ExportFiles, ExportFilesError } from "../../store/export-files.ts";
import {
  type ExportRow,
  isOvertaken,
  listExports,
  readExport,
  setPending,
} from "../../store/exports.ts";
import type { Keyring } from "../key/keyring.ts";
import { withheld } from "./hashed.ts";
import { keptAt } from "./kept.ts";
import { isSigned, signManifest } from "./note.ts";

export interface OfExport {
  log: string;
  id: string;
}

export interface Exports {
  /** As writer: what was asked for a moment ago is there. */
  sql: Sql;
  files: ExportFiles;
  keyring: Keyring;
}

export interface ShownExport extends OfExport {
  /** What it is called where it is kept by whoever asked for it. */
  file: string;
  name: ExportName;
  format: Format;
  parameters: Parameters;
  as_of: string;
  asked_at: string;
  state: ExportRow["state"];
  /** Written so far; all of them, where it is done. */
  bytes: string;
  ended_at?: string;
  /** Why it failed: a code. */
  error?: string;
}

export function shown(row: ExportRow): ShownExport {
  const { ended_at, error, log, id, state } = row;
  return {
    ...{ log, id, file: fileName(row), state },
    ...askedFor(row),
    as_of: String(row.as_of),
    asked_at: row.asked_at.toISOString(),
    bytes: String(row.bytes),
    ...(ended_at !== null && { ended_at: ended_at.toISOString() }),
    ...(error !== null && { error }),
  };
}

export function askedFor(row: Pick<ExportRow, "name" | "format" | "parameters">) {
  return {
    name: row.name as ExportName,
    format: row.format as Format,
    parameters: Parameters.parse(JSON.parse(row.parameters)),
  };
}

/** Says what is in it and as of what: as `portal-2026-10-8412.csv`. */
export function fileName(row: Pick<ExportRow, "name" | "format" | "parameters" | "as_of">): string {
  const { name, format, parameters } = askedFor(row);
  const { credit_minutes, focus_version, from, month, names, prices_sha256 } = parameters;
  const parts = [
    ...[name, month?.slice(0, "YYYY-MM".length), from && `from-${from}`, row.as_of],
    ...[names && "names", credit_minutes && `credits-${credit_minutes}`],
    ...[focus_version && `v${focus_version}`, name === "focus" ? kindOf(prices_sha256) : undefined],
  ];
  return `${parts.filter((part) => part !== undefined).join("-")}.${format}`;
}

/** Of a FOCUS file: with which price list; one without money does not conform to the specification. */
function kindOf(prices: string | undefined): string {
  if (prices === undefined) return "quantities-not-conformant";
  const list = encodeHex(decodeBase64(prices) ?? new Uint8Array());
  return `priced-${list.slice(0, LIST_DIGITS)}`;
}

/** Hexadecimal, of a price list's hash: enough to tell those of one house apart. */
const LIST_DIGITS = 8;

const PAGE = 500;
/** Above every number that a row can have. */
const ANY_NUMBER = 2n ** 63n - 1n;

export interface ExportPage {
  log: string;
  exports: ShownExport[];
  /** Where there is more, the `before` of the next page. */
  next?: string;
}

/** Newest first. */
export async function showExports(
  { sql }: Exports,
  log: string,
  before?: bigint,
): Promise<ExportPage> {
  const rows = await listExports(sql, log, { below: before ?? ANY_NUMBER, limit: PAGE });
  const last = rows.length === PAGE ? rows.at(-1) : undefined;
  return { log, exports: rows.map(shown), ...(last && { next: String(last.number) }) };
}

/** @throws Problem `not-found` */
export async function showExport(exports: Exports, of: OfExport): Promise<ShownExport> {
  return shown(await found(exports, of));
}

/**
 * Its canonical JSON, to the byte. Of a manifest that is not what was signed when the file was made nothing is
 * given, nor is the file: it is made again.
 *
 * @throws Problem `not-found`; `export-pending`; where it failed one of `REASONS`, or `export-failed`;
 *   `exports-unavailable`, `busy`
 */
export async function manifestJson(exports: Exports, of: OfExport): Promise<string> {
  return await signedManifest(exports, await found(exports, of));
}

/** @throws Problem as `manifestJson`, and `signer-unavailable` */
export async function manifestNote(exports: Exports, of: OfExport): Promise<string> {
  const row = await found(exports, of);
  return await signManifest(exports.keyring, row, await signedManifest(exports, row));
}

async function signedManifest(exports: Exports, row: ExportRow): Promise<string> {
  const json = manifestIn(row);
  if (await isSigned(exports, row, json).catch(unavailable)) return json;
  await setPending(exports.sql, row);
  throw new Problem("export-pending");
}

export interface ExportFile {
  /** What whoever asked for it may call it. */
  name: string;
  format: Format;
  bytes: number;
  /** Base64. */
  sha256: string;
  /** Of the whole file the end is given once all of it has this hash; of a part of it nobody can say that. */
  read: (range: ByteRange) => AsyncGenerator<Uint8Array>;
}

/** @throws Problem as `manifestJson` */
export async function exportFile(exports: Exports, of: OfExport): Promise<ExportFile> {
  const row = await found(exports, of);
  manifestIn(row);
  const { files, sql } = exports;
  if (await isOvertaken(sql, row)) throw new Problem("not-found");
  const size = await files.size(keptAt(row)).catch(unavailable);
  // Its time is over: the file goes first, its note behind it, and then its row.
  if (size === undefined) throw new Problem("not-found");
  const { bytes, format, sha256 } = parseManifest(await signedManifest(exports, row));
  if (size !== Number(bytes)) throw await damaged(exports, row);
  const judge = async (is: string): Promise<void> => {
    if (is !== sha256) throw await damaged(exports, row);
  };
  const read = (range: ByteRange): AsyncGenerator<Uint8Array> => {
    const chunks = files.read(keptAt(row), range);
    const isWhole = range.from === 0 && range.to === size;
    return isWhole ? withheld(chunks, judge) : chunks;
  };
  return { name: fileName(row), format, bytes: size, sha256, read };
}

async function damaged({ sql }: Exports, row: ExportRow): Promise<Error> {
  await setPending(sql, row);
  return new Error(`exports: ${keptAt(row)} is not what was made, and is made again`);
}

export function parseManifest(json: string): Manifest {
  return Manifest.parse(parseCanonical(encodeUtf8(json)));
}

/** Why one was not made that whoever asked for it can mend: answered as it is. */
export const REASONS = ["no-account", "no-price", "other-prices"] as const;

function manifestIn({ error, manifest }: ExportRow): string {
  if (error !== null) {
    throw new Problem(REASONS.find((code) => code === error) ?? "export-failed", { error });
  }
  if (manifest === null) throw new Problem("export-pending");
  return manifest;
}

async function found({ sql }: Exports, of: OfExport): Promise<ExportRow> {
  const row = await readExport(sql, of);
  if (row === undefined) throw new Problem("not-found");
  return row;
}

/** @throws Problem `exports-unavailable` for what may pass, and else the error itself */
export function unavailable(error: unknown): never {
  if (!(error instanceof ExportFilesError)) throw error;
  const problem = new Problem("exports-unavailable");
  problem.cause = error;
  throw problem;
}
