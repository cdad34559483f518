/** What an auditor brings along: trusted keys, checkpoints that were kept, figures of the service. */
import { readFileSync } from "node:fs";
import type { Verify } from "../src/core/ed25519.ts";
import { parseVkey, type Vkey } from "../src/core/note.ts";
import { isOriginOf, type Kept, openCheckpoint } from "./archive/checkpoints.ts";
import { CannotLook } from "./finding.ts";
import { readUsageFile, type UsageFile } from "./tally/usage.ts";

/** A key's text, or a file with one on each line. */
export function readVkeys(textOrFile: string): Vkey[] {
  const given = parseVkey(textOrFile);
  if (given !== undefined) return [given];
  const lines = readFile(textOrFile)
    .toString("utf8")
    .split(/\r?\n/)
    .filter((line) => line !== "");
  return lines.map((line) => {
    const vkey = parseVkey(line);
    if (vkey === undefined) throw new CannotLook(`${textOrFile} holds a line that is no vkey`);
    return vkey;
  });
}

/** A note that no trusted key has signed contradicts nothing: it proves nothing either. */
export function readKept(
  name: string,
  trust: { vkeys: readonly Vkey[]; verify: Verify },
  logs: readonly string[],
): Kept {
  const checkpoint = openCheckpoint(readFile(name), trust);
  if (typeof checkpoint === "string") {
    throw new CannotLook(`${name} is no checkpoint under a given key: ${checkpoint}`);
  }
  const { origin } = checkpoint;
  if (!logs.some((log) => isOriginOf(log, origin)))
    throw new CannotLook(`${name} is about ${origin}`);
  return { name, checkpoint };
}

export function readUsage(name: string, logs: readonly string[]): UsageFile {
  const file = readUsageFile(name, readFile(name).toString("utf8"));
  if (file === undefined) {
    throw new CannotLook(`${name} is no answer of GET /v1/usage that this version can sum again`);
  }
  if (!logs.includes(file.log)) throw new CannotLook(`${name} is about log ${file.log}`);
  return file;
}

function readFile(path: string): Buffer {
  try {
    return readFileSync(path);
  } catch (error) {
    throw new CannotLook(`${path} cannot be read`, { cause: error });
  }
}
