import { randomBytes } from "node:crypto";
import fc from "fast-check";
import { afterAll, beforeAll, expect, test } from "vitest";
import { type Body, type Entry, encodeEntry, GENESIS_PREV } from "../../src/core/entry.ts";
import { fold } from "../../src/store/buckets.ts";
import type { Transaction } from "../../src/store/connect.ts";
import { readPostedUsage, readQuotaEntries, readTail } from "../../src/store/quotas.ts";
import { refreshViews } from "../../src/store/rollups.ts";
import { type FreshDatabase, freshDatabase } from "../postgres.ts";

const LOG = "0123456789abcdef0123456789abcdef";
const SALT = `${"A".repeat(22)}==`;
const NAMESPACES = 2_000;
const FOLDED = BigInt(4 * NAMESPACES);

let database: FreshDatabase;
const hash = (): Uint8Array => new Uint8Array(randomBytes(32));

function written(kind: "quota" | "pack", body: Body<"quota"> | Body<"pack">, index = 0n) {
  const at = "2026-11-20T12:00:00.000Z";
  return encodeEntry({ at, body, index, kind, log: LOG, prev: GENESIS_PREV } as Entry);
}

function quota(namespace_id: string, source = "portal"): Body<"quota"> {
  return {
    ...{ approval: "", beyond: "stop", by: "p_test", cap: "", grace_minutes: "0" },
    effective_from: "2026-01-01T00:00:00.000Z",
    ...{ monthly_minutes: "10", namespace_id, salt: SALT, source, source_version: "1" },
  };
}

function pack(namespace_id: string, source: string, pack_id: string): Body<"pack"> {
  return {
    ...{
      approval: "",
      by: "p_test",
      expires_in: "2027-01-01",
      minutes: "5",
      namespace_id,
      pack_id,
    },
    ...{ purchased_in: "2026-01-01", salt: SALT, source, source_version: "1" },
  };
}

beforeAll(async () => {
  database = await freshDatabase();
  // Without statistics, as in the first hour of a log.
  await database.superuser`alter table entries set (autovacuum_enabled = off)`;
  const rows = Array.from({ length: 5 * NAMESPACES }, (_, i) => {
    const namespace = String(1 + (i % NAMESPACES));
    const common = { log: LOG, index: BigInt(i), at: new Date(i), prev: hash(), leaf: hash() };
    if (i < NAMESPACES)
      return { ...common, kind: "quota", bytes: written("quota", quota(namespace)) };
    const usage = {
      ...{ tracking: "hosted", job_id: BigInt(i), project_id: 1n, namespace_id: BigInt(namespace) },
      ...{ runner_uuid: "r", runner_id: 1n, machine_type: "m", duration_ms: 1n, compute_ms: "2.5" },
      ...{ not_billable: "", usage_month: "2026-11-01", billing_month: "2026-11-01" },
      finished_at: new Date(i),
    };
    return { ...common, kind: "usage", bytes: hash(), ...usage };
  });
  for (let from = 0; from < rows.length; from += NAMESPACES) {
    await database.owner`insert into entries ${database.owner(rows.slice(from, from + NAMESPACES))}`;
  }
  await database.writer.begin(async (tx) => {
    await fold(tx, { log: LOG, from: 0n, to: FOLDED });
    await refreshViews(tx);
  });
});

afterAll(() => database.drop());

/** Looks as the service does, and counts the rows of each table that it read, by whatever plan. */
async function look<T>(work: (tx: Transaction) => Promise<T>) {
  return await database.reader.begin(async (tx) => {
    const before = await rowsRead(tx);
    const found = await work(tx);
    const after = await rowsRead(tx);
    return { found, entries: after.entries - before.entries, view: after.view - before.view };
  });
}

/** Of this connection: what an earlier transaction of it read may still be among it. */
async function rowsRead(tx: Transaction): Promise<{ entries: number; view: number }> {
  const rows = await tx<{ name: string; read: number }[]>`
    select relname as name, (coalesce(seq_tup_read, 0) + coalesce(idx_tup_fetch, 0))::int as read
    from pg_stat_xact_user_tables`;
  const read = new Map(rows.map(({ name, read }) => [name, read]));
  return {
    entries: read.get("entries") ?? 0,
    view: read.get("open_namespace_monthly_usages") ?? 0,
  };
}

test("a namespace's own entries are found without reading those of others", async () => {
  const read = await look((tx) => readQuotaEntries(tx, LOG, ["7", "8", "none"]));
  expect(read.found).toHaveLength(2);
  expect(read.entries).toBe(2);
});

test("a namespace's usage is read from its own row of the view, and from no more entries than are not folded yet", async () => {
  const tail = { from: FOLDED, to: FOLDED + 100n };
  const asked = ["7", "2000"].map((namespace) => ({ namespace, since: "2026-11-01" }));
  const { found, ...read } = await look((tx) => readPostedUsage(tx, LOG, tail, asked));
  expect(found.sort((a, b) => Number(a.last - b.last))).toEqual([
    { namespace: "2000", month: "2026-11-01", amount: "7.500000", last: FOLDED - 1n },
    { namespace: "7", month: "2026-11-01", amount: "10.000000", last: FOLDED + 6n },
  ]);
  expect(read).toEqual({ entries: 100, view: 2 });
});

test("what is new is read by its range alone", async () => {
  const range = { from: FOLDED, to: FOLDED + 50n };
  const read = await look((tx) => readTail(tx, LOG, range, ["7"]));
  expect(read.found).toEqual([
    {
      ...{ kind: "usage", index: FOLDED + 6n, namespace: "7", job: FOLDED + 6n },
      ...{ month: "2026-11-01", amount: "2.500000" },
    },
  ]);
  expect(read.entries).toBe(50);
});

/** Milliseconds of the fastest of some: what else this machine does is not measured. */
async function fastest(work: (tx: Transaction) => Promise<unknown>): Promise<number> {
  const times: number[] = [];
  for (let i = 0; i < 5; i += 1) {
    const start = performance.now();
    await database.reader.begin(work);
    times.push(performance.now() - start);
  }
  return Math.min(...times);
}

test("an unfolded tail is read once, however many namespaces are asked about", async () => {
  const range = { from: 0n, to: BigInt(5 * NAMESPACES) };
  const asked = Array.from({ length: 500 }, (_, i) => ({
    namespace: String(i + 1),
    since: "2026-11-01",
  }));
  const names = asked.map(({ namespace }) => namespace);
  // Each entry held against each namespace takes fifty times as long.
  const one = await fastest((tx) => readPostedUsage(tx, LOG, range, asked.slice(0, 1)));
  expect(await fastest((tx) => readPostedUsage(tx, LOG, range, asked))).toBeLessThan(15 * one);
  const tail = await fastest((tx) => readTail(tx, LOG, range, ["1"]));
  expect(await fastest((tx) => readTail(tx, LOG, range, names))).toBeLessThan(15 * tail);
});

async function namespaceOf(bytes: Uint8Array): Promise<string | null | undefined> {
  const [row] = await database.reader<{ namespace: string | null }[]>`
    select entry_namespace(${bytes}) as namespace`;
  return row?.namespace;
}

/** Texts that look like JSON, with whatever else a source may call itself. */
const hostile = fc
  .array(
    fc.oneof(
      fc.constantFrom(
        '"namespace_id":"1"',
        "namespace_id",
        '"',
        "\\",
        ":",
        '\\"',
        "\\\\",
        "é",
        "🏃",
        "1",
      ),
      fc.string({ unit: "grapheme", maxLength: 3 }),
    ),
    { maxLength: 8 },
  )
  .map((parts) => parts.join("").replace(/[\p{Cc}\p{Cs}]/gu, ""));

test("the namespace of an entry is the member of its body, whatever its other texts say", async () => {
  await fc.assert(
    fc.asyncProperty(
      hostile,
      hostile,
      fc.bigInt({ min: 0n, max: 2n ** 63n - 1n }),
      async (source, pack_id, id) => {
        expect(await namespaceOf(written("quota", quota(String(id), source)))).toBe(String(id));
        expect(await namespaceOf(written("pack", pack(String(id), source, pack_id)))).toBe(
          String(id),
        );
      },
    ),
    { numRuns: 200 },
  );
});

test("bytes that are no entry have no namespace, and raise nothing", async () => {
  await fc.assert(
    fc.asyncProperty(fc.uint8Array({ minLength: 1, maxLength: 64 }), async (bytes) => {
      expect(await namespaceOf(bytes)).toBeNull();
    }),
    { numRuns: 50 },
  );
});
