/** Some of a log's entries, held to the newest checkpoint without all the others. */
import { GENESIS_PREV } from "../../src/core/entry.ts";
import { type Hash, leafHash, type Sha256 } from "../../src/core/hash.ts";
import type { Policy } from "../../src/core/policy.ts";
import { equal } from "../../src/core/text.ts";
import { TILE_WIDTH } from "../../src/core/tile.ts";
import { readEntry } from "../archive/block.ts";
import type { OpenedCheckpoint } from "../archive/checkpoints.ts";
import { Cosignatures } from "../archive/cosignatures.ts";
import { CannotLook, endedBy, type FindingCode, Findings, type OpenCode } from "../finding.ts";
import type { Source } from "../source.ts";
import { type NewestOptions, newest } from "./newest.ts";
import { NotProven, Proven } from "./proven.ts";

/** Indices of the first entry and the last, which is the log's own last where none is said. */
export interface Range {
  first: bigint;
  last: bigint | undefined;
}

export interface RangeResult {
  log: string;
  checkpoint: OpenedCheckpoint | undefined;
  first: bigint;
  last: bigint;
  /** What could not be seen, in sentences. */
  limits: string[];
  findings: Findings;
  open: Findings<OpenCode>;
}

interface RangeAudit extends NewestOptions {
  log: string;
  range: Range;
  policy: Policy | undefined;
  /** Seconds since the epoch: what witnesses signed later than that does not count. */
  now: bigint;
  hash: Sha256;
}

const WIDTH = BigInt(TILE_WIDTH);

/** The bundles that hold a range of a log of `size` entries; throws `CannotLook` past its end. */
export function bundlesOf(range: Range, size: bigint): { begin: bigint; end: bigint } {
  const last = range.last ?? size - 1n;
  if (range.first > last || last >= size) {
    throw new CannotLook(`the checkpoint covers ${size} entries, and not all of the range`);
  }
  return { begin: range.first / WIDTH, end: last / WIDTH + 1n };
}

/**
 * Are these entries in the log: each at its index, linked to the one before, under a signed root? What
 * they say is not judged: that takes all entries before them.
 */
export async function auditRange(source: Source, options: RangeAudit): Promise<RangeResult> {
  const { hash, log, policy, range } = options;
  const findings = new Findings();
  const open = new Findings<OpenCode>();
  const limits = new Set<string>();
  const outcome = { log, first: range.first, last: range.last ?? range.first, findings, open };
  try {
    const checkpoint = await newest(source, options);
    if (checkpoint === undefined) throw new CannotLook("there is no checkpoint");
    if (policy !== undefined) {
      const cosignatures = new Cosignatures(source, { ...options, policy });
      const { quorum, size } = await cosignatures.of(checkpoint, findings);
      if (!quorum) findings.add("quorum-missing", { path: `checkpoint/${size}` }, "of a range");
      for (const limit of cosignatures.limits) limits.add(limit);
    }
    const { begin, end } = bundlesOf(range, checkpoint.size);
    const last = range.last ?? checkpoint.size - 1n;
    const proven = await Proven.open({ sources: [source], checkpoint, hash });
    const entries = new Entries(options, outcome);
    for (let index = begin; index < end; index += 1n) {
      await entries.take(proven, index, { first: range.first, last });
    }
    return { ...outcome, checkpoint, last, limits: [...limits] };
  } catch (error) {
    if (error instanceof NotProven) add(findings, error);
    else limits.add(`not looked at to the end: ${endedBy(error, findings)}`);
    return { ...outcome, checkpoint: undefined, limits: [...limits] };
  }
}

class Entries {
  readonly #log: string;
  readonly #hash: Sha256;
  readonly #findings: Findings;
  readonly #open: Findings<OpenCode>;
  /** Leaf hash of the last entry that was looked at; undefined after one that was not. */
  #before: Hash | undefined;

  constructor(
    { hash, log }: RangeAudit,
    { findings, open }: Pick<RangeResult, "findings" | "open">,
  ) {
    this.#log = log;
    this.#hash = hash;
    this.#findings = findings;
    this.#open = open;
  }

  /** Those of the bundle that are in the range, and those before them as what they are linked to. */
  async take(
    proven: Proven,
    bundle: bigint,
    range: { first: bigint; last: bigint },
  ): Promise<void> {
    const start = bundle * WIDTH;
    if (start === 0n) this.#before = GENESIS_PREV;
    try {
      for (const [i, bytes] of (await proven.entries(bundle)).entries()) {
        const index = start + BigInt(i);
        if (index >= range.first && index <= range.last) this.#judge(index, bytes);
        this.#before = leafHash(bytes, this.#hash);
      }
    } catch (error) {
      if (!(error instanceof NotProven)) throw error;
      add(this.#findings, error);
      this.#before = undefined;
    }
  }

  #judge(index: bigint, bytes: Uint8Array): void {
    const add = (code: FindingCode, detail: string): void =>
      this.#findings.add(code, { index }, detail);
    const entry = readEntry(bytes);
    if (entry === "malformed") {
      add("entry-malformed", "not the canonical bytes of an entry");
      return;
    }
    if (entry.kind === "unknown-kind") {
      this.#open.add("unknown-kind", { index }, "a later version's entry");
    }
    if (entry.log !== this.#log) add("entry-foreign", `an entry of log ${entry.log}`);
    if (entry.index !== index) add("entry-swapped", `it says index ${entry.index}`);
    if (this.#before !== undefined && !equal(entry.prev, this.#before)) {
      add("entry-link", "its prev is not the hash of the entry before");
    }
  }
}

function add(findings: Findings, { code, index, message, path }: NotProven): void {
  findings.add(code, { path, ...(index !== undefined && { index }) }, message);
}
