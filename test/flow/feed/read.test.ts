import fc from "fast-check";
import { afterAll, beforeAll, expect, test } from "vitest";
import { parseSignedComputeMs } from "../../../src/core/charge.ts";
import type { Sum } from "../../../src/core/feed/acknowledgement.ts";
import { eventsOf, type FeedEvent } from "../../../src/core/feed/event.ts";
import { eventId } from "../../../src/core/feed/id.ts";
import { Problem } from "../../../src/core/problem.ts";
import { SOURCES } from "../../../src/flow/export/sources.ts";
import { countFed } from "../../../src/flow/feed/count.ts";
import { type FeedReader, type FeedSearch, feed, follow } from "../../../src/flow/feed/read.ts";
import {
  openSealWatch,
  type SealWatch,
  WAITERS_OF_ONE_MAX,
} from "../../../src/flow/feed/seal-watch.ts";
import { snapshot } from "../../../src/flow/usage/show.ts";
import { BILLING_FROM, FedLog } from "../../core/feed/log.ts";
import { type FreshDatabase, freshDatabase } from "../../postgres.ts";

const LOG = "ab".repeat(16);
/** Who stays, and may read. */
const stays = (id = "p_portal"): FeedReader => ({
  id,
  signal: new AbortController().signal,
  assertMayRead: async () => undefined,
});
/** It reaches no further than the database is sealed. */
const archive = { latestCheckpoint: async () => undefined };

let db: FreshDatabase;
let seals: SealWatch;
let ledger: FedLog;
/** All that is sealed. */
let expected: FeedEvent[];

beforeAll(async () => {
  db = await freshDatabase();
  seals = openSealWatch({ sql: db.reader });
  ledger = new FedLog(LOG);
  const usages = Array.from({ length: 30 }, (_, i) => {
    const more = { namespace: 1 + (i % 3), duration: BigInt(1_000 + 7 * i) };
    ledger.build(i % 4 === 3 ? "own" : "hosted", more);
    return ledger.build("hosted", { finished: `2026-10-${15 + (i % 16)}T12:00:00.000Z` });
  });
  const [first, second] = usages;
  if (first === undefined || second === undefined) throw new Error("no usage");
  const credit = ledger.credit(first);
  ledger.closeMonth("2026-10-01");
  ledger.withdraw(ledger.size - 1n);
  ledger.close("2026-10-01");
  ledger.credit(second);
  ledger.credit(first, `${credit.index}/0`);
  const lines = Array.from({ length: 128 }, (_, i) => ({ amount: `${i + 1}.000001` }));
  ledger.adjust("2026-11-01", ...lines);
  ledger.build();
  await ledger.load(db.owner);
  await ledger.seal(db.owner);
  expected = oracle();
});
afterAll(async () => {
  seals.close();
  await db.drop();
});

/** Every event of every entry, from the ledger and not from the database. */
function oracle(): FeedEvent[] {
  const instance = { platform: "dotcom", unique_id: LOG, billing_from: BILLING_FROM } as const;
  const beside = { month: "2026-10-01", runnerId: "700" };
  return ledger.written.flatMap(({ entry }) => eventsOf(entry, instance, beside));
}

const feeding = () => ({ sql: db.reader, archive, seals, creditMinutes: undefined });
const read = (search: Partial<FeedSearch> = {}, reader = stays()) =>
  feed(feeding(), { log: LOG, cursor: 0n, limit: 500, waitMs: 0, ...search }, reader);

test("a page has the events of whole entries, says as of what it is, and where the next one begins", async () => {
  const page = await read();
  const { events, ...place } = page;
  const size = String(ledger.size);
  expect(place).toEqual({ log: LOG, as_of: size, sealed: true, next_cursor: size });
  expect(events).toEqual(expected);
  expect(expected.length).toBeGreaterThan(180);
  expect((await read({ cursor: ledger.size })).events).toEqual([]);
  await expect(read({ cursor: ledger.size + 1n })).rejects.toMatchObject({
    code: "beyond-checkpoint",
  });
  await expect(read({ log: "f".repeat(32) })).rejects.toMatchObject({ code: "not-found" });
});

/** How many events it asks for, and whether it dies before it has kept the page. */
const turn = fc.record({ limit: fc.integer({ min: 1, max: 150 }), dies: fc.boolean() });

test("a consumer that dies anywhere and resumes by its cursor takes every event once and in order", async () => {
  await fc.assert(
    fc.asyncProperty(fc.infiniteStream(turn), async (turns) => {
      const kept: FeedEvent[] = [];
      let cursor = 0n;
      for (const { dies, limit } of turns) {
        const page = await read({ cursor, limit });
        if (page.events.length > limit) {
          // Only the lines of one entry, which are never parted.
          expect(new Set(page.events.map(({ sequence }) => sequence.split(".")[0])).size).toBe(1);
        }
        if (dies) continue;
        // What is kept and the cursor behind it are kept together.
        kept.push(...page.events);
        cursor = BigInt(page.next_cursor);
        if (page.next_cursor === page.as_of) break;
      }
      expect(kept).toEqual(expected);
    }),
    { numRuns: 4 },
  );
});

test("nothing is told of months that were over before billing began, wherever that was moved before it came", async () => {
  const early = new FedLog("cd".repeat(16), "2026-12-01T00:00:00.000Z");
  early.moveBilling("2027-01-01T00:00:00.000Z");
  early.now = Date.parse("2027-02-04T00:00:00.000Z");
  for (const month of ["2026-11-01", "2026-12-01", "2027-01-01"]) {
    early.closeMonth(month);
    early.withdraw(early.size - 1n);
    early.close(month);
  }
  await early.load(db.owner);
  await early.seal(db.owner);
  const { events, next_cursor } = await read({ log: early.log });
  // A cut-off, its withdrawal, another one and the end: of the last month alone.
  const told = [4n, 3n, 2n, 1n].map((behind) => eventId(early.log, `${early.size - behind}/0`));
  expect(events.map(({ id }) => id)).toEqual(told);
  expect(next_cursor).toBe(String(early.size));
});

test("pages follow each other until one has nothing, and the next is read only when it is asked for", async () => {
  const search = { log: LOG, cursor: 0n, limit: 60, waitMs: 0 };
  const events: FeedEvent[] = [];
  const sizes: number[] = [];
  for await (const page of follow(feeding(), search, stays())) {
    sizes.push(page.events.length);
    events.push(...page.events);
  }
  expect(events).toEqual(expected);
  expect([sizes.length > 3, sizes.at(-1)]).toEqual([true, 0]);
});

/** By billing month, what the file for finance has of it as of a size; months of which nothing is billable left out. */
async function exported(asOf: bigint): Promise<Map<string, bigint>> {
  const sums = new Map<string, bigint>();
  await snapshot(db.reader, async (tx) => {
    const { columns, pages } = SOURCES.monthly_namespace({ tx, log: LOG, asOf, parameters: {} });
    const [month, amount] = ["date", "billable_compute_ms"].map((asked) =>
      columns.findIndex(({ name }) => name === asked),
    );
    for await (const page of pages) {
      for (const row of page) {
        const key = row[month ?? -1] ?? "";
        sums.set(key, (sums.get(key) ?? 0n) + parseSignedComputeMs(row[amount ?? -1] ?? ""));
      }
    }
  });
  return new Map([...sums].filter(([, sum]) => sum !== 0n));
}

test("T53: what the log counts of its events, and what they come to, is what the export has, up to any size", async () => {
  for (const upTo of [0n, 1n, 40n, ledger.size - 1n, ledger.size]) {
    const told = expected.filter(({ sequence }) => BigInt(sequence.slice(0, 19)) < upTo);
    const events = told.flatMap(({ data }) => ("compute_ms" in data ? [data] : []));
    const sums = new Map<string, Sum>();
    for (const { billing_month, compute_ms } of events) {
      const before = sums.get(billing_month) ?? { events: 0n, computeMs: 0n };
      const computeMs = before.computeMs + parseSignedComputeMs(compute_ms);
      sums.set(billing_month, { events: before.events + 1n, computeMs });
    }
    expect(await countFed(db.reader, LOG, upTo)).toEqual(sums);
    const amounts = [...sums].map(([month, { computeMs }]) => [month, computeMs] as const);
    expect(await exported(upTo)).toEqual(new Map(amounts));
  }
});

test("T49: what is written and not sealed is told by nobody, and when it is sealed it comes in its place", async () => {
  const size = ledger.size;
  ledger.build();
  ledger.build("own");
  const last = ledger.build();
  await ledger.load(db.owner);
  expect((await read({ cursor: size })).events).toEqual([]);
  const waiting = read({ cursor: size, waitMs: 20_000 });
  await ledger.seal(db.owner, size + 2n);
  const page = await waiting;
  expect([page.events.length, page.next_cursor]).toEqual([1, String(size + 2n)]);
  await ledger.seal(db.owner);
  const { events } = await read({ cursor: size + 2n });
  expect(events.map(({ sequence }) => BigInt(sequence.slice(0, 19)))).toEqual([last.index]);
  expected = oracle();
});

test("whoever waits hears of what comes, passes over what has no events, and is let go when they leave or time is over", async () => {
  const from = ledger.size;
  const started = performance.now();
  expect((await read({ cursor: from, waitMs: 300 })).events).toEqual([]);
  expect(performance.now() - started).toBeGreaterThanOrEqual(290);
  const gone = new AbortController();
  const left = read({ cursor: from, waitMs: 20_000 }, { ...stays(), signal: gone.signal });
  const many = Array.from({ length: 20 }, (_, i) =>
    read({ cursor: from, waitMs: 20_000 }, stays(`p_${i}`)),
  );
  gone.abort();
  expect((await left).next_cursor).toBe(String(from));
  // Nothing for a consumer: whoever waits goes on waiting.
  ledger.build("own");
  await ledger.load(db.owner);
  await ledger.seal(db.owner);
  ledger.build();
  await ledger.load(db.owner);
  await ledger.seal(db.owner);
  for (const page of await Promise.all(many)) {
    expect([page.events.length, page.next_cursor]).toEqual([1, String(from + 2n)]);
  }
  expected = oracle();
});

test("nobody waits for a service that stops, no more wait than it bears, and of one principal no more than their share", async () => {
  const own = openSealWatch({ sql: db.reader });
  const wait = (id: string) => own.grown(LOG, { beyond: ledger.size, ms: 60_000 }, stays(id));
  const principals = Array.from({ length: 1_000 / WAITERS_OF_ONE_MAX }, (_, i) => `p_${i}`);
  const waiting = principals.flatMap((id) => {
    return Array.from({ length: WAITERS_OF_ONE_MAX }, () => wait(id));
  });
  expect(await wait("p_0")).toBe(false);
  await expect(wait("p_new")).rejects.toMatchObject({ code: "busy" });
  own.close();
  expect(new Set(await Promise.all(waiting))).toEqual(new Set([false]));
  expect(await wait("p_new")).toBe(false);
});

test("whoever may no longer read is told so before the next page, also where they waited for it", async () => {
  const size = ledger.size;
  let may = true;
  const assertMayRead = async (): Promise<void> => {
    if (!may) throw new Problem("not-found");
  };
  const waiting = read({ cursor: size, waitMs: 20_000 }, { ...stays(), assertMayRead });
  const pages = follow(
    feeding(),
    { log: LOG, cursor: 0n, limit: 10, waitMs: 0 },
    { ...stays(), assertMayRead },
  );
  expect((await pages.next()).done).toBe(false);
  may = false;
  await expect(pages.next()).rejects.toMatchObject({ code: "not-found" });
  ledger.build();
  await ledger.load(db.owner);
  await ledger.seal(db.owner);
  await expect(waiting).rejects.toMatchObject({ code: "not-found" });
});

test("a stream's first page comes at once, and waits for nothing that it has not told", async () => {
  const search = { log: LOG, cursor: ledger.size, limit: 10, waitMs: 20_000 };
  const pages = follow(feeding(), search, stays());
  const start = performance.now();
  const { value } = await pages.next();
  expect([value?.next_cursor, value?.events]).toEqual([String(ledger.size), []]);
  expect(performance.now() - start).toBeLessThan(10_000);
});

test("a cursor that only the archive reaches is of a database that is behind, and not beyond all that is sealed", async () => {
  const asked = (size: bigint) => {
    const archive = { latestCheckpoint: async () => ({ size, note: "" }) };
    const search = { log: LOG, cursor: ledger.size + 2n, limit: 10, waitMs: 0 };
    return feed({ ...feeding(), archive }, search, stays());
  };
  await expect(asked(ledger.size + 2n)).rejects.toMatchObject({ code: "log-behind" });
  await expect(asked(ledger.size + 1n)).rejects.toMatchObject({ code: "beyond-checkpoint" });
});
