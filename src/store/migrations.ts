/**
 * Applies migrations and keeps the evidence: which bytes, in which order, by whom, when. The table
 * `migrations` is ours; `schema_migrations` is dbmate's, kept so that its tool sees the same state.
 */
import { setTimeout as delay } from "node:timers/promises";
import postgres from "postgres";
import type { Sql } from "./connect.ts";
import { type Migration, MigrationError, readMigrations } from "./migration-files.ts";

/** One fixed key per database; "minutebo" in ASCII. */
const LOCK = 0x6d696e757465626fn;
const LOCK_POLL_MS = 50;

/** Before the first migration there is no schema, so this one table cannot come from a file. */
const JOURNAL = `
  create table if not exists public.migrations (
    version text not null,
    name text not null,
    sha256 text not null,
    chain text not null,
    applied_by text not null,
    applied_at timestamptz(3) not null,
    constraint migrations_pkey primary key (version),
    constraint migrations_hashes check (sha256 ~ '^[0-9a-f]{64}$' and chain ~ '^[0-9a-f]{64}$')
  );
  create table if not exists public.schema_migrations (version varchar not null primary key);
  grant select on public.migrations, public.schema_migrations
    to minutebook_writer, minutebook_reader, minutebook_auditor;
`;

/**
 * Applies what is pending, each file in its own transaction. Of several runners at once one works;
 * the others wait, and find nothing to do.
 *
 * @param options.sql as owner, straight to the server: the lock is the session's
 * @param options.appliedBy who is answerable, kept for the auditor
 * @param options.patience milliseconds to wait for another runner
 * @returns the names of the applied files
 * @throws {MigrationError} any code but `migration-pending`
 */
export async function migrate(options: {
  sql: Sql;
  folder: string;
  appliedBy: string;
  patience?: number;
}): Promise<{ applied: string[] }> {
  const { sql, folder, appliedBy, patience = 60_000 } = options;
  const files = await readMigrations(folder);
  const session = await sql.reserve();
  try {
    await lock(session, patience);
    // An index over a large table takes longer than any request may.
    await session`set statement_timeout = 0`;
    await session.unsafe(JOURNAL);
    const pending = files.slice(await countApplied(session, files));
    for (const file of pending) await apply(session, file, appliedBy);
    return { applied: pending.map(({ name }) => name) };
  } finally {
    await unlock(session);
    session.release();
  }
}

/**
 * What of a folder a database has, in order. Throws as `migrate` does where the two contradict.
 *
 * @param sql any of the roles
 */
export async function migrationState(
  sql: Sql,
  folder: string,
): Promise<{ applied: string[]; pending: string[] }> {
  const files = await readMigrations(folder);
  const count = await countApplied(sql, files);
  const names = files.map(({ name }) => name);
  return { applied: names.slice(0, count), pending: names.slice(count) };
}

/**
 * Refuses unless the database has every migration of a folder, unchanged. What a newer release added
 * after them is let pass: versions N and N−1 run side by side while N is rolled out (DESIGN §14).
 * Throws `migration-pending`, or as `migrate` does.
 */
export async function requireCurrentSchema(sql: Sql, folder: string): Promise<void> {
  const files = await readMigrations(folder);
  const count = await countApplied(sql, files, "newer-may-follow");
  const pending = files.slice(count).map(({ name }) => name);
  if (pending.length === 0) return;
  throw new MigrationError("migration-pending", `not applied yet: ${pending.join(", ")}`);
}

/**
 * Polls. Waiting inside pg_advisory_lock would hold a snapshot, and CREATE INDEX CONCURRENTLY of
 * the runner that has the lock waits for snapshots: the server would call it a deadlock.
 */
async function lock(session: Sql, patience: number): Promise<void> {
  const deadline = Date.now() + patience;
  for (;;) {
    const [row] = await session<[{ locked: boolean }]>`
      select pg_try_advisory_lock(${LOCK}) as locked
    `;
    if (row.locked) return;
    if (Date.now() > deadline) {
      throw new MigrationError("migration-busy", "another process is migrating this database");
    }
    await delay(LOCK_POLL_MS);
  }
}

/** A session that broke has lost its lock and its settings with it: nothing left to do. */
async function unlock(session: Sql): Promise<void> {
  await session.unsafe("reset statement_timeout; select pg_advisory_unlock_all()").catch(() => []);
}

interface Applied {
  version: string;
  name: string;
  sha256: string;
  chain: string;
}

/** How many of the files are applied: always the first ones, or it throws. */
async function countApplied(
  sql: Sql,
  files: Migration[],
  beyond: "newer-may-follow" | "nothing-follows" = "nothing-follows",
): Promise<number> {
  const [journal] = await sql`select where to_regclass('public.migrations') is not null`;
  if (journal === undefined) return 0;
  const recorded = await sql<Applied[]>`
    select version, name, sha256, chain
    from public.migrations
    order by version collate "C"
  `;
  const dbmate = await sql<{ version: string }[]>`
    select version
    from public.schema_migrations
    order by version collate "C"
  `;
  if (recorded.map(versionOf).join() !== dbmate.map(versionOf).join()) {
    throw new MigrationError("migration-journal", "migrations and schema_migrations differ");
  }
  const last = files.at(-1)?.version ?? "";
  const rows =
    beyond === "nothing-follows" ? recorded : recorded.filter(({ version }) => version <= last);
  for (const row of rows) compare(row, files);
  for (const [position, row] of rows.entries()) {
    const file = files[position];
    if (file?.version !== row.version) {
      throw new MigrationError("migration-out-of-order", `${file?.name} comes before ${row.name}`);
    }
    if (file.chain !== row.chain) {
      throw new MigrationError("migration-journal", `the recorded chain breaks at ${row.name}`);
    }
  }
  return rows.length;
}

const versionOf = (row: { version: string }): string => row.version;

function compare(row: Applied, files: Migration[]): void {
  const file = files.find(({ version }) => version === row.version);
  if (file === undefined) {
    throw new MigrationError("migration-missing", `${row.name} was applied and is gone`);
  }
  if (file.sha256 !== row.sha256 || file.name !== row.name) {
    throw new MigrationError("migration-edited", `${file.name} is not what was applied`);
  }
}

async function apply(session: Sql, file: Migration, appliedBy: string): Promise<void> {
  // What needs no transaction runs before its record: if we die between, it runs again.
  if (!file.transaction) await run(session, file);
  await session`begin`;
  try {
    if (file.transaction) await run(session, file);
    await session`
      insert into public.migrations (version, name, sha256, chain, applied_by, applied_at)
      values (
        ${file.version}, ${file.name}, ${file.sha256}, ${file.chain}, ${appliedBy},
        clock_timestamp()
      )
    `;
    await session`insert into public.schema_migrations (version) values (${file.version})`;
    await session`commit`;
  } catch (error) {
    await session`rollback`;
    throw error;
  }
}

async function run(session: Sql, file: Migration): Promise<void> {
  try {
    await session.unsafe(file.up);
  } catch (cause) {
    if (!(cause instanceof postgres.PostgresError)) throw cause;
    const before = file.up.slice(0, Number(cause.position ?? 0));
    const line = file.line + before.split("\n").length - 1;
    const message = `${file.name}, line ${line}: ${cause.message}`;
    throw new MigrationError("migration-failed", message, { cause });
  }
}
