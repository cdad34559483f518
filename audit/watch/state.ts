/** What a watcher has seen, in a file that is always whole, and the evidence of an alarm beside it. */
import { existsSync } from "node:fs";
import { z } from "zod";
import type { Verify } from "../../src/core/ed25519.ts";
import type { Vkey } from "../../src/core/note.ts";
import { decodeUtf8, encodeBase64, encodeHex, encodeUtf8 } from "../../src/core/text.ts";
import { openCheckpoint } from "../archive/checkpoints.ts";
import { writeText } from "../durable.ts";
import { CannotLook } from "../finding.ts";
import { readFile } from "../given.ts";
import { sha256 } from "../native.ts";
import { type Alarm, newestOf, type Sighting, type View } from "./compare.ts";

/** `at`: milliseconds since the epoch, of the last look that showed it. */
export interface Seen extends Sighting {
  at: number;
}

const File = z.strictObject({
  log: z.string(),
  seen: z.array(z.strictObject({ from: z.string(), at: z.iso.datetime(), note: z.string() })),
});

/**
 * Nothing where there is no file. One that cannot be read is never taken for none: whoever forgets what
 * was seen sees no rollback.
 */
export function readSeen(
  path: string,
  log: string,
  trust: { vkeys: readonly Vkey[]; verify: Verify },
): Seen[] {
  if (!existsSync(path)) return [];
  const file = File.safeParse(parse(decodeUtf8(readFile(path)) ?? "")).data;
  if (file === undefined) throw new CannotLook(`${path} holds no state of a watcher`);
  if (file.log !== log) throw new CannotLook(`${path} is about log ${file.log}`);
  return file.seen.map(({ at, from, note }) => {
    const checkpoint = openCheckpoint(encodeUtf8(note), trust);
    if (typeof checkpoint === "object") return { from, at: Date.parse(at), checkpoint };
    throw new CannotLook(`${path}: what ${from} showed is not under a given key: ${checkpoint}`);
  });
}

/**
 * After a look without an alarm. What the newest tree was compared with follows from it: of that the
 * largest of each address is kept. What no address of the log had tiles for is kept until one has.
 */
export function updated(seen: readonly Seen[], views: readonly View[], at: number): Seen[] {
  const newest = newestOf(views)?.checkpoint.size ?? -1n;
  const compared = new Map<string, Seen>();
  const ahead = new Map<string, Seen>();
  for (const one of [...seen, ...views.map((view) => ({ ...view, at }))]) {
    const { checkpoint, from } = one;
    if (checkpoint.size > newest) {
      ahead.set(`${checkpoint.size} ${encodeBase64(checkpoint.root)} ${from}`, one);
      continue;
    }
    const before = compared.get(from) ?? one;
    const larger = before.checkpoint.size > checkpoint.size ? before : one;
    compared.set(from, { ...larger, at: Math.max(before.at, one.at) });
  }
  return [...compared.values(), ...ahead.values()];
}

export function writeSeen(path: string, log: string, seen: readonly Seen[]): void {
  const lines = seen.map(({ at, checkpoint, from }) => ({
    from,
    at: new Date(at).toISOString(),
    note: checkpoint.note,
  }));
  writeText(path, `${JSON.stringify({ log, seen: lines }, undefined, 2)}\n`);
}

/** The file's name, made of what is in it: the same evidence is written once, and no other over it. */
export function writeEvidence(path: string, log: string, alarm: Alarm): string {
  const { code, detail, notes, proof } = alarm;
  const evidence = { alarm: code, detail, log, notes, proof: proof.map(encodeBase64) };
  const text = `${JSON.stringify(evidence, undefined, 2)}\n`;
  const name = `${path}.evidence-${encodeHex(sha256(encodeUtf8(text))).slice(0, 16)}.json`;
  writeText(name, text);
  return name;
}

function parse(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return undefined; // not JSON, so no state
  }
}
