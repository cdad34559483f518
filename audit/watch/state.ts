/** What a watcher has seen, in a file that is always whole, and the evidence of an alarm beside it. */
import { existsSync } from "node:fs";
import { z } from "zod";
import type { Verify } from "../../src/core/ed25519.ts";
import type { Vkey } from "../../src/core/note.ts";
import { decodeUtf8, encodeBase64, encodeHex, encodeUtf8 } from "../../src/core/text.ts";
import { openCheckpoint } from "../archive/checkpoints.ts";
import { writeText } from "../durable.ts";
import { exclusively } from "../exclusive.ts";
import { CannotLook } from "../finding.ts";
import { readFile } from "../given.ts";
import { sha256 } from "../native.ts";
import type { Alarm } from "./compare.ts";
import type { Seen } from "./seen.ts";

const File = z.strictObject({
  log: z.string(),
  seen: z.array(
    z.strictObject({
      from: z.string(),
      since: z.iso.datetime(),
      at: z.iso.datetime(),
      note: z.string(),
    }),
  ),
});

export class WatchState {
  readonly #path: string;
  readonly #log: string;
  readonly #trust: { vkeys: readonly Vkey[]; verify: Verify };

  constructor(path: string, log: string, trust: { vkeys: readonly Vkey[]; verify: Verify }) {
    this.#path = path;
    this.#log = log;
    this.#trust = trust;
  }

  /**
   * Nothing where there is no file. One that cannot be read is never taken for none: whoever forgets
   * what was seen sees no rollback.
   */
  read(): Seen[] {
    const path = this.#path;
    if (!existsSync(path)) return [];
    const file = File.safeParse(parse(decodeUtf8(readFile(path)) ?? "")).data;
    if (file === undefined) throw new CannotLook(`${path} holds no state of a watcher`);
    if (file.log !== this.#log) throw new CannotLook(`${path} is about log ${file.log}`);
    return file.seen.map(({ at, from, note, since }) => {
      const checkpoint = openCheckpoint(encodeUtf8(note), this.#trust);
      if (typeof checkpoint === "object") {
        return { from, since: Date.parse(since), at: Date.parse(at), checkpoint };
      }
      throw new CannotLook(`${path}: what ${from} showed is not under a given key: ${checkpoint}`);
    });
  }

  /**
   * Made of what the file holds at that moment, and by one process at a time: none can write over what
   * another has seen since. Durable when it resolves; throws `CannotLook`.
   */
  async change(next: (held: Seen[]) => Seen[]): Promise<Seen[]> {
    return await exclusively(this.#path, () => {
      const seen = next(this.read());
      const lines = seen.map(({ at, checkpoint, from, since }) => ({
        from,
        since: new Date(since).toISOString(),
        at: new Date(at).toISOString(),
        note: checkpoint.note,
      }));
      const file = { log: this.#log, seen: lines };
      writeText(this.#path, `${JSON.stringify(file, undefined, 2)}\n`);
      return seen;
    });
  }
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
