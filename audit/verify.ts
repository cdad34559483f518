/**
 * The audit of one log, from nothing but its archive and the key that its checkpoints are trusted
 * under. It reads like its argument: checkpoint, entries, reports, books, figures. It asks no clock, no
 * network and no host: files, hashes, signatures, the time and room for records come in as parameters.
 */
import type { Checkpoint } from "../src/core/checkpoint.ts";
import type { Verify } from "../src/core/ed25519.ts";
import type { Hash, Sha256 } from "../src/core/hash.ts";
import type { Vkey } from "../src/core/note.ts";
import type { Policy } from "../src/core/policy.ts";
import { compareSaid, type SaidRoot } from "./archive/adopted.ts";
import type { ReadEntry, UnknownEntry } from "./archive/block.ts";
import {
  Checkpoints,
  isOriginOf,
  type Kept,
  type OpenedCheckpoint,
} from "./archive/checkpoints.ts";
import type { Witnessed } from "./archive/cosignatures.ts";
import { LEARNED_MAX, LogKeys } from "./archive/log-keys.ts";
import { CheckpointSizes } from "./archive/sizes.ts";
import { type Surplus, surplus } from "./archive/surplus.ts";
import { walk } from "./archive/walk.ts";
import { Books } from "./books.ts";
import type { ReliedKey } from "./control/decided.ts";
import type { Decisions, Period } from "./control/decisions.ts";
import type { IssuerKeys } from "./control/issuer-keys.ts";
import { CannotLook, endedBy, Findings, type OpenCode } from "./finding.ts";
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
  /** Seconds since the epoch: what witnesses signed later than that does not count. */
  now: bigint;
  /** The log is being written: bundles may be there before the checkpoint that covers them. */
  live: boolean;
  /** Figures of this log to hold against the entries. */
  usage: readonly UsageFile[];
  /** Keys of the issuers by which approvers sign in, as known from elsewhere; undefined: not known. */
  issuerKeys?: IssuerKeys | undefined;
  /** Of which days, half-open, decisions are listed; all of them where nothing is said. */
  decided?: Period | undefined;
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
  /** Why it ended before all was looked at, where it did: then only the findings say anything. */
  missed?: string;
  kinds: Map<string, bigint>;
  signatures: bigint;
  keys: KeyAccount[];
  months: Month[];
  /** Issuers' keys that approvals rest on. */
  issuerKeys: ReliedKey[];
  decisions: Decisions;
  findings: Findings;
  open: Findings<OpenCode>;
}

/**
 * @throws CannotLook when nothing was found and not all could be seen: no key, no checkpoint, no entries,
 *   no access, or keys without an end
 */
export async function audit(source: Source, options: AuditOptions): Promise<AuditResult> {
  const vkeys = options.vkeys.filter((vkey) => isOriginOf(options.log, vkey.name));
  if (vkeys.length === 0) throw new CannotLook(`no trusted key for log ${options.log}`);
  const keys = new LogKeys(vkeys);
  const sizes = new CheckpointSizes(options.openPiles);
  await sizes.load(source);
  const earlier = new Findings();
  const kept = [...options.kept];
  for (let pass = 0; ; pass += 1) {
    const result = await readThrough(source, { ...options, keys, sizes, kept, earlier, pass });
    if (!("proven" in result)) return result;
    // Later passes rest on keys that this one learned: they must be shown the same tree.
    kept.push({ name: `checkpoint/${result.proven.size}`, checkpoint: result.proven });
    earlier.keep(result.findings);
  }
}

interface Reading extends AuditOptions {
  keys: LogKeys;
  sizes: CheckpointSizes;
  /** What earlier passes have found, and how many there were. */
  earlier: Findings;
  pass: number;
}

/** A pass that taught what may lift its doubts. */
interface Climbed {
  proven: Checkpoint;
  findings: Findings;
}

async function readThrough(source: Source, options: Reading): Promise<AuditResult | Climbed> {
  const { earlier, keys, pass } = options;
  const findings = new Findings();
  const open = new Findings<OpenCode>();
  const checkpoints = new Checkpoints(source, options, findings);
  const known = keys.changes;
  try {
    if (pass > LEARNED_MAX) throw new CannotLook("the log's keys lead on without an end");
    const top = await checkpoints.largest();
    const books = new Books({ ...options, origin: top.origin }, { findings, open });
    const roots = await read(source, top, { ...options, checkpoints, findings, books });
    await compareSaid(source, top, { roots, hash: options.hash }, findings);
    const { doubts, proven } = checkpoints;
    // What was doubted may rest on a key that the log added below a checkpoint that was trusted.
    const untrusted = doubts.byCode.has("checkpoint-untrusted");
    if (proven !== undefined && untrusted && keys.changes > known) return { proven, findings };
    findings.keep(doubts);
    return await conclude(source, { ...options, top, checkpoints, books, findings, open });
  } catch (error) {
    findings.keep(earlier);
    const missed = endedBy(error, findings);
    const limits = limitsOf(source, checkpoints);
    return { ...NOTHING, log: options.log, missed, limits, findings, open };
  }
}

interface Walking extends Reading {
  checkpoints: Checkpoints;
  findings: Findings;
  books: Books;
}

interface Concluding extends Walking {
  top: OpenedCheckpoint;
  open: Findings<OpenCode>;
  earlier: Findings;
}

/** What only the end of the last pass can say. */
async function conclude(source: Source, options: Concluding): Promise<AuditResult> {
  const { books, checkpoints, earlier, findings, keys, live, log, open, top } = options;
  const { note, origin, root, size } = top;
  checkpoints.conclude();
  const { compared, witnessed } = checkpoints;
  const rest = await surplus(source, size, findings);
  if (!live) {
    const unwitnessed = witnessed === undefined ? 0n : size - witnessed.size;
    if (unwitnessed > 0n) {
      open.add("unwitnessed", { index: size - unwitnessed }, `${unwitnessed} entries`);
    }
    if (rest.uncovered > 0n) open.add("uncovered", { index: size }, `${rest.uncovered} entries`);
  }
  const closed = books.close(size, witnessed?.size ?? 0n);
  findings.keep(earlier);
  return {
    ...{ log, origin, size, root, note, checkpoints: compared, learned: keys.learned, witnessed },
    ...{ ...rest, ...closed, findings, open },
    limits: [...limitsOf(source, checkpoints), ...issuerLimit(options, closed.issuerKeys)],
  };
}

function limitsOf(source: Source, checkpoints: Checkpoints): string[] {
  return [...(source.limits ?? []), ...checkpoints.limits];
}

/** Who runs the service could have made up an issuer, as far as the log alone can tell. */
function issuerLimit({ issuerKeys }: AuditOptions, relied: readonly ReliedKey[]): string[] {
  if (issuerKeys !== undefined || relied.length === 0) return [];
  return [
    "whether issuers have these keys was not asked: give those that they publish (--issuer-keys)",
  ];
}

/** Of an audit that ended early nothing is summed up. */
const NOTHING = {
  origin: "",
  size: 0n,
  root: undefined,
  note: "",
  checkpoints: 0,
  learned: [],
  witnessed: undefined,
  uncovered: 0n,
  strangers: { count: 0, listed: [] },
  kinds: new Map<string, bigint>(),
  signatures: 0n,
  keys: [],
  months: [],
  issuerKeys: [],
  decisions: { count: 0, listed: [] },
};

/** @returns what only the tree can judge, when all entries have been */
async function read(source: Source, top: Checkpoint, walking: Walking): Promise<SaidRoot[]> {
  const { books, onProgress } = walking;
  const roots: SaidRoot[] = [];
  let done = 0n;
  for await (const { entries, width } of walk({ ...walking, source, top })) {
    for (const judged of entries) {
      books.take(judged);
      roots.push(...rootsOf(judged.entry));
    }
    await books.settle();
    done += BigInt(width);
    onProgress?.(done, top.size);
  }
  return roots;
}

function rootsOf(entry: ReadEntry | UnknownEntry): SaidRoot[] {
  const { index, kind } = entry;
  if (kind === "archive_adopted") return [{ ...entry.body, index, code: "archive-adopted" }];
  return kind === "month_closed" ? [{ ...entry.body, index, code: "month-root" }] : [];
}
