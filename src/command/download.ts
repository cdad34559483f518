/** A made export, fetched: what is there already is not fetched again, and a connection that breaks is another one. */
import { setTimeout as delay } from "node:timers/promises";
import { Manifest } from "../core/export/manifest.ts";
import { parseCanonical } from "../core/json.ts";
import { decodeBase64, encodeHex, encodeUtf8 } from "../core/text.ts";
import { type Api, ask, open } from "./api.ts";
import { CommandError } from "./failure.ts";

const ATTEMPTS = 5;
const PAUSE_MS = 500;

export function exportPath({ log, id }: { log: string; id: string }): string {
  return `/v1/exports/${encodeURIComponent(log)}/${encodeURIComponent(id)}`;
}

export interface Described {
  manifest: Manifest;
  /** To the byte, and what is signed of it. */
  json: string;
  note: string;
}

/** @throws ApiError `export-failed` with the reason */
export async function describe(api: Api, path: string): Promise<Described> {
  const json = await ask(api, "GET", `${path}/manifest`, { accept: "*/*" });
  const note = await ask(api, "GET", `${path}/manifest.note`, { accept: "*/*" });
  return { manifest: Manifest.parse(parseCanonical(encodeUtf8(json))), json, note };
}

/** @throws CommandError `not-whole` */
export function assertWhole(sha256: string, manifest: Manifest): void {
  if (sha256 === manifest.sha256) return;
  throw new CommandError("not-whole", "what came is not the file of the manifest: ask again");
}

/**
 * A file's name says what is in it, and not of which log.
 *
 * @param there the manifest that lies where the file is to go; none if it is empty
 * @throws CommandError `unwritable` where it is another log's
 */
export function assertSameLog(there: string, { file, log }: { file: string; log: string }): void {
  const found = logIn(there);
  if (found === undefined || found === log) return;
  throw new CommandError("unwritable", `${file} there is of another log: choose another place`);
}

/** Undefined for what is no manifest: it can be replaced. */
function logIn(json: string): string | undefined {
  try {
    return Manifest.parse(parseCanonical(encodeUtf8(json))).log;
  } catch {
    return undefined;
  }
}

/**
 * The file's bytes from … on, and never more than the manifest says.
 *
 * @param path of the export
 * @throws ApiError for an answer outside 2xx; CommandError `unreachable` after five attempts that brought
 *   nothing, `not-whole` where somebody answers with another file
 */
export async function* download(
  api: Api,
  path: string,
  { bytes, sha256 }: Pick<Manifest, "bytes" | "sha256">,
  from = 0,
): AsyncGenerator<Uint8Array> {
  const etag = `"${encodeHex(decodeBase64(sha256) ?? new Uint8Array())}"`;
  const end = Number(bytes);
  for (let at = from, left = ATTEMPTS; at < end; ) {
    const before = at;
    let cut: unknown = new CommandError("unreachable", "answers end before the file does");
    try {
      const range = { range: `bytes=${at}-`, "if-range": etag };
      const response = await open(api, "GET", `${path}/file`, { accept: "*/*", headers: range });
      if (at > 0 && response.status !== 206) throw new CommandError("not-whole", "another file");
      for await (const chunk of response.body ?? []) {
        at += chunk.length;
        if (at > end) throw new CommandError("not-whole", "more comes than the manifest says");
        yield chunk;
      }
    } catch (error) {
      if (!isCut(error)) throw error;
      cut = error;
    }
    if (at === end) return;
    left = at > before ? ATTEMPTS : left - 1;
    if (left === 0) throw cut;
    await delay(PAUSE_MS);
  }
}

/** Nobody answers, or the answer ends early (a TypeError of fetch). */
function isCut(error: unknown): boolean {
  return error instanceof CommandError ? error.code === "unreachable" : error instanceof TypeError;
}
