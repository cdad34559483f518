import { randomBytes } from "node:crypto";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { readEnded, readOpened } from "../../src/store/breaks.ts";
import { readOpenOfJobs } from "../../src/store/breaks-of-jobs.ts";
import type { Transaction } from "../../src/store/connect.ts";
import { insertJobs, readJobs } from "../../src/store/jobs.ts";
import { makeDue, settleJobs } from "../../src/store/platform-jobs.ts";
import { readNewest } from "../../src/store/registers.ts";
import { insertReports, readReports } from "../../src/store/reports.ts";
import { limitTransaction } from "../../src/store/transaction.ts";
import { dropSeen, markBroken } from "../../src/store/unseen-usages.ts";
import { type FreshDatabase, freshDatabase } from "../postgres.ts";

const LOG = "0123456789abcdef0123456789abcdef";
const STANDING = 5_000;
const ASKED = 100;

let database: FreshDatabase;
const hash = (): Uint8Array => new Uint8Array(randomBytes(32));
const kid = randomBytes(32).toString("base64url");
const numbers = (count: number): number[] => Array.from({ length: count }, (_, i) => i + 1);

beforeAll(async () => {
  database = await freshDatabase();
  // Without statistics, as in the first hour of a log: the planner takes the tables for empty.
  await database.superuser`alter table jobs set (autovacuum_enabled = off)`;
  await database.superuser`alter table reports set (autovacuum_enabled = off)`;
  await database.superuser`alter table entries set (autovacuum_enabled = off)`;
  await database.writer.begin(async (tx) => {
    const jobs = numbers(STANDING).map((i) => ({
      jobId: String(i),
      index: BigInt(i),
      fact: hash(),
    }));
    await insertJobs(
      tx,
      LOG,
      jobs.map((job) => ({ ...job, tracking: "hosted" })),
    );
    const answers = numbers(STANDING).map((i) => ({
      ...{ kid, counter: String(i), digest: hash(), code: "accepted" },
      ...{ index: BigInt(i), recorded: BigInt(i) },
    }));
    await insertReports(tx, LOG, answers);
  });
});

afterAll(() => database.drop());

/** Rows that this transaction has read of a table, by whatever plan. */
async function rowsRead(tx: Transaction, table: string): Promise<number> {
  const [row] = await tx<{ read: number }[]>`
    select (coalesce(seq_tup_read, 0) + coalesce(idx_tup_fetch, 0))::int as read
    from pg_stat_xact_user_tables
    where relname = ${table}`;
  return row?.read ?? Number.NaN;
}

test("a commit looks up its jobs without reading those of the whole log", async () => {
  await database.writer.begin(async (tx) => {
    await limitTransaction(tx);
    const keys = numbers(ASKED).map((i) => ({ tracking: "hosted" as const, jobId: String(i * 7) }));
    expect(await readJobs(tx, LOG, keys)).toHaveLength(ASKED);
    expect(await rowsRead(tx, "jobs")).toBe(ASKED);
  });
});

test("a commit looks up its counters without reading those of the whole log", async () => {
  await database.writer.begin(async (tx) => {
    await limitTransaction(tx);
    const keys = numbers(ASKED).map((i) => ({ kid, counter: String(i * 7) }));
    expect(await readReports(tx, LOG, keys)).toHaveLength(ASKED);
    expect(await rowsRead(tx, "reports")).toBe(ASKED);
  });
});

test("the newest entry of a kind is found without reading those of other kinds", async () => {
  const rows = numbers(STANDING).map((i) => {
    const hashes = { prev: hash(), leaf: hash(), bytes: hash() };
    const kind = i % 1_000 === 17 ? "visibility" : "attestation";
    return { log: LOG, index: BigInt(i), kind, at: new Date(i), ...hashes };
  });
  await database.owner`insert into entries ${database.owner(rows)}`;
  await database.writer.begin(async (tx) => {
    expect((await readNewest(tx, LOG, "visibility"))?.index).toBe(4_017n);
    expect(await rowsRead(tx, "entries")).toBe(1);
  });
});

describe("what reconciliation asks for by its key is looked up, and all of the log is not read", () => {
  const asked = numbers(ASKED).map((i) => BigInt(i * 7));
  const jobs = asked.map(String);
  /** In a small table a planner may read all. */
  const MANY = 20_000;

  beforeAll(async () => {
    const { owner, superuser } = database;
    for (const table of ["breaks", "break_ends", "unseen_usages", "platform_jobs"]) {
      await superuser`alter table ${superuser(table)} set (autovacuum_enabled = off)`;
    }
    await owner`
      insert into breaks (
        log, index, fingerprint, code, month, job_id, kid, tracking, difference_ms
      )
      select ${LOG}, i, i, 'duration', '2026-11-01', i, '', 'hosted', 0
      from generate_series(1, ${STANDING}::int) as i`;
    await owner`
      insert into break_ends (log, break, index, outcome)
      select ${LOG}, i, i, 'healed'
      from generate_series(1, ${STANDING}::int, 2) as i`;
    await owner`
      insert into unseen_usages (log, index, job_id, runner_id, project_id, finished_at)
      select ${LOG}, i, i, 7, 7, now()
      from generate_series(1, ${MANY}::int) as i`;
    await owner`
      insert into platform_jobs (log, job_id, runner_id, tracking, status, source, seen_at)
      select ${LOG}, i, 7, 'hosted', 'success', 'pull', now()
      from generate_series(1, ${MANY}::int) as i`;
  });

  const settled = jobs.map((job_id) => {
    return { job_id, revision: 0n, state: "matched", usage: undefined, dueAt: undefined } as const;
  });
  test.each<[name: string, table: string, ask: (tx: Transaction) => Promise<unknown>]>([
    ["breaks by what they are about", "breaks", (tx) => readOpened(tx, LOG, jobs)],
    ["breaks by job", "breaks", (tx) => readOpenOfJobs(tx, LOG, jobs, ["duration"])],
    ["ends of breaks", "break_ends", (tx) => readEnded(tx, LOG, asked)],
    ["usages that nobody sees", "unseen_usages", (tx) => markBroken(tx, LOG, jobs)],
    ["usages that are seen", "unseen_usages", (tx) => dropSeen(tx, LOG, jobs)],
    ["jobs that are due", "platform_jobs", (tx) => makeDue(tx, LOG, jobs)],
    ["jobs that are settled", "platform_jobs", (tx) => settleJobs(tx, LOG, settled)],
  ])("%s", async (_, table, ask) => {
    await database.writer.begin(async (tx) => {
      await limitTransaction(tx);
      const before = await rowsRead(tx, table);
      await ask(tx);
      // What is locked first is read twice.
      const read = (await rowsRead(tx, table)) - before;
      expect(read).toBeGreaterThan(0);
      expect(read).toBeLessThanOrEqual(2 * ASKED);
    });
  });
});
