import { randomBytes } from "node:crypto";
import { afterAll, afterEach, beforeAll, beforeEach, expect, test } from "vitest";
import { connect, type Sql } from "../../src/store/connect.ts";
import { assertServiceRole, UnsafeRoleError } from "../../src/store/privileges.ts";
import { type FreshDatabase, freshDatabase } from "../postgres.ts";

let db: FreshDatabase;
beforeAll(async () => {
  db = await freshDatabase();
});
afterAll(() => db.drop());

// Roles belong to the whole server, which other files use: each test makes its own and drops it.
let role: string;
let sql: Sql;
beforeEach(async () => {
  role = `probe_${randomBytes(6).toString("hex")}`;
  await db.superuser.unsafe(`create role ${role} login password 'probe'`);
  await db.superuser.unsafe(`grant connect on database ${databaseName()} to ${role}`);
  await db.superuser.unsafe(`grant usage on schema public to ${role}`);
  const url = new URL(db.urls.writer);
  url.username = role;
  url.password = "probe";
  sql = connect(url.href, { max: 1 });
});
afterEach(async () => {
  await sql.end();
  await db.superuser.unsafe(`drop owned by ${role}`);
  await db.superuser.unsafe(`drop role ${role}`);
});

const databaseName = () => new URL(db.urls.owner).pathname.slice(1);

async function reasons(as: Sql): Promise<readonly string[]> {
  const error = await assertServiceRole(as).then(
    () => undefined,
    (thrown: unknown) => thrown,
  );
  if (error === undefined) return [];
  if (!(error instanceof UnsafeRoleError)) throw error;
  expect(error.code).toBe("unsafe-database-role");
  for (const reason of error.reasons) expect(error.message).toContain(reason);
  return error.reasons;
}

test.each(["writer", "reader", "auditor"] as const)("the service runs as %s", async (name) => {
  expect(await reasons(db[name])).toEqual([]);
});

test("the service refuses to start as superuser", async () => {
  expect(await reasons(db.superuser)).toEqual(["it is a superuser"]);
});

test("the service refuses to start as owner, and names all that it owns", async () => {
  const found = await reasons(db.owner);
  expect(found).toContain("it owns relation entries");
  expect(found).toContain("it owns function refuse_change");
  expect(found).toContain(`it owns database ${databaseName()}`);
  expect(found).toContain("it has TRUNCATE on entries");
  expect(found).toContain("it may create in schema public");
});

test.each([
  ["bypassrls", "it bypasses row-level security"],
  ["createrole", "it creates roles"],
  ["replication", "it may replicate"],
])("a role with %s is refused", async (attribute, reason) => {
  await db.superuser.unsafe(`alter role ${role} ${attribute}`);
  expect(await reasons(sql)).toEqual([reason]);
});

test.each([
  ["update on entries", ["it has UPDATE on entries"]],
  ["update (kind) on entries", ["it has UPDATE on entries"]],
  ["delete on jobs", ["it has DELETE on jobs"]],
  ["truncate on reports", ["it has TRUNCATE on reports"]],
  ["update on keys", ["it has UPDATE on keys"]],
  ["trigger on checkpoints", ["it has TRIGGER on checkpoints"]],
  ["delete on cosignatures", ["it has DELETE on cosignatures"]],
  ["set on parameter session_replication_role", ["it may set session_replication_role"]],
  ["create on schema public", ["it may create in schema public"]],
  ["pg_execute_server_program", ["pg_execute_server_program runs programs on the server"]],
  [
    "update, delete on entries, reports",
    [
      "it has DELETE on entries",
      "it has DELETE on reports",
      "it has UPDATE on entries",
      "it has UPDATE on reports",
    ],
  ],
])("a role with a grant of %s is refused for just that", async (grant, expected) => {
  await db.superuser.unsafe(`grant ${grant} to ${role}`);
  expect(await reasons(sql)).toEqual(expected);
});

test("a role that may become the owner by SET ROLE is refused, though it inherits nothing", async () => {
  await db.superuser.unsafe(`grant minutebook_owner to ${role} with inherit false, set true`);
  expect(await reasons(sql)).toContain("it owns relation entries");
});

test("a role that may become a superuser is refused", async () => {
  await db.superuser.unsafe(`grant postgres to ${role} with inherit false, set true`);
  expect(await reasons(sql)).toContain("postgres is a superuser");
});

test("a superuser behind SET ROLE is refused", async () => {
  const masked = connect(db.urls.superuser, { max: 1 });
  await masked`set role minutebook_reader`;
  expect(await reasons(masked)).toEqual(["it is a superuser"]);
  await masked.end();
});

test("a grant on one partition alone is found", async () => {
  const own = await freshDatabase();
  await own.superuser`drop table entries cascade`;
  await own.owner`create table entries (log text) partition by list (log)`;
  await own.owner`create table entries_first partition of entries for values in ('first')`;
  await own.owner`grant delete on entries_first to minutebook_writer`;
  expect(await reasons(own.writer)).toContain("it has DELETE on entries_first");
  await own.drop();
});

test("a role that may create in the database is refused", async () => {
  await db.superuser.unsafe(`grant create on database ${databaseName()} to ${role}`);
  expect(await reasons(sql)).toEqual([`it may create in database ${databaseName()}`]);
});

test("a role that may create in another schema is refused", async () => {
  await db.superuser`create schema aside`;
  await db.superuser.unsafe(`grant create on schema aside, tenant to ${role}`);
  expect(await reasons(sql)).toEqual([
    "it may create in schema aside",
    "it may create in schema tenant",
  ]);
  await db.superuser.unsafe(`alter schema aside owner to ${role}`);
  expect(await reasons(sql)).toContain("it owns schema aside");
  await db.superuser`drop schema aside`;
});

test.each<[string, string, string, boolean]>([
  ["that it may execute", "void", "", true],
  ["that it may not execute", "void", "revoke execute on function aside.lent from public", false],
  [
    "that a trigger fires",
    "trigger",
    `revoke execute on function aside.lent from public;
     create trigger lent after insert on entries for each statement execute function aside.lent()`,
    true,
  ],
  ["of an event trigger", "event_trigger", "", false],
])("a function with another's rights %s", async (_, returns, then, refused) => {
  await db.superuser`create schema aside`;
  await db.superuser.unsafe(`
    create function aside.lent() returns ${returns} language plpgsql security definer as 'begin end';
    ${then}`);
  const found = ["it may run aside.lent() with the rights of postgres"];
  expect(await reasons(sql)).toEqual(refused ? found : []);
  await db.superuser`drop schema aside cascade`;
});

const GUARDED = [
  ...["entries", "jobs", "reports", "keys", "checkpoints", "cosignatures", "first_keys"],
  ...["access_log", "access_reviews", "barred_principals", "lifted_bars"],
];

test.each<[string, (table: string) => string]>([
  ["dropped", (table) => `drop trigger ${table}_append_only on ${table}`],
  ["disabled", (table) => `alter table ${table} disable trigger ${table}_append_only`],
  [
    "enabled, but not always",
    (table) => `alter table ${table} enable trigger ${table}_append_only`,
  ],
  ["for updates only", (table) => recreated(table, "before update", "")],
  ["for some updates only", (table) => recreated(table, "before update of log or delete", "")],
  ["on a condition", (table) => recreated(table, "before update or delete", "when (false)")],
])(
  "the service refuses to start where an append-only trigger is %s, and names it",
  async (_, lift) => {
    const own = await freshDatabase();
    for (const table of GUARDED) {
      await own.owner.unsafe(lift(table));
      expect(await reasons(own.writer)).toContain(
        `${table} has no trigger ${table}_append_only that is enabled always`,
      );
    }
    expect((await reasons(own.reader)).length).toBe(GUARDED.length);
    await own.drop();
  },
);

test("of a principal no role is ever taken away, nor is a row said to be of somebody else", async () => {
  const { writer } = db;
  await writer`
    insert into principals
    values ('log', 'p_1', 'issuer', 'subject', 'finance,platform', now(), '2026-11-01')`;
  const said = ["roles = 'platform'", "roles = ''", "id = 'p_2'", "log = ''"];
  for (const change of said) {
    for (const as of [writer, db.superuser]) {
      const changed = as.unsafe(`update principals set ${change}`);
      await expect(changed).rejects.toThrow("roles are added and never taken away");
    }
  }
  await writer`update principals set roles = 'auditor,finance,platform', last_on = '2026-11-02'`;
  const own = await freshDatabase();
  await own.owner`drop trigger principals_grow on principals`;
  expect(await reasons(own.writer)).toEqual([
    "principals has no trigger principals_grow that is enabled always",
  ]);
  await own.drop();
});

test.each([
  ["dropped", "drop trigger checkpoints_kept on checkpoints"],
  ["disabled", "alter table checkpoints disable trigger checkpoints_kept"],
  ["enabled, but not always", "alter table checkpoints enable trigger checkpoints_kept"],
])(
  "the service refuses to start where the trigger that keeps checkpoints is %s",
  async (_, lift) => {
    const own = await freshDatabase();
    await own.owner.unsafe(lift);
    expect(await reasons(own.writer)).toEqual([
      "checkpoints has no trigger checkpoints_kept that is enabled always",
    ]);
    await own.drop();
  },
);

const recreated = (table: string, events: string, condition: string): string => `
  drop trigger ${table}_append_only on ${table};
  create trigger ${table}_append_only ${events} on ${table}
    for each statement ${condition} execute function refuse_change();
  alter table ${table} enable always trigger ${table}_append_only`;

test.each(["entries", "jobs", "reports", "keys"])(
  "%s refuses change by grant to the service",
  async (table) => {
    for (const statement of [
      `update ${table} set log = log`,
      `delete from ${table}`,
      `truncate ${table}`,
      `alter table ${table} disable trigger all`,
      `drop table ${table}`,
      "set session_replication_role = replica",
    ]) {
      for (const as of [db.writer, db.reader, db.auditor]) {
        await expect(as.unsafe(statement), statement).rejects.toThrow(
          /permission denied|must be owner/,
        );
      }
    }
  },
);

test("what is written once refuses the owner too, and a superuser under session_replication_role", async () => {
  for (const statement of [
    ...GUARDED.map((table) => `update ${table} set log = log`),
    // Of checkpoints some may go (test/flow/log/retain.test.ts).
    ...GUARDED.filter((table) => table !== "checkpoints").map((table) => `delete from ${table}`),
    "truncate entries",
    "truncate checkpoints",
    "truncate cosignatures",
    "truncate first_keys",
  ]) {
    await expect(db.owner.unsafe(statement), statement).rejects.toThrow(/append-only/);
    await expect(
      db.superuser.begin(async (tx) => {
        await tx`set local session_replication_role = replica`;
        await tx.unsafe(statement);
      }),
      statement,
    ).rejects.toThrow(/append-only/);
  }
});
