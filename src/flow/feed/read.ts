/** Pages of the feed: events of sealed entries from a cursor on, now or as soon as there are any. */

import { decodeEntry } from "../../core/entry.ts";
import { eventsOf, type FeedEvent, type Instance } from "../../core/feed/event.ts";
import { Problem } from "../../core/problem.ts";
import type { Archive } from "../../store/archive.ts";
import type { Sql, Transaction } from "../../store/connect.ts";
import { type FedEntry, readFed } from "../../store/feed.ts";
import { type ListedLog, listLogs } from "../../store/logs.ts";
import { readNewest } from "../../store/registers.ts";
import { standing } from "../control/standing.ts";
import { decodedAs, snapshot } from "../usage/show.ts";
import { assertReached } from "./reach.ts";
import type { SealWatch } from "./seal-watch.ts";

export interface Feeding {
  /** As reader. */
  sql: Sql;
  archive: Pick<Archive, "latestCheckpoint">;
  seals: SealWatch;
  /** Compute minutes that are one credit; undefined: none are shown. */
  creditMinutes: bigint | undefined;
}

export interface FeedSearch {
  log: string;
  /** Index of the first entry that is wanted. */
  cursor: bigint;
  /** Events of a page; the first entry of a page may alone have more. */
  limit: number;
  waitMs: number;
}

/** Who reads. */
export interface FeedReader {
  /** Opaque id of the principal. */
  id: string;
  /** They are gone, or their time is over. */
  signal: AbortSignal;
  /** Asked before each page: access may end while they read. @throws Problem where it has */
  assertMayRead(): Promise<void>;
}

/** Entries cursor … next_cursor−1, of which as_of are sealed. */
export interface FeedPage {
  log: string;
  as_of: string;
  sealed: true;
  events: FeedEvent[];
  next_cursor: string;
}

/** Where there are no events for long, a page without any says how far it is looked through. */
const SCAN_MS_MAX = 5_000;

/**
 * With nothing to tell, waits for it. A page without events whose next_cursor is less than its as_of is no end.
 *
 * @throws Problem `not-found`; as `assertReached` does for a cursor behind all that is sealed; `busy`, and as
 *   `assertMayRead` does
 */
export async function feed(
  feeding: Feeding,
  search: FeedSearch,
  reader: FeedReader,
): Promise<FeedPage> {
  const start = performance.now();
  const scanUntil = start + Math.max(search.waitMs, SCAN_MS_MAX);
  const read = async (cursor: bigint): Promise<Page> => {
    await reader.assertMayRead();
    return await readPage(feeding, { ...search, cursor });
  };
  let page = await read(search.cursor);
  while (page.events.length === 0 && !reader.signal.aborted) {
    const { asOf, next } = page;
    const now = performance.now();
    if (next < asOf && now >= scanUntil) break;
    if (next === asOf) {
      const wait = { beyond: asOf, ms: start + search.waitMs - now };
      const grown = wait.ms > 0 && (await feeding.seals.grown(search.log, wait, reader));
      if (!grown) break;
    }
    page = await read(next);
  }
  const { asOf, events, next } = page;
  const { log } = search;
  return { log, as_of: String(asOf), sealed: true, events, next_cursor: String(next) };
}

/**
 * Page after page, until nothing came for as long as is waited; the next is read when it is asked for. The first
 * comes at once, whatever it has.
 * @throws as `feed`
 */
export async function* follow(
  feeding: Feeding,
  search: FeedSearch,
  reader: FeedReader,
): AsyncGenerator<FeedPage> {
  let { cursor } = search;
  let waitMs = 0;
  while (!reader.signal.aborted) {
    const page = await feed(feeding, { ...search, cursor, waitMs }, reader);
    yield page;
    const isAll = page.events.length === 0 && page.next_cursor === page.as_of;
    if (isAll && waitMs === search.waitMs) return;
    cursor = BigInt(page.next_cursor);
    waitMs = search.waitMs;
  }
}

interface Page {
  asOf: bigint;
  events: FeedEvent[];
  next: bigint;
}

/** Entries that are looked through for one page: most of a log may have no events. */
const SCANNED = 100_000n;
/** In memory at once: an entry has up to 64 kB. */
const ROWS = 100;

/** In one snapshot: of two servers one may lag, and would lack entries that the other has sealed. */
async function readPage(
  { archive, creditMinutes, sql }: Feeding,
  { cursor, limit, log }: FeedSearch,
): Promise<Page> {
  return await snapshot(sql, async (tx) => {
    const [listed] = await listLogs(tx, log);
    if (listed === undefined) throw new Problem("not-found");
    const { sealed: asOf } = listed;
    await assertReached(archive, listed, cursor);
    const to = cursor + SCANNED < asOf ? cursor + SCANNED : asOf;
    const instance = { ...(await installation(tx, listed)), creditMinutes };
    const events: FeedEvent[] = [];
    for await (const row of fed(tx, log, { from: cursor, to })) {
      const own = await eventsIn(tx, row, instance);
      const isFull = events.length > 0 && events.length + own.length > limit;
      if (isFull) return { asOf, events, next: row.index };
      events.push(...own);
    }
    return { asOf, events, next: to };
  });
}

async function* fed(
  tx: Transaction,
  log: string,
  { from, to }: { from: bigint; to: bigint },
): AsyncGenerator<FedEntry> {
  let next = from;
  for (;;) {
    const rows = await readFed(tx, log, { from: next, to, limit: ROWS });
    yield* rows;
    const last = rows.at(-1);
    if (last === undefined || rows.length < ROWS) return;
    next = last.index + 1n;
  }
}

/** As the newest entries say, whatever page is read: core/feed/event.ts says why. */
async function installation(tx: Transaction, { genesis, log }: ListedLog): Promise<Instance> {
  const { billing_from, platform, unique_id } = decodedAs("log", genesis).body;
  const mode = await readNewest(tx, log, "mode");
  const moved = mode && decodedAs("mode", mode.bytes).body;
  return { platform, unique_id, billing_from: moved?.billing_from ?? billing_from };
}

async function eventsIn(
  tx: Transaction,
  { bytes, runner_id }: FedEntry,
  instance: Instance,
): Promise<FeedEvent[]> {
  const entry = decodeEntry(bytes);
  if (typeof entry === "string") throw new Error("feed: an entry that cannot be read");
  const runnerId = runner_id === null ? undefined : String(runner_id);
  if (entry.kind !== "month_closing_withdrawn") return eventsOf(entry, instance, { runnerId });
  const closing = await standing(tx, entry.log, "month_closing", BigInt(entry.body.closing));
  return eventsOf(entry, instance, { month: closing?.body.month });
}
