/**
 * Brings a database back to what was archived: all that the archive has of a log and the database
 * lacks, byte for byte, in transactions that each leave a log that checks (DESIGN §15). Until the last
 * of them the head is behind the newest checkpoint, and the guard keeps everybody else from writing.
 */
import { Problem } from "../../core/problem.ts";
import { equal } from "../../core/text.ts";
import { edgeRoot } from "../../core/tile.ts";
import { restoreCheckpoint } from "../../store/checkpoints.ts";
import type { Transaction } from "../../store/connect.ts";
import { readEntries } from "../../store/entries.ts";
import { lockHead, readHead } from "../../store/heads.ts";
import { raiseSeal, readSeal, type Seal } from "../../store/seals.ts";
import { transact } from "../../store/transact.ts";
import type { Appender } from "./append.ts";
import { blocks, inOrder, readProven, WIDTH } from "./archived.ts";
import { extend } from "./extend.ts";
import type { Guard } from "./guard.ts";
import { RecoveryError } from "./recovery.ts";
import type { Replay } from "./replay.ts";
import { missingSizes, type Restoring, restoreCheckpoints } from "./restore-checkpoints.ts";
import { assertNotRetired, type Survey, survey } from "./survey.ts";
import { leftovers, unsignedAfter } from "./unsigned.ts";

/** `sql` needs two connections at once. */
export interface Recovering extends Restoring {
  appender: Appender;
  guard: Guard;
}

export interface Recovered {
  log: string;
  /** Size of the newest archived checkpoint. */
  archived: bigint;
  /** Entries that the database had, and has now. */
  before: bigint;
  after: bigint;
  /** How many of those it has now are past the newest checkpoint and came from the archive. */
  unsigned: bigint;
  /** Checkpoints that the table lacked. */
  checkpoints: number;
  /** Files that nobody signed and that the log does not go on with. */
  aside: number;
}

/** A seal came in between: what was found is out of date. */
class Overtaken extends Error {}

const ATTEMPTS_MAX = 3;
const PAGE = 1_000n;

/**
 * Safe at any time and twice at once: what stands is passed over, and what differs is refused.
 *
 * @throws RecoveryError; Problem `busy`, `log-behind`, `archive-unavailable`
 */
export async function recover(recovering: Recovering): Promise<Recovered> {
  for (let attempt = 0; attempt < ATTEMPTS_MAX; attempt += 1) {
    try {
      const found = await survey(recovering);
      return await restore(recovering, found);
    } catch (error) {
      if (!(error instanceof Overtaken)) throw error;
    }
  }
  throw new RecoveryError("busy", "the log is being sealed; it is not behind");
}

/**
 * What `recover` would do, found without a lock and without writing anything. Of entries that no
 * checkpoint covers as many as go on from the log: what they prove is seen when the ones before stand.
 */
export async function foresee(recovering: Recovering): Promise<Recovered> {
  const { log } = recovering;
  const found = await survey(recovering);
  const { head, newest, target } = found;
  const place = await startAfter(recovering, found);
  let after = place.size;
  for await (const { entries } of unsignedAfter(recovering, place)) after += BigInt(entries.length);
  const missing = await missingSizes(recovering, found);
  return {
    log,
    archived: newest.size,
    before: head,
    after,
    unsigned: unsignedOf(found, after),
    checkpoints: missing.length,
    aside: head < target.size ? 0 : (await surplus(recovering, found)).length,
  };
}

/** Entries of the database from an index on, as they were written: what a fork would lose. */
export async function* writtenFrom(
  { sql, log }: Pick<Recovering, "sql" | "log">,
  index: bigint,
): AsyncGenerator<Uint8Array> {
  for (let from = index; ; from += PAGE) {
    const rows = await readEntries(sql, log, from, from + PAGE);
    for (const { bytes } of rows) yield bytes;
    if (rows.length === 0) return;
  }
}

async function restore(recovering: Recovering, found: Survey): Promise<Recovered> {
  const { log } = recovering;
  const { head: before, newest } = found;
  const missing = await missingSizes(recovering, found);
  let done = { after: before, unsigned: 0n, aside: 0 };
  if (await isWanting(recovering, found)) {
    await replayAllBut(recovering, found);
    done = await replayLast(recovering, found);
  }
  await restoreCheckpoints(recovering, found, missing);
  await assertAgreed(recovering);
  const checkpoints = missing.length - (await missingSizes(recovering, found)).length;
  return { log, archived: newest.size, before, ...done, checkpoints };
}

/** Whole blocks, each in a transaction of its own, up to the one that the checkpoint ends in. */
async function replayAllBut(recovering: Recovering, found: Survey): Promise<void> {
  const { appender, log, onProgress } = recovering;
  const end = lastBlock(found.newest.size);
  if (found.head >= end) return;
  const read = inOrder(blocks(found.head, end), (block) =>
    readProven(recovering, block, rootOf(found, block.index)),
  );
  for await (const { item, value } of read) {
    const from = item.index * WIDTH;
    await appender.archived(log, async (replay) => {
      await replay.take(from, value);
      await assertStanding(recovering, found, replay);
    });
    onProgress?.(from + BigInt(value.length), found.newest.size);
  }
}

/** The transaction after which the log is written and sealed again. */
async function replayLast(
  recovering: Recovering,
  found: Survey,
): Promise<Pick<Recovered, "after" | "unsigned" | "aside">> {
  const { appender, archive, log } = recovering;
  const { newest, seal, target } = found;
  const done = { after: 0n, unsigned: 0n, aside: 0 };
  await appender.archived(log, async (replay) => {
    const { tx } = replay;
    const sealed = await readSeal(tx, log);
    // From here on nobody else archives anything of this log.
    await raiseSeal(tx, log, seal);
    const latest = await archive.latestCheckpoint(log);
    if ((latest?.size ?? 0n) !== newest.size) throw new Overtaken();
    await takeLast(recovering, found, replay);
    await assertStanding(recovering, found, replay);
    for (const tree of [newest, target]) await assertRoot(tx, recovering, sealed, tree);
    for await (const { from, entries } of unsignedAfter(recovering, replay.head)) {
      if (!(await replay.takeProven(from, entries))) break;
    }
    if (newest.size > 0n) await restoreCheckpoint(tx, { log, ...newest });
    const paths = await leftovers(tx, recovering, seal, replay.head.size);
    // Before COMMIT: the next seal must not find their names taken.
    await archive.setAside(paths);
    done.after = replay.head.size;
    done.unsigned = unsignedOf(found, done.after);
    done.aside = paths.length;
  });
  return done;
}

/** Whoever holds a key that leaked signs any tree: what the replayed entries say of keys counts at once. */
async function assertStanding(
  { log, signerFor }: Recovering,
  { newest }: Survey,
  { tx }: Replay,
): Promise<void> {
  if (newest.size === 0n) return;
  try {
    assertNotRetired(await signerFor(tx, log, newest.size), newest);
  } catch (error) {
    // What was in force on the way may be held by nobody any more; one that is comes further on.
    if (!(error instanceof Problem && error.code === "signer-unavailable")) throw error;
  }
}

/** From the block that the checkpoint ends in to the target: before that nobody may write. */
async function takeLast(recovering: Recovering, found: Survey, replay: Replay): Promise<void> {
  const { newest, target } = found;
  for (const block of blocks(lastBlock(newest.size), target.size)) {
    if (block.index * WIDTH + BigInt(block.width) <= replay.head.size) continue;
    const entries = await readProven(recovering, block, rootOf(found, block.index));
    const first = block.index * WIDTH;
    const signed = newest.size < first ? 0 : Number(newest.size - first);
    await replay.take(first, entries.slice(0, signed));
    if (await replay.takeProven(first + BigInt(signed), entries.slice(signed))) continue;
    const told = `entry ${replay.head.size} is claimed, and neither signed nor what append would write`;
    throw new RecoveryError("claim-unproven", told);
  }
}

/** Read back from the rows: what the database will say is what was signed. */
async function assertRoot(
  tx: Transaction,
  { log, hash }: Recovering,
  sealed: Seal,
  { size, root }: Survey["target"],
): Promise<void> {
  let { edge } = sealed;
  for await (const page of extend(tx, log, sealed, size, hash)) ({ edge } = page);
  if (equal(edgeRoot(edge, hash), root)) return;
  throw new RecoveryError("log-forked", `the database gives another root at ${size}`);
}

/** Before the entries that no checkpoint covers. */
async function startAfter(
  { sql, log }: Recovering,
  { head, target, leaf }: Survey,
): Promise<{ size: bigint; leaf: Uint8Array; at: string }> {
  // When the last signed entry was written is not looked up: what it would refuse, recovery refuses.
  if (head < target.size) return { size: target.size, leaf, at: "" };
  const found = await readHead(sql, log);
  if (found === undefined) throw new Error("recover: a log that went away");
  return found;
}

/** A sealer that is at work looks like one that died, until its transaction is seen. */
async function isWanting(recovering: Recovering, found: Survey): Promise<boolean> {
  const { log, sql } = recovering;
  if (found.head < found.target.size) return true;
  const sealed = await transact(sql, (tx) => readSeal(tx, log));
  return sealed.size < found.newest.size || (await stillSurplus(recovering, found));
}

/** What a sealer is putting just now looks like surplus once, and not again when its entries are seen. */
async function stillSurplus(recovering: Recovering, found: Survey): Promise<boolean> {
  const suspects = new Set(await surplus(recovering, found));
  return suspects.size > 0 && (await surplus(recovering, found)).some((path) => suspects.has(path));
}

/** Paths that are in the way of a log that is not behind. */
async function surplus(recovering: Recovering, { seal }: Survey): Promise<string[]> {
  const { sql, log } = recovering;
  return await transact(sql, async (tx) => {
    const head = await readHead(tx, log);
    return head === undefined ? [] : await leftovers(tx, recovering, seal, head.size);
  });
}

/** Nobody is told that a log is whole before the guard finds it so. */
async function assertAgreed({ guard, log, sql }: Recovering): Promise<void> {
  await transact(sql, async (tx) => {
    const head = await lockHead(tx, log);
    if (head === undefined) throw new Error("recover: a log that went away");
    await guard.assertWritable(tx, log, head);
  });
}

/** Of a log that ends there: what came from the archive and no checkpoint covers. */
function unsignedOf({ head, newest }: Survey, after: bigint): bigint {
  return after - (head > newest.size ? head : newest.size);
}

/** Index of the first entry of the block that a log of this size ends in. */
function lastBlock(size: bigint): bigint {
  return size === 0n ? 0n : ((size - 1n) / WIDTH) * WIDTH;
}

function rootOf({ blockRoots }: Survey, index: bigint): Uint8Array {
  const root = blockRoots.get(index);
  if (root === undefined) throw new Error("recover: a block that was not surveyed");
  return root;
}
