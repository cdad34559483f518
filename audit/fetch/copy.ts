/**
 * A log, or a range of it, copied so that every file was proven before it is there, and no checkpoint
 * is there before all that it covers: whatever moment ends the copying, the next one goes on from it.
 */
import type { Checkpoint } from "../../src/core/checkpoint.ts";
import type { Hash, Sha256 } from "../../src/core/hash.ts";
import type { Vkey } from "../../src/core/note.ts";
import { decodeUtf8, encodeUtf8, equal } from "../../src/core/text.ts";
import { type OpenedCheckpoint, openCheckpoint } from "../archive/checkpoints.ts";
import { sizeOf } from "../archive/sizes.ts";
import { CannotLook } from "../finding.ts";
import type { Source } from "../source.ts";
import { type NewestOptions, newest } from "./newest.ts";
import { NotProven, Proven } from "./proven.ts";
import { bundlesOf, type Range } from "./range.ts";
import { type Known, united, unitedLines } from "./signatures.ts";

/** Puts files whole or not at all, over what may be there under their names. */
export type Put = (path: string, bytes: Uint8Array) => Promise<void>;

export interface CopyOptions extends NewestOptions {
  from: Source;
  /** What was copied before. */
  to: Source;
  put: Put;
  hash: Sha256;
  /** Keys of a policy's witnesses: their signatures are told from junk. */
  witnesses: readonly Vkey[];
  /** All without it. */
  range: Range | undefined;
  /** Bundles under way at a time. */
  atOnce: number;
  onProgress?(done: bigint, bundles: bigint): void;
}

export interface Copied {
  checkpoint: OpenedCheckpoint;
  /** The newest that an earlier copying had left. */
  before: Checkpoint | undefined;
  /** Files that were not there, or not as they are proven. */
  files: number;
  checkpoints: number;
  /** Archived checkpoints by keys that nobody gave: they are not copied. */
  untrusted: number;
}

/** Two checkpoints that a trusted key signed, and of which one is not in the other's tree. */
export class Contradiction extends Error {
  override readonly name = "Contradiction";
  readonly notes: readonly [string, string];

  constructor(detail: string, notes: readonly [string, string]) {
    super(detail);
    this.notes = notes;
  }
}

/** @throws NotProven, Contradiction and CannotLook, by which nothing of the newer tree was written */
export async function copy(options: CopyOptions): Promise<Copied> {
  const { from, hash, to } = options;
  const before = await newest(to, options);
  const checkpoint = await newest(from, options);
  if (checkpoint === undefined) throw new CannotLook("there is no checkpoint");
  if (checkpoint.size === 0n) throw new CannotLook("the log is empty");
  if (before !== undefined) await assertExtends(before, checkpoint, options);
  let files = 0;
  const put: Put = async (path, bytes) => {
    if (equal((await to.read(path)) ?? NOTHING, bytes)) return;
    await options.put(path, bytes);
    files += 1;
  };
  const proven = await Proven.open({
    sources: [to, from],
    checkpoint,
    hash,
    onProven: async (path, bytes, source) => {
      if (source !== to) await put(path, bytes);
    },
  });
  await copyBundles(proven, checkpoint, options);
  const whole = options.range === undefined;
  const none = { copied: 0, untrusted: 0 };
  const older = whole ? await copyCheckpoints(proven, checkpoint, { ...options, put }) : none;
  await putNote(`checkpoint/${checkpoint.size}`, checkpoint, { ...options, put });
  const { copied, untrusted } = older;
  return { checkpoint, before, files, checkpoints: copied + 1, untrusted };
}

const NOTHING = new Uint8Array();

/** Two roots of one size need no tiles; else the larger tree's say whether the smaller is in it. */
async function assertExtends(
  before: OpenedCheckpoint,
  now: OpenedCheckpoint,
  { from, hash, to }: CopyOptions,
): Promise<void> {
  if (before.size === now.size) {
    if (!equal(before.root, now.root)) throw splitView(before, now, now.size);
  } else if (before.size < now.size) {
    const proven = await Proven.open({ sources: [from], checkpoint: now, hash });
    if (!equal(await proven.root(before.size), before.root)) {
      throw splitView(before, now, before.size);
    }
  } else {
    if (!equal(await ownRoot(before, now.size, [to, from], hash), now.root)) {
      throw splitView(before, now, now.size);
    }
    const sizes = `${now.size} entries, and the copy has ${before.size} of the same log`;
    throw new CannotLook(`what is shown is older than the copy: ${sizes}`);
  }
}

/** Of the copy's own tree when it had that size. What the copy lacks is no fault of the log's. */
async function ownRoot(
  checkpoint: Checkpoint,
  size: bigint,
  sources: readonly Source[],
  hash: Sha256,
): Promise<Hash> {
  try {
    return await (await Proven.open({ sources, checkpoint, hash })).root(size);
  } catch (error) {
    if (!(error instanceof NotProven)) throw error;
    const detail = `what is shown is older than the copy, which lacks ${error.path} to compare it`;
    throw new CannotLook(detail, { cause: error });
  }
}

function splitView(held: OpenedCheckpoint, shown: OpenedCheckpoint, size: bigint): Contradiction {
  const detail = `a split view: at ${size} entries the tree had another root`;
  return new Contradiction(detail, [held.note, shown.note]);
}

async function copyBundles(
  proven: Proven,
  { size }: Checkpoint,
  { atOnce, onProgress, range }: CopyOptions,
): Promise<void> {
  const { begin, end } = bundlesOf(range ?? { first: 0n, last: undefined }, size);
  let next = begin;
  let done = 0n;
  const work = async (): Promise<void> => {
    while (next < end) {
      const index = next;
      next += 1n;
      await proven.entries(index);
      done += 1n;
      onProgress?.(done, end - begin);
    }
  };
  const stop = (error: unknown): never => {
    next = end; // for all of them
    throw error;
  };
  const workers = Array.from({ length: atOnce }, () => work().catch(stop));
  // Nobody is left at work when this throws.
  for (const { status, ...end } of await Promise.allSettled(workers)) {
    if (status === "rejected" && "reason" in end) throw end.reason;
  }
}

/** Those below the newest, and what witnesses said of them: each is good, and of this tree. */
async function copyCheckpoints(
  proven: Proven,
  { size: top }: Checkpoint,
  options: CopyOptions,
): Promise<{ copied: number; untrusted: number }> {
  const { from, put, to, verify, vkeys } = options;
  let copied = 0;
  let untrusted = 0;
  for await (const path of from.list("checkpoint")) {
    const size = sizeOf(path);
    if (size === undefined || size >= top) continue;
    const file = await from.read(path);
    if (file === undefined) continue; // it was there a moment ago
    const opened = openCheckpoint(file, { vkeys, verify });
    if (opened === "checkpoint-untrusted") {
      untrusted += 1;
      continue;
    }
    if (typeof opened === "string") throw new NotProven(opened, path, `of size ${size}`);
    if (opened.size !== size) throw new NotProven("checkpoint-size", path, `not of size ${size}`);
    if (!equal(await proven.root(size), opened.root)) {
      throw new NotProven("checkpoint-root", path, "the tree has another root");
    }
    copied += 1;
    await putNote(path, opened, options);
  }
  for await (const path of from.list("cosignature")) {
    const file = await from.read(path);
    if (file === undefined) continue;
    const held = decodeUtf8((await to.read(path)) ?? NOTHING) ?? "";
    await put(path, encodeUtf8(unitedLines(held, decodeUtf8(file) ?? "")));
  }
  return { copied, untrusted };
}

/** Beside what is there already: a server leaves out what it likes, and must take nothing away by it. */
async function putNote(
  path: string,
  shown: OpenedCheckpoint,
  {
    put,
    to,
    verify,
    vkeys,
    witnesses,
  }: Pick<CopyOptions, "put" | "to" | "witnesses" | keyof Known>,
): Promise<void> {
  const file = (await to.read(path)) ?? NOTHING;
  const held = openCheckpoint(file, { vkeys, verify });
  if (typeof held === "object" && !equal(held.root, shown.root) && held.size === shown.size) {
    throw splitView(held, shown, shown.size);
  }
  const known = { vkeys: [...vkeys, ...witnesses], verify };
  await put(path, encodeUtf8(united(decodeUtf8(file) ?? "", shown.note, known) ?? shown.note));
}
