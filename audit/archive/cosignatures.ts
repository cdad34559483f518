/** What witnesses say of checkpoints: by the auditor's own policy, and never by what an archive claims. */
import { isFuture } from "../../src/core/cosignature.ts";
import type { Verify } from "../../src/core/ed25519.ts";
import { linesOf, openNote, type Vkey } from "../../src/core/note.ts";
import { type Policy, reachesQuorum, witnessId } from "../../src/core/policy.ts";
import { decodeUtf8 } from "../../src/core/text.ts";
import type { Findings } from "../finding.ts";
import { NOTE_BYTES_MAX, type Source } from "../source.ts";
import type { OpenedCheckpoint } from "./checkpoints.ts";

/** A checkpoint's cosignatures that hold; `time` in seconds, as the witness says it. */
export interface Witnessed {
  size: bigint;
  by: { name: string; time: bigint }[];
  quorum: boolean;
}

interface CosignaturesOptions {
  policy: Policy;
  verify: Verify;
  /** Seconds since the epoch, by the auditor's clock. */
  now: bigint;
}

export class Cosignatures {
  readonly #source: Source;
  readonly #policy: Policy;
  readonly #verify: Verify;
  readonly #now: bigint;
  /** In sentences, what was passed over. */
  readonly limits = new Set<string>();

  constructor(source: Source, { now, policy, verify }: CosignaturesOptions) {
    this.#source = source;
    this.#policy = policy;
    this.#verify = verify;
    this.#now = now;
  }

  /** Those in the note itself, and those in files of their own. Ones that do not hold go to `findings`. */
  async of({ note, size }: OpenedCheckpoint, findings: Findings): Promise<Witnessed> {
    const inNote = linesOf(note);
    const by: Witnessed["by"] = [];
    const held = new Set<string>();
    for (const { name, vkey } of this.#policy.witnesses) {
      const path = `cosignature/${size}/${vkey.id}`;
      const file = await this.#source.read(path);
      const lines = [
        ...(inNote?.lines ?? [])
          .filter((line) => line.name === vkey.name && line.id === vkey.id)
          .map(({ line }) => ({ line, path: `checkpoint/${size}` })),
        ...(file === undefined ? [] : linesIn(file).map((line) => ({ line, path }))),
      ];
      for (const { line, path } of lines) {
        const time = this.#time(inNote?.text ?? "", line, vkey);
        if (time === undefined) {
          findings.add("cosignature-signature", { path }, `by ${name}, of size ${size}`);
        } else if (isFuture(time, this.#now)) {
          this.limits.add(`a cosignature by ${name} is from the future, and was not counted`);
        } else if (!held.has(witnessId(vkey))) {
          held.add(witnessId(vkey));
          by.push({ name, time });
        }
      }
    }
    return { size, by, quorum: reachesQuorum(this.#policy, held) };
  }

  /** When the witness says that it signed; undefined where it did not. */
  #time(text: string, line: string, vkey: Vkey): bigint | undefined {
    const opened = openNote(`${text}\n${line}`, [vkey], this.#verify);
    return "problem" in opened ? undefined : opened.signatures[0]?.time;
  }
}

/** Each with its newline. A file that is no text has one line that is none. */
function linesIn(file: Uint8Array): string[] {
  const text = file.length > NOTE_BYTES_MAX ? undefined : decodeUtf8(file);
  return text?.match(/[^\n]+\n?/g) ?? [""];
}
