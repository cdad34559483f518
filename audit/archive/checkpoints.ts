/** The archived checkpoints: which of them hold, and whether the entries give their roots. */
import { type Checkpoint, parseCheckpoint } from "../../src/core/checkpoint.ts";
import type { Verify } from "../../src/core/ed25519.ts";
import type { EntryOf } from "../../src/core/entry.ts";
import type { Hash } from "../../src/core/hash.ts";
import { openNote, type Vkey } from "../../src/core/note.ts";
import type { Policy } from "../../src/core/policy.ts";
import { decodeUtf8, equal } from "../../src/core/text.ts";
import { CannotLook, type FindingCode, type Findings } from "../finding.ts";
import { NOTE_BYTES_MAX, type Source } from "../source.ts";
import type { OpenPiles } from "../tally/piles.ts";
import { Cosignatures, type Witnessed } from "./cosignatures.ts";
import type { LogKeys } from "./log-keys.ts";
import { blockOf, CheckpointSizes } from "./sizes.ts";

/** A checkpoint that the auditor has from elsewhere, and the file that it came in. */
export interface Kept {
  name: string;
  checkpoint: Checkpoint;
}

/** A checkpoint, the note that it came in, and those of the trusted keys that signed it. */
export interface OpenedCheckpoint extends Checkpoint {
  note: string;
  signers: readonly Vkey[];
}

interface Trust {
  vkeys: readonly Vkey[];
  verify: Verify;
}

interface CheckpointsOptions {
  keys: LogKeys;
  verify: Verify;
  kept: readonly Kept[];
  openPiles: OpenPiles;
  policy: Policy | undefined;
}

/** The checkpoints of the archive, each judged once, and with them those that somebody kept. */
export class Checkpoints {
  readonly #source: Source;
  readonly #options: CheckpointsOptions;
  readonly #findings: Findings;
  readonly #sizes: CheckpointSizes;
  readonly #cosignatures: Cosignatures | undefined;
  #top: OpenedCheckpoint | undefined;
  compared = 0;

  constructor(source: Source, options: CheckpointsOptions, findings: Findings) {
    const { openPiles, policy, verify } = options;
    this.#source = source;
    this.#options = options;
    this.#findings = findings;
    this.#sizes = new CheckpointSizes(openPiles);
    this.#cosignatures = policy && new Cosignatures(source, policy, verify);
  }

  /**
   * The largest checkpoint that holds; those above it are findings. Undefined when none holds and one
   * of them is worse than untrusted.
   */
  async largest(): Promise<OpenedCheckpoint | undefined> {
    await this.#sizes.load(this.#source);
    for (const size of this.#sizes.descending()) {
      this.#top = await this.#open(size);
      if (this.#top !== undefined) break;
    }
    for (const { checkpoint, name } of this.#options.kept) {
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

  /** The largest checkpoint that reaches the policy's quorum; undefined where none does, or none is asked for. */
  async witnessed(): Promise<Witnessed | undefined> {
    const [cosignatures, top] = [this.#cosignatures, this.#top];
    if (cosignatures === undefined || top === undefined) return undefined;
    for (const size of this.#sizes.descending()) {
      if (size > top.size) continue;
      const checkpoint = size === top.size ? top : await this.#read(size);
      if (typeof checkpoint !== "object" || checkpoint.size !== size) continue;
      const witnessed = await cosignatures.of(checkpoint);
      if (witnessed.quorum) return witnessed;
    }
    this.#findings.add(
      "quorum-missing",
      { path: `checkpoint/${top.size}` },
      "nor has one below it",
    );
    return undefined;
  }

  sizesOf(block: bigint): bigint[] {
    const kept = this.#options.kept.map(({ checkpoint }) => checkpoint.size);
    return [...this.#sizes.ofBlock(block), ...kept.filter((size) => blockOf(size) === block)];
  }

  /** An entry that changes the log's keys, told before the roots of the sizes that cover it. */
  note(entry: EntryOf<"log_key">): void {
    this.#options.keys.note(entry);
  }

  /** Of the sizes up to the largest: those above were judged before. */
  async compareRoot(size: bigint, root: Hash): Promise<void> {
    for (const { checkpoint, name } of this.#options.kept) {
      if (checkpoint.size !== size || equal(checkpoint.root, root)) continue;
      this.#findings.add("checkpoint-kept", { path: name }, "the entries give another root");
    }
    // The largest was opened before the entries had said which keys were retired: so it is asked again.
    const checkpoint = await this.#open(size);
    if (checkpoint === undefined) return;
    await this.#cosignatures?.of(checkpoint, this.#findings);
    this.compared += 1;
    if (equal(checkpoint.root, root)) return;
    const path = `checkpoint/${size}`;
    this.#findings.add("checkpoint-root", { path }, "the entries give another root");
  }

  async #open(size: bigint): Promise<OpenedCheckpoint | undefined> {
    const opened = await this.#read(size);
    if (opened === undefined) return undefined; // it was there a moment ago
    const code = typeof opened === "string" ? opened : this.#faultOf(opened, size);
    if (code === undefined) return typeof opened === "string" ? undefined : opened;
    this.#findings.add(code, { path: `checkpoint/${size}` }, `checkpoint of size ${size}`);
    return undefined;
  }

  async #read(size: bigint): Promise<OpenedCheckpoint | FindingCode | undefined> {
    const file = await this.#source.read(`checkpoint/${size}`);
    const { keys, verify } = this.#options;
    return file && openCheckpoint(file, { vkeys: keys.vkeys, verify });
  }

  #faultOf(opened: OpenedCheckpoint, size: bigint): FindingCode | undefined {
    if (opened.size !== size) return "checkpoint-size";
    const stands = opened.signers.map((vkey) => this.#options.keys.stands(vkey, size));
    if (stands.includes("yes")) return undefined;
    return stands.includes("retired") ? "checkpoint-retired-key" : "checkpoint-untrusted";
  }
}

/** A checkpoint's file, or the rule that it breaks. */
export function openCheckpoint(
  file: Uint8Array,
  { vkeys, verify }: Trust,
): OpenedCheckpoint | FindingCode {
  const text = file.length > NOTE_BYTES_MAX ? undefined : decodeUtf8(file);
  const opened = text === undefined ? undefined : openNote(text, vkeys, verify);
  if (text === undefined || opened === undefined) return "checkpoint-malformed";
  if ("problem" in opened) {
    if (opened.problem === "unknown-key") return "checkpoint-untrusted";
    return opened.problem === "malformed" ? "checkpoint-malformed" : "checkpoint-signature";
  }
  const checkpoint = parseCheckpoint(opened.text);
  if (checkpoint === undefined) return "checkpoint-malformed";
  const signers = opened.signatures
    .map(({ vkey }) => vkey)
    .filter(({ name }) => name === checkpoint.origin);
  return signers.length === 0 ? "checkpoint-origin" : { ...checkpoint, note: text, signers };
}

/** Whether a checkpoint's origin, which is also its key's name, is the log's. */
export function isOriginOf(log: string, name: string): boolean {
  return name.endsWith(`/${log}`);
}
