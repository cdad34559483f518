/** One look at every address that a log, or a witness of it, is shown at. */
import type { Verify } from "../../src/core/ed25519.ts";
import type { Sha256 } from "../../src/core/hash.ts";
import type { Vkey } from "../../src/core/note.ts";
import { decodeUtf8, encodeHex, encodeUtf8 } from "../../src/core/text.ts";
import { openCheckpoint } from "../archive/checkpoints.ts";
import { CannotLook } from "../finding.ts";
import { type AskOptions, asker } from "../http/ask.ts";
import { httpSource } from "../http/source.ts";
import { NOTE_BYTES_MAX, type Source } from "../source.ts";
import { type Alarm, compare, type Sighting, type View } from "./compare.ts";

export interface LookOptions extends AskOptions {
  /** Addresses of the log, https://HOST/logs/LOG. */
  urls: readonly string[];
  /** Witnesses' monitoring addresses, without what follows for a log. */
  monitors: readonly string[];
  log: string;
  origin: string;
  vkeys: readonly Vkey[];
  hash: Sha256;
  verify: Verify;
}

/** An address that showed nothing that could be looked at, and why. */
export interface Missed {
  from: string;
  reason: string;
}

export interface Look {
  views: View[];
  missed: Missed[];
  alarm: Alarm | undefined;
}

/** What cannot be reached is missed, and no alarm; what it showed before is compared all the same. */
export async function look(seen: readonly Sighting[], options: LookOptions): Promise<Look> {
  const { hash, monitors, urls } = options;
  const shown = await Promise.all([
    ...urls.map((url) => tried(url, () => lookAtLog(url, options))),
    ...monitors.map((url) => tried(url, () => lookAtWitness(url, options))),
  ]);
  const views = shown.filter((what) => "checkpoint" in what);
  const missed = shown.filter((what) => "reason" in what);
  const alarm = shown.find((what) => "code" in what);
  if (alarm !== undefined) return { views, missed, alarm };
  try {
    return { views, missed, alarm: await compare(views, seen, hash) };
  } catch (error) {
    if (!(error instanceof CannotLook)) throw error;
    // Tiles that did not come: nothing was compared, so nothing was seen.
    return {
      views: [],
      missed: [...missed, { from: "tiles", reason: error.message }],
      alarm: undefined,
    };
  }
}

async function lookAtLog(url: string, options: LookOptions): Promise<View | Missed | Alarm> {
  const { log, note, source } = await httpSource(url, {
    ...options,
    token: tokenFor(url, options),
  });
  if (log !== options.log) throw new CannotLook(`${url} is no address of log ${options.log}`);
  return open(url, note, source, options);
}

/** A token is for the server of the first address: another one, or a witness, could use it there. */
function tokenFor(url: string, { token, urls }: LookOptions): string | undefined {
  return serverOf(url) === serverOf(urls[0] ?? "") ? token : undefined;
}

/** As it is written: of two ways to write one server, the second gets no token. */
function serverOf(url: string): string | undefined {
  return /^https?:\/\/[^/\\?#]+/i.exec(url)?.[0];
}

/** C2SP tlog-witness: `<monitoring>/<hex SHA-256 of the origin>/checkpoint`. */
async function lookAtWitness(url: string, options: LookOptions): Promise<View | Missed | Alarm> {
  const name = encodeHex(options.hash(encodeUtf8(options.origin)));
  const ask = asker({ ...options, token: undefined });
  const note = await ask(`${url.replace(/\/$/, "")}/${name}/checkpoint`, NOTE_BYTES_MAX);
  if (note === undefined) throw new CannotLook("it has cosigned nothing of this log");
  return open(url, note, undefined, options);
}

function open(
  from: string,
  note: Uint8Array,
  source: Source | undefined,
  { verify, vkeys }: LookOptions,
): View | Missed | Alarm {
  const checkpoint = openCheckpoint(note, { vkeys, verify });
  if (typeof checkpoint === "object") return { from, checkpoint, source };
  if (checkpoint === "checkpoint-untrusted") {
    return { from, reason: "its checkpoint is by no given key: was the log's key changed?" };
  }
  const notes = [{ from, note: decodeUtf8(note) ?? "" }];
  return { code: checkpoint, detail: `${from}: its checkpoint does not hold`, notes, proof: [] };
}

async function tried(
  from: string,
  lookAt: () => Promise<View | Missed | Alarm>,
): Promise<View | Missed | Alarm> {
  try {
    return await lookAt();
  } catch (error) {
    if (!(error instanceof CannotLook)) throw error;
    return { from, reason: error.message };
  }
}
