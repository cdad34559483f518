/** What every address that a log, or a witness of it, is shown at shows at this moment. */
import type { Verify } from "../../src/core/ed25519.ts";
import type { Sha256 } from "../../src/core/hash.ts";
import type { Vkey } from "../../src/core/note.ts";
import { encodeHex, encodeUtf8 } from "../../src/core/text.ts";
import { openCheckpoint } from "../archive/checkpoints.ts";
import { CannotLook } from "../finding.ts";
import { type AskOptions, asker } from "../http/ask.ts";
import { httpSource, isSameServer } from "../http/source.ts";
import { NOTE_BYTES_MAX, type Source } from "../source.ts";
import type { Missed, View } from "./compare.ts";

export interface AskingOptions extends AskOptions {
  /** Addresses of the log, each once and as `addressOf` writes them. */
  urls: readonly string[];
  /** Witnesses' monitoring addresses, without what follows for a log. */
  monitors: readonly string[];
  log: string;
  origin: string;
  vkeys: readonly Vkey[];
  hash: Sha256;
  verify: Verify;
}

/** What cannot be reached, or shows nothing that the log has signed, is missed, and accuses nobody. */
export async function askAll(options: AskingOptions): Promise<{ views: View[]; missed: Missed[] }> {
  const { monitors, urls } = options;
  const shown = await Promise.all([
    ...urls.map((url) => tried(url, () => askLog(url, options))),
    ...monitors.map((url) => tried(url, () => askWitness(url, options))),
  ]);
  return {
    views: shown.filter((what) => "checkpoint" in what),
    missed: shown.filter((what) => "reason" in what),
  };
}

async function askLog(url: string, options: AskingOptions): Promise<View> {
  const { note, source } = await httpSource(url, { ...options, token: tokenFor(url, options) });
  return open(url, note, source, options);
}

/** A token is for the server of the first address: another one, or a witness, could use it there. */
function tokenFor(url: string, { token, urls }: AskingOptions): string | undefined {
  return isSameServer(url, urls[0] ?? "") ? token : undefined;
}

/** C2SP tlog-witness: `<monitoring>/<hex SHA-256 of the origin>/checkpoint`. */
async function askWitness(url: string, options: AskingOptions): Promise<View> {
  const name = encodeHex(options.hash(encodeUtf8(options.origin)));
  const ask = asker({ ...options, token: undefined });
  const note = await ask(`${url}/${name}/checkpoint`, NOTE_BYTES_MAX);
  if (note === undefined) throw new CannotLook("it has cosigned nothing of this log");
  return open(url, note, undefined, options);
}

function open(
  from: string,
  note: Uint8Array,
  source: Source | undefined,
  { verify, vkeys }: AskingOptions,
): View {
  const checkpoint = openCheckpoint(note, { vkeys, verify });
  if (typeof checkpoint === "object") return { from, checkpoint, source };
  if (checkpoint === "checkpoint-untrusted") {
    throw new CannotLook("its checkpoint is by no given key: was the log's key changed?");
  }
  // Whoever answers here may have made it up, so it is nothing that the log has said.
  throw new CannotLook(`it shows no checkpoint that a given key has signed: ${checkpoint}`);
}

async function tried(from: string, askFor: () => Promise<View>): Promise<View | Missed> {
  try {
    return await askFor();
  } catch (error) {
    if (!(error instanceof CannotLook)) throw error;
    return { from, reason: error.message };
  }
}
