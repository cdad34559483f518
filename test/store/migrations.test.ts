import { mkdtemp, rename, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, expect, test } from "vitest";
import { connect } from "../../src/store/connect.ts";
import { readMigrations } from "../../src/store/migration-files.ts";
import { migrate, migrationState, requireCurrentSchema } from "../../src/store/migrations.ts";
import { type FreshDatabase, freshDatabase } from "../postgres.ts";

const migration = (up: string, options = ""): string =>
  `-- migrate:up${options}\n${up}\n-- migrate:down\ndo $$ begin raise exception 'no'; end $$;\n`;

let folder: string;
let db: FreshDatabase;
beforeEach(async () => {
  folder = await mkdtemp(join(tmpdir(), "minutebook-migrations-"));
  db = await freshDatabase();
  await db.superuser`drop table migrations, schema_migrations`;
});
afterEach(async () => {
  await db.drop();
  await rm(folder, { recursive: true });
});

const put = (name: string, text: string): Promise<void> => writeFile(join(folder, name), text);

const run = (patience?: number) =>
  migrate({
    sql: db.owner,
    folder,
    appliedBy: "change 7",
    ...(patience === undefined ? {} : { patience }),
  });

test("a database keeps which bytes were applied in which order, by whom and when", async () => {
  await put("0001_a.sql", migration("create table a (x int);"));
  await put("0002_b.sql", migration("create table b (x int);"));
  expect(await run()).toEqual({ applied: ["0001_a.sql", "0002_b.sql"] });
  const files = await readMigrations(folder);
  const rows = await db.auditor`
    select version, name, sha256, chain, applied_by, applied_at > now() - interval '1 minute' as fresh
    from migrations
    order by version
  `;
  expect([...rows]).toEqual(
    files.map(({ version, name, sha256, chain }) => ({
      version,
      name,
      sha256,
      chain,
      applied_by: "change 7",
      fresh: true,
    })),
  );
  expect([...(await db.reader`select version from schema_migrations order by 1`)]).toEqual([
    { version: "0001" },
    { version: "0002" },
  ]);
});

test("a database takes each file once", async () => {
  await put("0001_a.sql", migration("create table a (x int);"));
  expect(await run()).toEqual({ applied: ["0001_a.sql"] });
  expect(await run()).toEqual({ applied: [] });
  await put("0002_b.sql", migration("create table b (x int);"));
  expect(await migrationState(db.reader, folder)).toEqual({
    applied: ["0001_a.sql"],
    pending: ["0002_b.sql"],
  });
  expect(await run()).toEqual({ applied: ["0002_b.sql"] });
});

test("a database is migrated by one of eight runners, while an index is built outside a transaction", async () => {
  await put("0001_a.sql", migration("create table a (x int);"));
  await put("0002_i.sql", migration("create index concurrently i on a (x);", " transaction:false"));
  const runs = await Promise.all(Array.from({ length: 8 }, () => run()));
  expect(runs.map(({ applied }) => applied.length).sort()).toEqual([0, 0, 0, 0, 0, 0, 0, 2]);
  const [index] = await db.owner`select indisvalid from pg_index where indexrelid = 'i'::regclass`;
  expect(index).toEqual({ indisvalid: true });
});

test("a database says busy when another runner does not finish", async () => {
  await put("0001_a.sql", migration("create table a (x int);"));
  await db.superuser.begin(async (tx) => {
    await tx`select pg_advisory_xact_lock(${0x6d696e757465626fn})`;
    await expect(run(100)).rejects.toMatchObject({ code: "migration-busy" });
  });
  expect(await run()).toEqual({ applied: ["0001_a.sql"] });
});

test("a database keeps nothing of a file that fails, and the message names file and line", async () => {
  await put("0001_a.sql", migration("create table a (x int);"));
  await put("0002_b.sql", migration("create table b (x int);\nselect\n  nonsense;"));
  await expect(run()).rejects.toMatchObject({
    code: "migration-failed",
    message: expect.stringMatching(/^0002_b\.sql, line 4: .*nonsense/),
  });
  const [row] = await db.owner`select to_regclass('a')::text as a, to_regclass('b')::text as b`;
  expect(row).toEqual({ a: "a", b: null });
  expect((await migrationState(db.owner, folder)).pending).toEqual(["0002_b.sql"]);
});

test("a migration that changes an entry fails, and the entry keeps its bytes", async () => {
  await db.writer`
    insert into entries (log, index, kind, at, prev, leaf, bytes)
    values (
      ${"0".repeat(32)}, 0, 'log', now(), ${new Uint8Array(32)}, ${new Uint8Array(32)},
      ${new Uint8Array([1, 2, 3])}
    )
  `;
  const before = [...(await db.auditor`select * from entries`)];
  await put("0001_a.sql", migration("update entries set bytes = '\\x00';"));
  await expect(run()).rejects.toMatchObject({
    code: "migration-failed",
    message: expect.stringContaining("append-only"),
  });
  expect([...(await db.auditor`select * from entries`)]).toEqual(before);
});

test("a runner leaves its session as it was, also after a failure", async () => {
  await put("0001_a.sql", migration("nonsense;"));
  const sql = connect(db.urls.owner, { max: 1 });
  await expect(migrate({ sql, folder, appliedBy: "x" })).rejects.toThrow();
  const [row] = await sql`
    select
      current_setting('statement_timeout') as timeout,
      (select count(*) from pg_locks where locktype = 'advisory' and pid = pg_backend_pid()) as locks
  `;
  await sql.end();
  expect(row).toEqual({ timeout: "1min", locks: 0n });
});

async function applyTwo(): Promise<void> {
  await put("0002_a.sql", migration("create table a (x int);"));
  await put("0003_b.sql", migration("create table b (x int);"));
  await run();
}

test.each<[string, string, () => Promise<unknown>]>([
  [
    "an edited file",
    "migration-edited",
    () => put("0002_a.sql", migration("create table a (x bigint);")),
  ],
  [
    "a renamed file",
    "migration-edited",
    () => rename(join(folder, "0002_a.sql"), join(folder, "0002_c.sql")),
  ],
  ["a file that is gone", "migration-missing", () => rm(join(folder, "0002_a.sql"))],
  [
    "a file that comes late",
    "migration-out-of-order",
    () => put("0001_late.sql", migration("create table late (x int);")),
  ],
  [
    "a record whose hash was replaced along with the file",
    "migration-journal",
    async () => {
      await put("0002_a.sql", migration("create table a (x bigint);"));
      const [file] = await readMigrations(folder);
      await db.owner`update migrations set sha256 = ${file?.sha256 ?? ""} where version = '0002'`;
    },
  ],
  [
    "a record that was removed",
    "migration-journal",
    () => db.owner`delete from migrations where version = '0003'`,
  ],
  [
    "a file that dbmate applied behind our back",
    "migration-journal",
    () => db.owner`insert into schema_migrations (version) values ('0004')`,
  ],
])("%s is refused by every runner and every process that starts", async (_, code, spoil) => {
  await applyTwo();
  await requireCurrentSchema(db.writer, folder);
  await spoil();
  await expect(run()).rejects.toMatchObject({ code });
  await expect(requireCurrentSchema(db.writer, folder)).rejects.toMatchObject({ code });
});

test("the release before goes on starting on a schema that is newer, and does not migrate it", async () => {
  await applyTwo();
  await rm(join(folder, "0003_b.sql"));
  await requireCurrentSchema(db.writer, folder);
  await expect(run()).rejects.toMatchObject({ code: "migration-missing" });
});

test("a process refuses to start on a schema that lacks a file", async () => {
  await applyTwo();
  await put("0004_c.sql", migration("create table c (x int);"));
  await expect(requireCurrentSchema(db.writer, folder)).rejects.toMatchObject({
    code: "migration-pending",
    message: expect.stringContaining("0004_c.sql"),
  });
});

test("a database without a journal has everything before it", async () => {
  await put("0001_a.sql", migration("create table a (x int);"));
  expect(await migrationState(db.reader, folder)).toEqual({
    applied: [],
    pending: ["0001_a.sql"],
  });
});
