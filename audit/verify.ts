/**
 * The audit of one log, from nothing but its archive and the key that its checkpoints are trusted
 * under. It reads like its argument: checkpoint, entries, reports, books, figures. It asks no clock, no
 * network and no host: files, hashes, signatures and room for records come in as parameters.
 */
import type { Checkpoint } from "../src/core/checkpoint.ts";
import type { Verify } from "../src/core/ed25519.ts";
import type { EntryOf } from "../src/core/entry.ts";
import type { Hash, Sha256 } from "../src/core/hash.ts";
import type { Vkey } from "../src/core/note.ts";
import type { Policy } from "../src/core/policy.ts";
import { compareAdopted } from "./archive/adopted.ts";
import { Checkpoints, isOriginOf, type Kept } from "./archive/checkpoints.ts";
import type { Witnessed } from "./archive/cosignatures.ts";
import { LogKeys } from "./archive/log-keys.ts";
import { type Surplus, surplus } from "./archive/surplus.ts";
import { walk } from "./archive/walk.ts";
import { Books } from "./books.ts";
import { CannotLook, Findings, type OpenCode } from "./finding.ts";
import type { Reader } from "./reading/reader.ts";
import type { Source } from "./source.ts";
import type { KeyAccount } from "./tally/counters.ts";
import type { Month } from "./tally/months.ts";
import type { OpenPiles } from "./tally/piles.ts";
import type { UsageFile } from "./tally/usage.ts";

export interface AuditOptions {
  /** The log's id: its checkpoints' origin ends in it. */
  log: string;
  /** Trusted from elsewhere; those of other logs are passed over. */
  vkeys: readonly Vkey[];
  hash: Sha256;
  verify: Verify;
  /** Reads bundles, and verifies what agents signed in them, on as many cores as there are. */
  reader: Reader;
  openPiles: OpenPiles;
  /** Whose cosignatures count, where any are asked for. */
  policy: Policy | undefined;
  /** Checkpoints of this log from elsewhere: that nothing they cover was cut off or changed since. */
  kept: readonly Kept[];
  /** The log is being written: bundles may be there before the checkpoint that covers them. */
  live: boolean;
  /** Figures of this log to hold against the entries. */
  usage: readonly UsageFile[];
  /** Told after every bundle how many entries of how many are done. */
  onProgress?(done: bigint, size: bigint): void;
}

/** All proven if both lists are empty. */
export interface AuditResult extends Surplus {
  log: string;
  origin: string;
  /** Entries that the largest checkpoint covers; 0 where no checkpoint held. */
  size: bigint;
  root: Hash | undefined;
  /** The largest checkpoint, as it was signed. */
  note: string;
  /** Checkpoints whose root was recomputed, the largest included. */
  checkpoints: number;
  /** Keys that nobody gave and the log itself has named. */
  learned: Vkey[];
  /** The largest checkpoint that reaches the policy's quorum, where there is a policy. */
  witnessed: Witnessed | undefined;
  /** What could not be seen, in sentences. */
  limits: string[];
  kinds: Map<string, bigint>;
  signatures: bigint;
  keys: KeyAccount[];
  months: Month[];
  findings: Findings;
  open: Findings<OpenCode>;
}

/** @throws CannotLook when nothing can be verified: no key, no checkpoint, no entries, no access */
export async function audit(source: Source, options: AuditOptions): Promise<AuditResult> {
  const vkeys = options.vkeys.filter((vkey) => isOriginOf(options.log, vkey.name));
  if (vkeys.length === 0) throw new CannotLook(`no trusted key for log ${options.log}`);
  const keys = new LogKeys(vkeys);
  for (;;) {
    const known = keys.vkeys.length;
    const result = await readThrough(source, { ...options, keys });
    // What was untrusted may rest on a key that the log added below the checkpoint that was trusted.
    if (keys.vkeys.length === known || !result.findings.byCode.has("checkpoint-untrusted")) {
      return result;
    }
  }
}

interface Reading extends AuditOptions {
  keys: LogKeys;
}

async function readThrough(source: Source, options: Reading): Promise<AuditResult> {
  const findings = new Findings();
  const open = new Findings<OpenCode>();
  const checkpoints = new Checkpoints(source, options, findings);
  const top = await checkpoints.largest();
  const books = new Books({ ...options, origin: top?.origin ?? "" }, { findings, open });
  const size = top?.size ?? 0n;
  if (top !== undefined) {
    const adoptions = await read(source, top, { ...options, checkpoints, findings, books });
    await compareAdopted(source, size, { adoptions, hash: options.hash }, findings);
  }
  // After the walk, which may have taught keys that smaller checkpoints rest on.
  const witnessed = await checkpoints.witnessed();
  const rest = await surplus(source, size, findings);
  if (!options.live) {
    const unwitnessed = witnessed === undefined ? 0n : size - witnessed.size;
    if (unwitnessed > 0n) {
      open.add("unwitnessed", { index: size - unwitnessed }, `${unwitnessed} entries`);
    }
    if (rest.uncovered > 0n) open.add("uncovered", { index: size }, `${rest.uncovered} entries`);
  }
  return {
    log: options.log,
    origin: top?.origin ?? "",
    size,
    root: top?.root,
    note: top?.note ?? "",
    checkpoints: checkpoints.compared,
    learned: options.keys.learned,
    witnessed,
    ...rest,
    limits: [...(source.limits ?? [])],
    findings,
    open,
    ...books.close(size),
  };
}

interface Walking extends Reading {
  checkpoints: Checkpoints;
  findings: Findings;
  books: Books;
}

/** Entries that only the tree can judge, when all others have been. */
async function read(
  source: Source,
  top: Checkpoint,
  walking: Walking,
): Promise<EntryOf<"archive_adopted">[]> {
  const { books, onProgress } = walking;
  const adoptions: EntryOf<"archive_adopted">[] = [];
  let done = 0n;
  for await (const { entries, width } of walk({ ...walking, source, top })) {
    for (const { entry, said } of entries) {
      books.take(entry, said);
      if (entry.kind === "archive_adopted") adoptions.push(entry);
    }
    done += BigInt(width);
    onProgress?.(done, top.size);
  }
  return adoptions;
}
