/**
 * `minutebook check`: every column that the service reads, against the bytes that were hashed. Asks
 * nothing of typed columns, rollups or heads but whether they are what the entries give (DESIGN §15).
 * Signatures on reports are the auditor's to verify, over the archive.
 */
import type { Hash, Sha256 } from "../../core/hash.ts";
import { overdrawn } from "../../store/adjustments.ts";
import type { Sql } from "../../store/connect.ts";
import { logsNamed } from "../../store/log-names.ts";
import { COUNTED, recount } from "../../store/recounts.ts";
import {
  type CheckpointRow,
  checkpointRows,
  type HeadRow,
  headRow,
  openSnapshot,
  type Snapshot,
  sealRow,
} from "../../store/snapshots.ts";
import { readWatermark, type Watermark } from "../../store/watermarks.ts";
import { compareAccess } from "./access.ts";
import { differences, finding } from "./compare.ts";
import type { CheckEvent, Finding, Summary } from "./event.ts";
import { compareMonths } from "./months.ts";
import { type Notary, Tree } from "./tree.ts";
import { Walk, type WalkedHead } from "./walk.ts";

export interface CheckOptions {
  hash: Sha256;
  /** Absent: what notes say is compared, and that nobody looked at their signatures is said. */
  notary?: Notary;
}

/**
 * One REPEATABLE READ snapshot, constant memory, every log from index 0. Goes on after a finding; the
 * last event is the summary.
 */
export async function* check(
  { sql }: { sql: Sql },
  options: CheckOptions,
): AsyncGenerator<CheckEvent, void> {
  const snapshot = await openSnapshot(sql);
  let [findings, unread, unsigned, entries] = [0, 0, 0, 0n];
  try {
    const logs = await logsNamed(snapshot.sql);
    for (const log of logs) {
      for await (const event of checkLog(snapshot, log, options)) {
        if (event.kind === "finding") findings += 1;
        else if (event.kind === "unread") unread += 1;
        else if (event.kind === "unsigned") unsigned += 1;
        // The last progress of a log counts all of its entries.
        else if (event.index === event.size) entries += BigInt(event.size);
        yield event;
      }
    }
    const unproven = unread > 0 || unsigned > 0 || entries === 0n ? 2 : 0;
    const exit = findings > 0 ? 1 : unproven;
    yield {
      kind: "summary",
      logs: logs.length,
      entries: String(entries),
      findings,
      unread,
      unsigned,
      exit,
    };
  } finally {
    await snapshot.end();
  }
}

async function* checkLog(
  snapshot: Snapshot,
  log: string,
  options: CheckOptions,
): AsyncGenerator<Exclude<CheckEvent, Summary>> {
  const head = await headRow(snapshot.sql, log);
  const watermark = await readWatermark(snapshot.sql, log);
  const checkpoints = await snapshot.stream<CheckpointRow>("checkpoints", checkpointRows(log));
  const tree = new Tree(log, checkpoints, options);
  const walk = await Walk.start(snapshot, log, options.hash);
  let folded: Hash | undefined;
  for (let rows = await walk.page(); rows.length > 0; rows = await walk.page()) {
    const leaves: Hash[] = [];
    for (const row of rows) {
      yield* walk.entry(row);
      leaves.push(walk.head.leaf);
      if (walk.head.size === watermark?.size) folded = walk.head.leaf;
    }
    yield* walk.unclaimed();
    yield* tree.grow(leaves);
    const { size } = walk.head;
    const known = head?.size ?? 0n;
    if (size < known) yield { kind: "progress", log, index: String(size), size: String(known) };
  }
  yield* walk.end(head?.leaf);
  yield* compareHead(log, walk.head, head);
  yield* tree.end(await sealRow(snapshot.sql, log));
  yield* compareWatermark(log, watermark, tree.sealedSize, folded);
  yield* compareSums(snapshot, log, watermark?.size ?? 0n);
  yield* compareLeft(snapshot, log);
  yield* compareMonths(snapshot.sql, log);
  yield* compareAccess(snapshot, log);
  const size = String(walk.head.size);
  yield { kind: "progress", log, index: size, size };
}

function* compareHead(
  log: string,
  walked: WalkedHead,
  head: HeadRow | undefined,
): Generator<Finding> {
  const place = { log, table: "heads", index: walked.size - 1n };
  if (head !== undefined) yield* differences(place, { ...walked }, head);
  else if (walked.size > 0n) yield finding(place, "size", walked.size, null);
}

/** Folded is at most what is sealed, and the hash of its last entry says which entry that is. */
function* compareWatermark(
  log: string,
  watermark: Watermark | undefined,
  sealed: bigint,
  folded: Hash | undefined,
): Generator<Finding> {
  if (watermark === undefined) return;
  const { size, leaf } = watermark;
  const place = { log, table: "watermarks", index: size - 1n };
  if (size > sealed) yield finding(place, "size", sealed, size);
  yield* differences(place, { leaf: folded ?? null }, { leaf });
}

/** The walk has proven the columns that are summed here: what differs now is the sum. */
async function* compareSums(
  snapshot: Snapshot,
  log: string,
  size: bigint,
): AsyncGenerator<Finding> {
  for (const counted of COUNTED) {
    const [table] = counted;
    const stream = await recount(snapshot, counted, log, size);
    for (let page = await stream.page(); page.length > 0; page = await stream.page()) {
      for (const { position, column, expected, found } of page) {
        yield finding({ log, table, index: position }, column, expected, found);
      }
    }
    await stream.close();
  }
}

/** The walk has proven the rows that are read here: what is wrong now is what their entries say. */
async function* compareLeft(snapshot: Snapshot, log: string): AsyncGenerator<Finding> {
  const stream = await overdrawn(snapshot, log);
  for (let page = await stream.page(); page.length > 0; page = await stream.page()) {
    for (const { position, left } of page) {
      const place = { log, table: "adjustments", index: position };
      yield finding(place, "amount", "no more than was charged", `${left} left`);
    }
  }
  await stream.close();
}
