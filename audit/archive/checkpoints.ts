/** The archived checkpoints: which of them hold, and whether the entries give their roots. */
import { type Checkpoint, parseCheckpoint } from "../../src/core/checkpoint.ts";
import type { Verify } from "../../src/core/ed25519.ts";
import type { Hash } from "../../src/core/hash.ts";
import { openNote, type Vkey } from "../../src/core/note.ts";
import { decodeUtf8, equal } from "../../src/core/text.ts";
import { CannotLook, type FindingCode, type Findings } from "../finding.ts";
import { NOTE_BYTES_MAX, type Source } from "../source.ts";
import type { OpenPiles } from "../tally/piles.ts";
import { blockOf, CheckpointSizes } from "./sizes.ts";

/** A checkpoint that the auditor has from elsewhere, and the file that it came in. */
export interface Kept {
  name: string;
  checkpoint: Checkpoint;
}

interface Trust {
  vkeys: readonly Vkey[];
  verify: Verify;
}

/** The checkpoints of the archive, each judged once, and with them those that somebody kept. */
export class Checkpoints {
  readonly #source: Source;
  readonly #trust: Trust;
  readonly #kept: readonly Kept[];
  readonly #findings: Findings;
  readonly #sizes: CheckpointSizes;
  #top: Checkpoint | undefined;
  compared = 0;

  constructor(
    source: Source,
    options: Trust & { kept: readonly Kept[]; openPiles: OpenPiles },
    findings: Findings,
  ) {
    this.#source = source;
    this.#trust = options;
    this.#kept = options.kept;
    this.#findings = findings;
    this.#sizes = new CheckpointSizes(options.openPiles);
  }

  /**
   * The largest checkpoint that holds; those above it are findings. Undefined when none holds and one
   * of them is worse than untrusted.
   */
  async largest(): Promise<Checkpoint | undefined> {
    await this.#sizes.load(this.#source);
    for (const size of this.#sizes.descending()) {
      this.#top = await this.#open(size);
      if (this.#top !== undefined) break;
    }
    for (const { checkpoint, name } of this.#kept) {
      const size = this.#top?.size ?? 0n;
      if (this.#top !== undefined && checkpoint.size <= size) continue;
      const detail = `it covers ${checkpoint.size} entries, the archive's largest checkpoint ${size}`;
      this.#findings.add("checkpoint-kept", { path: name }, detail);
    }
    const { byCode, count } = this.#findings;
    if (this.#top === undefined && count === (byCode.get("checkpoint-untrusted") ?? 0)) {
      throw new CannotLook("no checkpoint that a trusted key has signed");
    }
    if (this.#top?.size === 0n) throw new CannotLook("nothing verified: the log is empty");
    return this.#top;
  }

  sizesOf(block: bigint): bigint[] {
    const kept = this.#kept.map(({ checkpoint }) => checkpoint.size);
    return [...this.#sizes.ofBlock(block), ...kept.filter((size) => blockOf(size) === block)];
  }

  /** Of the sizes up to the largest: those above were judged before. */
  async compareRoot(size: bigint, root: Hash): Promise<void> {
    for (const { checkpoint, name } of this.#kept) {
      if (checkpoint.size !== size || equal(checkpoint.root, root)) continue;
      this.#findings.add("checkpoint-kept", { path: name }, "the entries give another root");
    }
    const top = this.#top;
    const checkpoint = size === top?.size ? top : await this.#open(size);
    if (checkpoint === undefined) return;
    this.compared += 1;
    if (equal(checkpoint.root, root)) return;
    const path = `checkpoint/${size}`;
    this.#findings.add("checkpoint-root", { path }, "the entries give another root");
  }

  async #open(size: bigint): Promise<Checkpoint | undefined> {
    const path = `checkpoint/${size}`;
    const file = await this.#source.read(path);
    if (file === undefined) return undefined; // it was there a moment ago
    const opened = openCheckpoint(file, this.#trust);
    if (typeof opened !== "string" && opened.size === size) return opened;
    const code = typeof opened === "string" ? opened : "checkpoint-size";
    this.#findings.add(code, { path }, `checkpoint of size ${size}`);
    return undefined;
  }
}

/** A checkpoint's file, or the rule that it breaks. */
export function openCheckpoint(
  file: Uint8Array,
  { vkeys, verify }: Trust,
): Checkpoint | FindingCode {
  const text = file.length > NOTE_BYTES_MAX ? undefined : decodeUtf8(file);
  const note = text === undefined ? undefined : openNote(text, vkeys, verify);
  if (note === undefined) return "checkpoint-malformed";
  if ("problem" in note) {
    if (note.problem === "unknown-key") return "checkpoint-untrusted";
    return note.problem === "malformed" ? "checkpoint-malformed" : "checkpoint-signature";
  }
  const checkpoint = parseCheckpoint(note.text);
  if (checkpoint === undefined) return "checkpoint-malformed";
  return note.verified.includes(checkpoint.origin) ? checkpoint : "checkpoint-origin";
}

/** Whether a checkpoint's origin, which is also its key's name, is the log's. */
export function isOriginOf(log: string, name: string): boolean {
  return name.endsWith(`/${log}`);
}
