/** The archived checkpoints: which of them hold, and whether the entries give their roots. */
import { type Checkpoint, parseCheckpoint } from "../../src/core/checkpoint.ts";
import type { Verify } from "../../src/core/ed25519.ts";
import type { Hash } from "../../src/core/hash.ts";
import { openNote, type Vkey } from "../../src/core/note.ts";
import { decodeUtf8, equal } from "../../src/core/text.ts";
import { CannotLook, type FindingCode, type Findings } from "../finding.ts";
import type { Source } from "../source.ts";
import type { OpenPiles } from "../tally/piles.ts";
import { CheckpointSizes } from "./sizes.ts";

/** The checkpoints of the archive, each judged once. */
export class Checkpoints {
  readonly #source: Source;
  readonly #vkeys: readonly Vkey[];
  readonly #verify: Verify;
  readonly #findings: Findings;
  readonly #sizes: CheckpointSizes;
  #top: Checkpoint | undefined;
  compared = 0;

  constructor(
    source: Source,
    vkeys: readonly Vkey[],
    { openPiles, verify }: { openPiles: OpenPiles; verify: Verify },
    findings: Findings,
  ) {
    this.#source = source;
    this.#vkeys = vkeys;
    this.#verify = verify;
    this.#findings = findings;
    this.#sizes = new CheckpointSizes(openPiles);
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
    const { byCode, count } = this.#findings;
    if (this.#top === undefined && count === (byCode.get("checkpoint-untrusted") ?? 0)) {
      throw new CannotLook("no checkpoint that a trusted key has signed");
    }
    if (this.#top?.size === 0n) throw new CannotLook("nothing verified: the log is empty");
    return this.#top;
  }

  sizesOf(block: bigint): bigint[] {
    return this.#sizes.ofBlock(block);
  }

  /** Of the sizes up to the largest: those above were judged before. */
  async compareRoot(size: bigint, root: Hash): Promise<void> {
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
    const checkpoint = openCheckpoint(file, size, this.#vkeys, this.#verify);
    if (typeof checkpoint !== "string") return checkpoint;
    this.#findings.add(checkpoint, { path }, `checkpoint of size ${size}`);
    return undefined;
  }
}

/** The file `checkpoint/<size>`, or the rule that it breaks. */
function openCheckpoint(
  file: Uint8Array,
  size: bigint,
  vkeys: readonly Vkey[],
  verify: Verify,
): Checkpoint | FindingCode {
  const text = decodeUtf8(file);
  const note = text === undefined ? undefined : openNote(text, vkeys, verify);
  if (note === undefined) return "checkpoint-malformed";
  if ("problem" in note) {
    if (note.problem === "unknown-key") return "checkpoint-untrusted";
    return note.problem === "malformed" ? "checkpoint-malformed" : "checkpoint-signature";
  }
  const checkpoint = parseCheckpoint(note.text);
  if (checkpoint === undefined) return "checkpoint-malformed";
  if (!note.verified.includes(checkpoint.origin)) return "checkpoint-origin";
  return checkpoint.size === size ? checkpoint : "checkpoint-size";
}
