/**
 * The audit of one log, from nothing but its archive and the key that its checkpoints are trusted
 * under. It reads like its argument: checkpoint, entries, reports, books, figures. It asks no clock, no
 * network and no host: files, hashes, signatures and room for records come in as parameters.
 */
import type { Checkpoint } from "../src/core/checkpoint.ts";
import type { Verify } from "../src/core/ed25519.ts";
import type { Hash, Sha256 } from "../src/core/hash.ts";
import type { Vkey } from "../src/core/note.ts";
import { Checkpoints } from "./archive/checkpoints.ts";
import { surplus } from "./archive/surplus.ts";
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
  /** Figures of this log to hold against the entries. */
  usage: readonly UsageFile[];
  /** Told after every bundle how many entries of how many are done. */
  onProgress?(done: bigint, size: bigint): void;
}

/** All proven if both lists are empty. */
export interface AuditResult {
  log: string;
  origin: string;
  /** Entries that the largest checkpoint covers; 0 where no checkpoint held. */
  size: bigint;
  root: Hash | undefined;
  /** Checkpoints whose root was recomputed, the largest included. */
  checkpoints: number;
  /** Entries in bundles past the largest checkpoint: not covered, and not looked at. */
  uncovered: bigint;
  kinds: Map<string, bigint>;
  signatures: bigint;
  keys: KeyAccount[];
  months: Month[];
  findings: Findings;
  open: Findings<OpenCode>;
}

/** @throws CannotLook when nothing can be verified: no key, no checkpoint, no entries, no access */
export async function audit(source: Source, options: AuditOptions): Promise<AuditResult> {
  const vkeys = options.vkeys.filter((vkey) => vkey.name.endsWith(`/${options.log}`));
  if (vkeys.length === 0) throw new CannotLook(`no trusted key for log ${options.log}`);
  const findings = new Findings();
  const open = new Findings<OpenCode>();
  const checkpoints = new Checkpoints(source, vkeys, options, findings);
  const top = await checkpoints.largest();
  const books = new Books(options, { findings, open });
  if (top !== undefined) await read(source, top, { ...options, checkpoints, findings, books });
  const size = top?.size ?? 0n;
  return {
    log: options.log,
    origin: top?.origin ?? "",
    size,
    root: top?.root,
    checkpoints: checkpoints.compared,
    uncovered: await surplus(source, size, findings),
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
  const { books, checkpoints, findings, hash, log, onProgress, reader } = reading;
  const blocks = walk({ source, log, top, hash, findings, checkpoints });
  let done = 0n;
  for await (const { heard, width } of hear(blocks, reader)) {
    for (const { entry, said } of heard) books.take(entry, said);
    done += BigInt(width);
    onProgress?.(done, top.size);
  }
}
