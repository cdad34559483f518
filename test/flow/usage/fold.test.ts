import { afterAll, beforeAll, expect, test } from "vitest";
import { type Refresh, refresh, refreshLoop, restMs } from "../../../src/flow/usage/fold.ts";
import { usage } from "../../../src/flow/usage/usage.ts";
import type { Sql } from "../../../src/store/connect.ts";
import { TestLedger } from "../../ledger.ts";
import { type FreshDatabase, freshDatabase } from "../../postgres.ts";
import { clock, HOSTED } from "../history.ts";
import { expectEqualToRecount } from "./counted.ts";

let db: FreshDatabase;
let logs = 0;

beforeAll(async () => {
  db = await freshDatabase();
});
afterAll(async () => {
  await db.drop();
});

const turn = async (): Promise<Refresh> => await refresh({ sql: db.writer, clock });

function newLedger(): TestLedger {
  logs += 1;
  const ledger = new TestLedger(logs.toString(16).padStart(32, "0"));
  ledger.card("hosted", { small: "1/3", "*": "2" });
  return ledger;
}

async function watermarkOf(log: string): Promise<bigint | undefined> {
  const [row] = await db.reader<{ size: bigint }[]>`select size from watermarks where log = ${log}`;
  return row?.size;
}

/** Resolves once somebody waits for a lock that another holds. */
async function whenBlocked(sql: Sql): Promise<void> {
  for (;;) {
    const [row] = await sql`select 1 from pg_locks where not granted and database =
      (select oid from pg_database where datname = current_database())`;
    if (row !== undefined) return;
  }
}

test("T48: while views are refreshed readers read, writers write, and a second refresher leaves", async () => {
  const ledger = newLedger();
  const agent = ledger.enrol(1, [HOSTED]);
  ledger.report(agent, { job: 1, runner: HOSTED });
  await ledger.load(db.owner);
  await ledger.seal(db.owner);
  await turn();
  ledger.report(agent, { job: 2, runner: HOSTED });
  await ledger.load(db.owner);
  await ledger.seal(db.owner);

  // The refresh is stopped at its last effect: all that it ever locks is locked.
  const blocker = await db.superuser.reserve();
  await blocker`begin`;
  await blocker`lock table watermarks in share mode`;
  const refreshing = turn();
  await whenBlocked(db.superuser);

  const seen = await usage({ sql: db.reader, clock }, { log: ledger.log, group: ["namespace"] });
  expect(seen.totals.jobs).toBe("1");
  expect(await turn()).toBe("skipped");
  ledger.report(agent, { job: 3, runner: HOSTED });
  await ledger.load(db.owner);
  await ledger.seal(db.owner);

  await blocker`rollback`;
  blocker.release();
  expect(await refreshing).toMatchObject({ logs: 1, entries: 1n, buckets: 1 });
  const after = await usage({ sql: db.reader, clock }, { log: ledger.log, group: ["namespace"] });
  expect(after.totals.jobs).toBe("2");
});

test("T49: an entry that commits late is never passed by", async () => {
  const ledger = newLedger();
  const agent = ledger.enrol(1, [HOSTED]);
  ledger.report(agent, { job: 1, runner: HOSTED });
  await ledger.load(db.owner);
  await ledger.seal(db.owner);
  const sealed = ledger.size;
  // Committed but unsealed entries, and one in a transaction that is still open, stay behind the mark.
  ledger.report(agent, { job: 2, runner: HOSTED });
  await ledger.load(db.owner);
  ledger.report(agent, { job: 3, runner: HOSTED });
  await db.owner.begin(async (tx) => {
    await ledger.loadIn(tx);
    await turn();
    expect(await watermarkOf(ledger.log)).toBe(sealed);
  });
  await ledger.seal(db.owner);
  await turn();
  expect(await watermarkOf(ledger.log)).toBe(ledger.size);
  await expectEqualToRecount(db, ledger, ledger.size);
});

test("T55: a hot namespace has no counter to wait for: usage is written while all its buckets are locked", async () => {
  const ledger = newLedger();
  const agent = ledger.enrol(1, [HOSTED]);
  ledger.report(agent, { job: 1, runner: HOSTED });
  await ledger.load(db.owner);
  await ledger.seal(db.owner);
  await turn();
  await db.superuser.begin(async (tx) => {
    await tx`lock table usage_buckets in exclusive mode`;
    for (let job = 2; job <= 20; job += 1) ledger.report(agent, { job, runner: HOSTED });
    await ledger.load(db.owner);
  });
  const fresh = { log: ledger.log, group: ["namespace"], fresh: true } as const;
  expect((await usage({ sql: db.reader, clock }, fresh)).totals.jobs).toBe("20");
});

test("nothing new changes nothing, and a log without usage moves its watermark all the same", async () => {
  await turn();
  expect(await turn()).toEqual({ logs: 0, entries: 0n, buckets: 0 });
  const ledger = newLedger();
  await ledger.load(db.owner);
  await ledger.seal(db.owner);
  expect(await turn()).toEqual({ logs: 1, entries: 2n, buckets: 0 });
});

/** Usage rows without a log under them: here only sums are looked at. */
async function insertCharges(log: string, from: number, to: number, order: "asc" | "desc") {
  const factor = order === "asc" ? db.owner`n` : db.owner`(100001 - n)`;
  await db.owner`
    insert into entries (
      log, index, kind, at, prev, leaf, bytes, tracking, job_id, project_id, namespace_id,
      runner_uuid, runner_id, machine_type, duration_ms, compute_ms, not_billable, usage_month,
      billing_month, finished_at
    )
    select
      ${log}, n - 1, 'usage', '2026-11-01Z', decode(repeat('00', 32), 'hex'),
      decode(repeat('00', 32), 'hex'), '\\x00', 'hosted', n, 1, 1, 'r', 1, 'm', ${factor},
      ${factor} * 0.008, '', '2026-11-01', '2026-11-01', '2026-11-01Z'
    from generate_series(${from}::bigint, ${to}::bigint) as n`;
  await db.owner`
    insert into seals (log, size, leaf, edge)
    values (${log}, ${BigInt(to)}, decode(repeat('00', 32), 'hex'), '\\x00')
    on conflict (log) do update set size = excluded.size`;
}

test("T29: factor 0.008 over 100,000 builds sums to the exact rational, forwards and backwards, in any steps", async () => {
  const [forwards, backwards] = ["f".repeat(32), "e".repeat(32)];
  await insertCharges(forwards, 1, 1, "asc");
  await turn();
  await insertCharges(forwards, 2, 70_000, "asc");
  await insertCharges(backwards, 1, 100_000, "desc");
  await turn();
  await insertCharges(forwards, 70_001, 100_000, "asc");
  await turn();
  const rows = await db.reader`
    select compute_ms::text, duration_ms::text from usage_buckets
    where log in ${db.reader([forwards, backwards])}`;
  // 0.008 × (1 + 2 + … + 100,000)
  const exact = { compute_ms: "40000400.000000", duration_ms: "5000050000" };
  expect(rows.map((row) => ({ ...row }))).toEqual([exact, exact]);
});

test("a log that cannot be folded stays behind alone, and is told until it can", async () => {
  const [bad, good] = [newLedger(), newLedger()];
  const agents = [bad, good].map((ledger) => ledger.enrol(1, [HOSTED]));
  let job = 0;
  const round = async (): Promise<[Refresh, string[]]> => {
    job += 1;
    for (const [i, ledger] of [bad, good].entries()) {
      const agent = agents[i];
      if (agent !== undefined) ledger.report(agent, { job, runner: HOSTED });
      await ledger.load(db.owner);
      await ledger.seal(db.owner);
    }
    const left: string[] = [];
    const onLeft = (error: unknown, log: string): void => {
      left.push(`${log} ${error instanceof Error && error.message}`);
    };
    return [await refresh({ sql: db.writer, clock, onLeft }), left];
  };
  expect(await round()).toMatchObject([{ logs: 2 }, []]);
  await db.superuser`update usage_buckets set compute_ms = ${"9".repeat(40)} where log = ${bad.log}`;

  expect(await round()).toMatchObject([{ logs: 1 }, [`${bad.log} numeric field overflow`]]);
  expect(await watermarkOf(good.log)).toBe(good.size);
  expect(await watermarkOf(bad.log)).toBe(bad.size - 1n);
  await expect(turn()).rejects.toThrow("numeric field overflow");

  await db.superuser`update usage_buckets set compute_ms = 0 where log = ${bad.log}`;
  expect(await round()).toMatchObject([{ logs: 2 }, []]);
  expect(await watermarkOf(bad.log)).toBe(bad.size);
});

test("a service from before adjustments folds nothing, so that none is passed by", async () => {
  const before = db.writer`
    insert into usage_buckets as b
    select *
    from usage_buckets
    where false
    on conflict on constraint usage_buckets_pkey do update set jobs = b.jobs + excluded.jobs`;
  await expect(before).rejects.toThrow('constraint "usage_buckets_pkey"');
});

test("the loop refreshes until it is stopped, and outlives a refresh that fails", async () => {
  const stop = new AbortController();
  const broken = Object.assign(Object.create(db.writer), {
    begin: () => Promise.reject(new Error("no connection")),
  });
  const seen: string[] = [];
  await refreshLoop({
    get sql() {
      return seen.length === 0 ? broken : db.writer;
    },
    clock,
    signal: stop.signal,
    intervalMs: 1,
    onLeft: () => seen.push("left"),
    onError: () => seen.push("failed"),
    onRefresh: () => {
      seen.push("refreshed");
      if (seen.length === 3) stop.abort();
    },
  });
  expect(seen).toEqual(["failed", "refreshed", "refreshed"]);
});

test("a refresh takes at most a fifth of the time, and is never put off by more than a minute", () => {
  expect(restMs(3, 1_000)).toBe(1_000);
  expect(restMs(2_000, 1_000)).toBe(8_000);
  expect(restMs(3_600_000, 1_000)).toBe(60_000);
});
