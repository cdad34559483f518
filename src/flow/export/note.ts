/**
 * Whose word the manifest of an export is. Its row is a working table, which whoever has the service's database
 * password can write: what making computed is signed when it is made, the note is kept beside the file, and none is
 * given of another manifest than that. Nor is that manifest itself, or the file.
 */
import { exportText, Manifest } from "../../core/export/manifest.ts";
import { canonical, parseCanonical } from "../../core/json.ts";
import { openNote, parseVkey } from "../../core/note.ts";
import { decodeUtf8, encodeUtf8 } from "../../core/text.ts";
import type { Archive } from "../../store/archive.ts";
import type { Sql } from "../../store/connect.ts";
import type { ExportFiles } from "../../store/export-files.ts";
import { type Covering, type ExportRow, readCovering } from "../../store/exports.ts";
import type { Keyring } from "../key/keyring.ts";
import { signText } from "../key/sign-text.ts";
import { genuineCheckpoint } from "../log/genuine.ts";
import { verifySignature } from "../report/signature.ts";
import { noteAt } from "./kept.ts";

export interface Notary {
  keyring: Pick<Keyring, "signerFor" | "standing">;
  archive: Pick<Archive, "get">;
}

/** Of a text of three lines and a line for each key. */
const NOTE_BYTES_MAX = 65_536;

/**
 * A checkpoint that the archive has under a key of the log, over all that the export is of. The row says only where
 * to look; where retention has removed that one since, the newest is as good.
 *
 * @throws Error where there is none; as `genuineCheckpoint`
 */
export async function coveringOf(
  { archive, keyring }: Notary,
  sql: Sql,
  { as_of, checkpoint_size, log }: ExportRow,
): Promise<Covering> {
  const proven = { archive, signerFor: keyring.signerFor };
  const newest = await readCovering(sql, log);
  for (const size of [checkpoint_size, newest?.size ?? 0n]) {
    if (size < as_of) continue;
    const genuine = await genuineCheckpoint(proven, sql, log, size);
    if (genuine !== undefined) return genuine;
  }
  throw new Error("exports: no archived checkpoint covers it");
}

/** @throws Problem as `signText` */
export async function signManifest(
  keyring: Pick<Keyring, "standing">,
  { log, name }: Pick<ExportRow, "log" | "name">,
  json: string,
): Promise<string> {
  return await signText(keyring, log, (origin) => exportText(origin, name, json));
}

/**
 * Whether a row's manifest is what was signed when the file was made. Where it is another one, or no note is there, as
 * of what a version made that kept none, it has to be made again.
 *
 * @throws ExportFilesError `exports-unavailable`; Problem `busy`
 */
export async function isSigned(
  { files, keyring }: { files: ExportFiles; keyring: Pick<Keyring, "standing"> },
  row: ExportRow,
  json: string,
): Promise<boolean> {
  const [keys] = await keyring.standing([row.log]);
  const kept = await readNote(files, row);
  if (keys === undefined || kept === undefined || !isOf(row, json)) return false;
  // The word of a key that was retired since stands, and is said again by those that followed it.
  const own = keys.checkpoint.filter(({ state }) => state !== "held");
  const vkeys = own.flatMap(({ vkey }) => parseVkey(vkey) ?? []);
  const opened = openNote(kept, vkeys, verifySignature);
  return !("problem" in opened) && opened.text === exportText(keys.origin, row.name, json);
}

/** A row that says something else than its manifest would give the file another name. */
function isOf({ as_of, format, log, name, parameters }: ExportRow, json: string): boolean {
  const manifest = Manifest.safeParse(parseCanonical(encodeUtf8(json))).data;
  return (
    manifest?.as_of === String(as_of) &&
    manifest.format === format &&
    manifest.log === log &&
    manifest.name === name &&
    canonical(manifest.parameters) === parameters
  );
}

async function readNote(files: ExportFiles, row: ExportRow): Promise<string | undefined> {
  const path = noteAt(row);
  const size = await files.size(path);
  if (size === undefined || size > NOTE_BYTES_MAX) return undefined;
  const chunks: Uint8Array[] = [];
  for await (const chunk of files.read(path, { from: 0, to: size })) chunks.push(chunk);
  return decodeUtf8(Buffer.concat(chunks));
}
