/** The process' copy of the ledger's figures while the database is away, silent, or another one. */
import { afterAll, afterEach, beforeAll, expect, test } from "vitest";
import { startPostgres } from "../../../src/embedded.ts";
import { type Ledger, openLedger } from "../../../src/flow/quota/ledger.ts";
import { connect, type Sql } from "../../../src/store/connect.ts";
import type { TestLedger } from "../../ledger.ts";
import { type FreshDatabase, freshDatabase, startCluster } from "../../postgres.ts";
import { HOSTED } from "../history.ts";
import { LIMIT, newLedger, switchable } from "./logs.ts";
import { countedOf } from "./oracle.ts";

const DAY_MS = 86_400_000;

let db: FreshDatabase;
let restored: FreshDatabase;
let time = Date.UTC(2026, 10, 28);
const failures: unknown[] = [];
const opened: Ledger[] = [];

beforeAll(async () => {
  [db, restored] = await Promise.all([freshDatabase(), freshDatabase()]);
});
afterEach(async () => {
  await Promise.all(opened.splice(0).map((ledger) => ledger.close()));
  failures.length = 0;
});
afterAll(() => Promise.all([db.drop(), restored.drop()]));

function open(sql: Sql, pollMs = DAY_MS): Ledger {
  const failed = (error: unknown): void => {
    failures.push(error);
  };
  const ledger = openLedger({ sql, clock: { now: () => time }, failed, pollMs });
  opened.push(ledger);
  return ledger;
}

/** A limit, and a build for each of these jobs, in the database. */
async function written(sql: Sql, jobs: readonly number[], log?: string): Promise<TestLedger> {
  const { ledger, agent } = newLedger(log);
  ledger.append("quota", LIMIT);
  for (const job of jobs) ledger.report(agent, { job, runner: HOSTED });
  await ledger.load(sql);
  return ledger;
}

/** Until no statement of this database waits for a lock. */
async function untilNobodyWaits(): Promise<void> {
  for (;;) {
    const waiting = await db.superuser`
      select from pg_stat_activity
      where datname = current_database() and wait_event_type = 'Lock'`;
    if (waiting.length === 0) return;
  }
}

async function expectCounted(copy: Ledger, ledger: TestLedger, size = ledger.size) {
  time += 1;
  const held = await copy.hold({ log: ledger.log, namespace: "1" }, { readSince: time });
  const { jobs: _, touched, ...facts } = countedOf(ledger, "1", size);
  expect(held).toMatchObject({ asOf: size, readAt: time, touched, facts });
  return held;
}

test("the database is away: what is known is told with its age, the rest is busy; it comes back, and all is read anew", async () => {
  const cluster = await startCluster();
  const owner = connect(cluster.embedded.urls.owner, { max: 1 });
  const ledger = await written(owner, [1, 2]);
  await owner.end();
  const first = connect(cluster.embedded.urls.reader, { max: 2 });
  const standing = switchable(first);
  const copy = open(standing.sql, 1);
  const known = { log: ledger.log, namespace: "1" };
  const { facts, readAt } = await expectCounted(copy, ledger);
  await cluster.embedded.kill9();
  time += 60_000;
  for (const _ of [1, 2, 3]) {
    const held = await copy.hold(known, { readSince: time, asOf: 1_000n });
    expect(held).toMatchObject({ readAt, asOf: ledger.size, facts });
  }
  const unknown = copy.hold({ ...known, namespace: "2" });
  await expect(unknown).rejects.toMatchObject({ code: "busy" });
  expect(failures.length).toBeGreaterThan(0);

  const again = await startPostgres({ folder: cluster.folder });
  const second = connect(again.urls.reader, { max: 2 });
  standing.to(second);
  while ((await copy.hold(known)).readAt < time) await new Promise(setImmediate);
  const held = await expectCounted(copy, ledger);
  expect(held.since).toBe(ledger.size);
  await copy.close();
  await Promise.all([first, second].map((sql) => sql.end({ timeout: 1 })));
  await again.stop();
  await cluster.remove();
});

test("a database that says nothing is as good as away", async () => {
  const ledger = await written(db.owner, [1]);
  const copy = open(db.reader);
  const { asOf, readAt } = await expectCounted(copy, ledger);
  await db.superuser.begin(async (tx) => {
    await tx`lock table heads in access exclusive mode`;
    time += 10_000;
    const known = { log: ledger.log, namespace: "1" };
    const [held] = await Promise.all([
      copy.hold(known, { readSince: time }),
      expect(copy.hold({ ...known, namespace: "2" })).rejects.toMatchObject({ code: "busy" }),
    ]);
    expect(held).toMatchObject({ asOf, readAt });
    // Nor does what nobody waits for keep a connection.
    await untilNobodyWaits();
  });
  await copy.close();
  await expectCounted(open(db.reader), ledger);
});

test("another copy of the database, which is behind and goes another way: nothing that was known is told", async () => {
  const ledger = await written(db.owner, [1, 2, 3, 4]);
  const { log } = ledger;
  const standing = switchable(db.reader);
  const copy = open(standing.sql);
  await expectCounted(copy, ledger);
  const older = await written(restored.owner, [1, 2], log);
  standing.to(restored.reader);
  const held = await expectCounted(copy, older);
  expect(held.since).toBe(older.size);
  // As long as the lost one was, with other entries in the place of its last.
  const { agent } = newLedger(log);
  agent.counter = 2;
  for (const job of [8, 9]) older.report(agent, { job, runner: HOSTED, duration: 1n });
  expect(older.size).toBe(ledger.size);
  await older.load(restored.owner);
  await expectCounted(copy, older);
});

test("another copy of the same size, whose entries are others", async () => {
  const ledger = await written(db.owner, [1, 2]);
  const other = await written(restored.owner, [3, 4], ledger.log);
  expect(other.size).toBe(ledger.size);
  const standing = switchable(db.reader);
  const copy = open(standing.sql);
  await expectCounted(copy, ledger);
  standing.to(restored.reader);
  await expectCounted(copy, other);
});

test("a head that went back in the same copy", async () => {
  const ledger = await written(db.owner, [1, 2, 3]);
  const copy = open(db.reader);
  await expectCounted(copy, ledger);
  const size = ledger.size - 2n;
  const leaf = ledger.written[Number(size) - 1]?.leaf ?? new Uint8Array();
  await db.superuser.begin(async (tx) => {
    await tx`alter table entries disable trigger entries_append_only`;
    await tx`delete from entries where log = ${ledger.log} and index >= ${size}`;
    await tx`alter table entries enable always trigger entries_append_only`;
    await tx`update heads set size = ${size}, leaf = ${leaf}, control_index = 0 where log = ${ledger.log}`;
  });
  await expectCounted(copy, ledger, size);
});

test("a log that went away is not found, whatever was known of it", async () => {
  const ledger = await written(db.owner, [1]);
  const standing = switchable(db.reader);
  const copy = open(standing.sql);
  await expectCounted(copy, ledger);
  standing.to(restored.reader);
  time += 1;
  const gone = copy.hold({ log: ledger.log, namespace: "1" }, { readSince: time });
  await expect(gone).rejects.toMatchObject({ code: "not-found" });
  expect(copy.loaded().namespaces).toBe(0);
  expect(failures).toEqual([]);
});

test("a process that was left far behind reads anew instead of reading on", async () => {
  const ledger = await written(db.owner, [1]);
  const { log, size } = ledger;
  const copy = open(db.reader);
  const key = { log, namespace: "1" };
  const before = await copy.hold(key);
  const last = size + 30_000n;
  await db.owner`
    insert into entries (
      log, index, kind, at, prev, leaf, bytes, tracking, job_id, project_id, namespace_id,
      runner_uuid, runner_id, machine_type, duration_ms, compute_ms, not_billable, usage_month,
      billing_month, finished_at
    )
    select
      ${log}, n, 'usage', '2026-11-01Z', decode(repeat('00', 32), 'hex'),
      decode(repeat('00', 32), 'hex'), '\\x00', 'hosted', 1000 + n, 1, 1, 'r', 1, 'm', 1, 0.5, '',
      '2026-11-01', '2026-11-01', '2026-11-01Z'
    from generate_series(${size}::bigint, ${last - 1n}::bigint) as n`;
  await db.owner`update heads set size = ${last} where log = ${log}`;
  const held = await copy.hold(key, { asOf: last });
  const used = (before.facts.used.get("2026-11-01") ?? 0n) + 30_000n * 500_000n;
  expect(held.facts.used.get("2026-11-01")).toBe(used);
  expect(held).toMatchObject({ asOf: last, since: last, touched: last - 1n });
});
