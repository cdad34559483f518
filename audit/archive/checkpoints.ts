/** The archived checkpoints: which of them hold, and whether the entries give their roots. */
import { type Checkpoint, parseCheckpoint } from "../../src/core/checkpoint.ts";
import type { Verify } from "../../src/core/ed25519.ts";
import type { EntryOf } from "../../src/core/entry.ts";
import { EMPTY_ROOT, type Hash } from "../../src/core/hash.ts";
import { openNote, type Vkey } from "../../src/core/note.ts";
import type { Policy } from "../../src/core/policy.ts";
import { decodeUtf8, encodeUtf8, equal } from "../../src/core/text.ts";
import { CannotLook, type FindingCode, Findings } from "../finding.ts";
import { NOTE_BYTES_MAX, type Source } from "../source.ts";
import { Cosignatures, type Witnessed } from "./cosignatures.ts";
import type { LogKeys } from "./log-keys.ts";
import { blockOf, type CheckpointSizes } from "./sizes.ts";

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
  /** For which there are checkpoints: listed once for all passes. */
  sizes: CheckpointSizes;
  verify: Verify;
  kept: readonly Kept[];
  policy: Policy | undefined;
  now: bigint;
}

/** What a key that the log names further on may take back. */
const DOUBTS: ReadonlySet<FindingCode> = new Set([
  "checkpoint-untrusted",
  "checkpoint-retired-key",
]);

/**
 * The checkpoints of the archive in one pass over its entries, and with them those that somebody kept.
 * Each note is read once: signature, root and cosignatures are judged on the same bytes.
 */
export class Checkpoints {
  readonly #source: Source;
  readonly #options: CheckpointsOptions;
  readonly #findings: Findings;
  readonly #cosignatures: Cosignatures | undefined;
  #top: OpenedCheckpoint | undefined;
  /** Entries about keys that no checkpoint has proven yet. */
  #unproven: EntryOf<"log_key">[] = [];
  #proven: OpenedCheckpoint | undefined;
  #witnessed: Witnessed | undefined;
  /** Checkpoints that rest on no key that is in force as far as this pass knows. */
  readonly doubts = new Findings();
  compared = 0;

  constructor(source: Source, options: CheckpointsOptions, findings: Findings) {
    const { now, policy, verify } = options;
    this.#source = source;
    this.#options = options;
    this.#findings = findings;
    this.#cosignatures = policy && new Cosignatures(source, { policy, verify, now });
  }

  /**
   * The largest checkpoint that holds; those above it are findings or doubts.
   *
   * @throws CannotLook where none holds, or one of no entries: checkpoints that were kept still count
   */
  async largest(): Promise<OpenedCheckpoint> {
    for (const size of this.#options.sizes.descending()) {
      const file = await this.#source.read(`checkpoint/${size}`);
      const opened = file && this.#open(file, size); // without a file, it was there a moment ago
      if (typeof opened === "string") this.#fault(opened, size);
      if (typeof opened !== "object") continue;
      this.#top = opened;
      break;
    }
    if (this.#top !== undefined && this.#top.size > 0n) return this.#top;
    if (this.#top !== undefined) await this.compareRoot(0n, EMPTY_ROOT);
    this.#missKept();
    throw new CannotLook(
      this.#top === undefined
        ? "no checkpoint that a trusted key has signed"
        : "nothing verified: the log is empty",
    );
  }

  /** The largest whose root was equal, under a key that was in force until there: what it covers is proven. */
  get proven(): OpenedCheckpoint | undefined {
    return this.#proven;
  }

  /** The largest of these that reaches the policy's quorum; undefined where none does, or none is asked for. */
  get witnessed(): Witnessed | undefined {
    return this.#witnessed;
  }

  /** In sentences, which cosignatures were passed over. */
  get limits(): ReadonlySet<string> {
    return this.#cosignatures?.limits ?? new Set();
  }

  /** What is missing at the end of the last pass. */
  conclude(): void {
    this.#missKept();
    if (this.#cosignatures === undefined || this.#witnessed !== undefined) return;
    const path = `checkpoint/${this.#top?.size}`;
    this.#findings.add("quorum-missing", { path }, "nor has one below it");
  }

  sizesOf(block: bigint): bigint[] {
    const kept = this.#options.kept.map(({ checkpoint }) => checkpoint.size);
    return [
      ...this.#options.sizes.ofBlock(block),
      ...kept.filter((size) => blockOf(size) === block),
    ];
  }

  /** An entry of the tree that changes the log's keys, told before the roots of the sizes that cover it. */
  note(entry: EntryOf<"log_key">): void {
    this.#unproven.push(entry);
  }

  /** Of the sizes up to the largest: those above were judged before. */
  async compareRoot(size: bigint, root: Hash): Promise<void> {
    for (const { checkpoint, name } of this.#options.kept) {
      if (checkpoint.size !== size || equal(checkpoint.root, root)) continue;
      this.#findings.add("checkpoint-kept", { path: name }, "the entries give another root");
    }
    const file = await this.#read(size);
    if (file === undefined) return; // kept elsewhere, or there a moment ago
    const first = this.#open(file, size);
    // Whoever could be trusted until here speaks for the entries; what these say of keys counts at once.
    const proves = typeof first === "object" && equal(first.root, root);
    if (proves) this.#proven = first;
    const checkpoint = proves && this.#learn(size) ? this.#open(file, size) : first;
    if (typeof checkpoint === "string") {
      this.#fault(checkpoint, size);
      return;
    }
    this.compared += 1;
    const witnessed = await this.#cosignatures?.of(checkpoint, this.#findings);
    if (!proves) {
      const path = `checkpoint/${size}`;
      this.#findings.add("checkpoint-root", { path }, "the entries give another root");
    } else if (witnessed?.quorum) this.#witnessed = witnessed;
  }

  async #read(size: bigint): Promise<Uint8Array | undefined> {
    if (size === this.#top?.size) return encodeUtf8(this.#top.note);
    return await this.#source.read(`checkpoint/${size}`);
  }

  #open(file: Uint8Array, size: bigint): OpenedCheckpoint | FindingCode {
    const { keys, verify } = this.#options;
    const opened = openCheckpoint(file, { vkeys: keys.vkeys, verify });
    if (typeof opened === "string") return opened;
    if (opened.size !== size) return "checkpoint-size";
    const stands = opened.signers.map((vkey) => keys.stands(vkey, size));
    if (stands.includes("yes")) return opened;
    return stands.includes("retired") ? "checkpoint-retired-key" : "checkpoint-untrusted";
  }

  #fault(code: FindingCode, size: bigint): void {
    const findings = DOUBTS.has(code) ? this.doubts : this.#findings;
    findings.add(code, { path: `checkpoint/${size}` }, `checkpoint of size ${size}`);
  }

  #learn(size: bigint): boolean {
    const covered = this.#unproven.filter(({ index }) => index < size);
    this.#unproven = this.#unproven.filter(({ index }) => index >= size);
    return this.#options.keys.learn(covered, size);
  }

  #missKept(): void {
    for (const { checkpoint, name } of this.#options.kept) {
      const size = this.#top?.size ?? 0n;
      if (this.#top !== undefined && checkpoint.size <= size) continue;
      const detail = `it covers ${checkpoint.size} entries, the archive's largest checkpoint ${size}`;
      this.#findings.add("checkpoint-kept", { path: name }, detail);
    }
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
