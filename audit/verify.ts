/**
 * The audit of one log, from nothing but its archive and the key that its checkpoints are trusted
 * under. It reads like its argument: checkpoint, entries, reports, books, figures. It asks no clock, no
 * network and no host: files, hashes, signatures and room for records come in as parameters.
 */
import type { Checkpoint } from "../src/core/checkpoint.ts";
import type { Verify } from "../src/core/ed25519.ts";
import type { Hash, Sha256 } from "../src/core/hash.ts";
import type { Vkey } from "../src/core/note.ts";
import { Checkpoints, isOriginOf, type Kept } from "./archive/checkpoints.ts";
import { type Surplus, surplus } from "./archive/surplus.ts";
import { walk } from "./archive/walk.ts";
import { Books } from "./books.ts";
import { CannotLook, Findings, type OpenCode } from "./finding.ts";
import { hear } from "./hearing.ts";
import type { Reader } from "./prefix/statement.ts";
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
  /** Reads and verifies what agents signed, on as many cores as there are. */
  reader: Reader;
  openPiles: OpenPiles;
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
  /** Checkpoints whose root was recomputed, the largest included. */
  checkpoints: number;
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
  const findings = new Findings();
  const open = new Findings<OpenCode>();
  const checkpoints = new Checkpoints(source, { ...options, vkeys }, findings);
  const top = await checkpoints.largest();
  const books = new Books(options, { findings, open });
  if (top !== undefined) await read(source, top, { ...options, checkpoints, findings, books });
  const size = top?.size ?? 0n;
  const rest = await surplus(source, size, findings);
  if (rest.uncovered > 0n && !options.live) {
    open.add("uncovered", { index: size }, `${rest.uncovered} entries`);
  }
  return {
    log: options.log,
    origin: top?.origin ?? "",
    size,
    root: top?.root,
    checkpoints: checkpoints.compared,
    ...rest,
    findings,
    open,
    ...books.close(size),
  };
}

interface Reading extends AuditOptions {
  checkpoints: Checkpoints;
  findings: Findings;
  books: Books;
}

async function read(source: Source, top: Checkpoint, reading: Reading): Promise<void> {
  const { books, onProgress, reader } = reading;
  const blocks = walk({ ...reading, source, top });
  let done = 0n;
  for await (const { heard, width } of hear(blocks, reader)) {
    for (const { entry, said } of heard) books.take(entry, said);
    done += BigInt(width);
    onProgress?.(done, top.size);
  }
}
