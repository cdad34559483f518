/** Pages of the feed: events of sealed entries from a cursor on, now or as soon as there are any. */

import { decodeEntry } from "../../core/entry.ts";
import { eventsOf, type FeedEvent, type Instance } from "../../core/feed/event.ts";
import { Problem } from "../../core/problem.ts";
import type { Sql, Transaction } from "../../store/connect.ts";
import { type FedEntry, readFed } from "../../store/feed.ts";
import { listLogs } from "../../store/logs.ts";
import { decodedAs, snapshot } from "../usage/show.ts";
import type { SealWatch } from "./seal-watch.ts";

export interface Feeding {
  /** As reader. */
  sql: Sql;
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

/** Entries cursor … next_cursor−1, of which as_of are sealed. */
export interface FeedPage {
  log: string;
  as_of: string;
  sealed: true;
  events: FeedEvent[];
  next_cursor: string;
}

/** Long enough for whoever has much to catch up with, and no longer than a token may be old. */
const FOLLOW_MS_MAX = 300_000;

/**
 * With nothing to tell, waits for it.
 *
 * @param signal the caller is gone
 * @throws Problem `not-found`, `beyond-checkpoint` for a cursor behind all that is sealed, `busy`
 */
export async function feed(
  feeding: Feeding,
  search: FeedSearch,
  signal: AbortSignal,
): Promise<FeedPage> {
  const until = performance.now() + search.waitMs;
  let page = await readPage(feeding, search);
  while (page.events.length === 0 && !signal.aborted) {
    const { asOf, next } = page;
    if (next === asOf) {
      const left = until - performance.now();
      const grown = left > 0 && (await feeding.seals.grown(search.log, asOf, left, signal));
      if (!grown) break;
    }
    page = await readPage(feeding, { ...search, cursor: next });
  }
  const { asOf, events, next } = page;
  const { log } = search;
  return { log, as_of: String(asOf), sealed: true, events, next_cursor: String(next) };
}

/** Page after page, until one has nothing; the next is read when it is asked for. @throws as `feed` */
export async function* follow(
  feeding: Feeding,
  search: FeedSearch,
  signal: AbortSignal,
): AsyncGenerator<FeedPage> {
  const end = performance.now() + FOLLOW_MS_MAX;
  let { cursor } = search;
  while (!signal.aborted && performance.now() < end) {
    const page = await feed(feeding, { ...search, cursor }, signal);
    yield page;
    if (page.events.length === 0) return;
    cursor = BigInt(page.next_cursor);
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
  { creditMinutes, sql }: Feeding,
  { cursor, limit, log }: FeedSearch,
): Promise<Page> {
  return await snapshot(sql, async (tx) => {
    const [listed] = await listLogs(tx, log);
    if (listed === undefined) throw new Problem("not-found");
    const { genesis, sealed: asOf } = listed;
    if (cursor > asOf) throw new Problem("beyond-checkpoint");
    const to = cursor + SCANNED < asOf ? cursor + SCANNED : asOf;
    const { platform, unique_id } = decodedAs("log", genesis).body;
    const instance = { platform, unique_id, creditMinutes };
    const events: FeedEvent[] = [];
    for await (const row of fed(tx, log, { from: cursor, to })) {
      const own = eventsIn(row, instance);
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

function eventsIn({ bytes, runner_id }: FedEntry, instance: Instance): FeedEvent[] {
  const entry = decodeEntry(bytes);
  if (typeof entry === "string") throw new Error("feed: an entry that cannot be read");
  return eventsOf(entry, instance, runner_id === null ? "" : String(runner_id));
}
