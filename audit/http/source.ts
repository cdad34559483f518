/** A log as its server has it: C2SP tlog-tiles, and archived checkpoints where the server has them. */
import { parseCheckpoint } from "../../src/core/checkpoint.ts";
import { linesOf } from "../../src/core/note.ts";
import { decodeUtf8 } from "../../src/core/text.ts";
import { CannotLook } from "../finding.ts";
import { Recent } from "../recent.ts";
import { bytesMax, NOTE_BYTES_MAX, type Source } from "../source.ts";
import { type Ask, type AskOptions, asker } from "./ask.ts";

export interface RemoteLog {
  log: string;
  source: Source;
  /** Its checkpoint, as the server had it. */
  note: Uint8Array;
}

interface Place {
  log: string;
  /** Of the log's files, without a slash at its end. */
  root: string;
  /** Of what the server has beside the standard: which checkpoints there are. */
  checkpoints: string;
}

const PATH = /^(.*)\/logs\/([0-9a-f]{32})\/?$/;
const LOOPBACK = /^(?:localhost|127\.[0-9.]+|\[::1\])$/;
const SIZE = /^(?:0|[1-9][0-9]{0,18})$/;
const PAGE_BYTES_MAX = 1024 * 1024;
/** Two centuries of one each ten minutes: a server that lists more for a size that it made up never ends. */
const CHECKPOINTS_MAX = 10_000_000;
/** Bundles, and as many tiles, under way while one is judged. */
const AHEAD = 8;
/** Of 8 KiB each: those of bundles under way are asked for once more when they are compared. */
const TILES_KEPT = 64;

const ONLY_LATEST = "the server has no list of archived checkpoints: only its latest was verified";
const NOT_LISTED =
  "over HTTP nobody sees files that no checkpoint implies, nor what follows a bundle withheld with its tile";

/** Whether an archive's name is an address and no folder. */
export function isUrl(name: string): boolean {
  return /^https?:\/\//i.test(name);
}

/**
 * The log at `https://host/…/logs/LOG`, as of the checkpoint that its server has at this moment.
 *
 * @throws CannotLook on any other address, and where the server has no checkpoint there
 */
export async function httpSource(url: string, options: AskOptions): Promise<RemoteLog> {
  const place = placeOf(url);
  const ask = asker(options);
  const note = await ask(`${place.root}/checkpoint`, NOTE_BYTES_MAX);
  if (note === undefined) throw new CannotLook(`${url}: no such log, or not for this token`);
  const size = sizeSaid(note);
  if (size === undefined) throw new CannotLook(`${url}: what it calls its checkpoint is none`);
  const limits = new Set([NOT_LISTED]);
  const tiles = new Recent<Uint8Array | undefined>(TILES_KEPT);
  const get = (path: string): Promise<Uint8Array | undefined> =>
    ask(`${place.root}/${path}`, bytesMax(path));
  const source: Source = {
    ahead: AHEAD,
    limits,
    read: async (path) => {
      if (path === `checkpoint/${size}`) return note;
      if (path.startsWith("checkpoint/") || path.startsWith("tile/entries/")) return get(path);
      // Cosignatures come in the notes of the checkpoints, and nothing else has an address.
      return path.startsWith("tile/") ? tiles.get(path, () => get(path)) : undefined;
    },
    list: async function* (folder) {
      if (folder !== "checkpoint") return;
      yield `checkpoint/${size}`;
      for await (const archived of archivedSizes(ask, place, limits)) {
        if (archived >= size) return; // sealed meanwhile
        yield `checkpoint/${archived}`;
      }
    },
  };
  return { log: place.log, source, note };
}

/** One way to write a log's address, for all ways; throws `CannotLook` on any other. */
export function addressOf(url: string): { url: string; log: string } {
  const { log, root } = placeOf(url);
  return { url: root, log };
}

/** Whether a token for one of them may go to the other; throws `CannotLook` on what is no address. */
export function isSameServer(a: string, b: string): boolean {
  return read(a).origin === read(b).origin;
}

function placeOf(url: string): Place {
  const { hash, hostname, origin, password, pathname, protocol, search, username } = read(url);
  const [, prefix, log] = PATH.exec(pathname) ?? [];
  const bare = search + hash + username + password === "";
  if (prefix === undefined || log === undefined || !bare) {
    throw new CannotLook(`${url} is no address of a log: it ends in /logs/<id>`);
  }
  if (protocol !== "https:" && !LOOPBACK.test(hostname)) {
    throw new CannotLook(`${url}: https is needed, but for this machine itself`);
  }
  const api = `${origin}${prefix}`;
  return {
    log,
    root: `${api}/logs/${log}`,
    checkpoints: `${api}/v1/logs/${log}/checkpoints`,
  };
}

function read(url: string): URL {
  try {
    return new URL(url);
  } catch {
    throw new CannotLook(`${url} is no address`);
  }
}

/** What a note says before anybody has looked at its signatures: how much of the log to ask for. */
function sizeSaid(note: Uint8Array): bigint | undefined {
  const text = note.length > NOTE_BYTES_MAX ? undefined : decodeUtf8(note);
  const lines = text === undefined ? undefined : linesOf(text);
  return lines === undefined ? undefined : parseCheckpoint(lines.text)?.size;
}

async function* archivedSizes(
  ask: Ask,
  { checkpoints }: Place,
  limits: Set<string>,
): AsyncGenerator<bigint> {
  let last = -1n;
  let count = 0;
  for (let more = true; more; ) {
    const after = last < 0n ? "" : `?after=${last}`;
    const body = await ask(`${checkpoints}${after}`, PAGE_BYTES_MAX);
    if (body === undefined) {
      limits.add(ONLY_LATEST);
      return;
    }
    const page = readPage(body);
    if (page === undefined) throw new CannotLook(`${checkpoints}: no list of checkpoints`);
    for (const size of page.sizes) {
      if (size <= last) throw new CannotLook(`${checkpoints}: not in the order of sizes`);
      last = size;
      yield size;
    }
    count += page.sizes.length;
    more = page.more && page.sizes.length > 0;
    if (count > CHECKPOINTS_MAX) throw new CannotLook(`${checkpoints}: the list does not end`);
  }
}

/** `{ "sizes": ["…"], "next"?: … }` */
function readPage(body: Uint8Array): { sizes: bigint[]; more: boolean } | undefined {
  const answer = parse(decodeUtf8(body) ?? "");
  if (typeof answer !== "object" || answer === null || !("sizes" in answer)) return undefined;
  const { sizes } = answer;
  if (!Array.isArray(sizes)) return undefined;
  const valid = sizes.every((size) => typeof size === "string" && SIZE.test(size));
  return valid ? { sizes: sizes.map(BigInt), more: "next" in answer } : undefined;
}

function parse(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return undefined; // not JSON, so no list
  }
}
