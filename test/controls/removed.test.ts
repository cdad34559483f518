/**
 * Controls of the database, taken away one by one. Each refuses what it is there for; without it the same goes
 * through, so that it was this control and no other; and that it is gone is seen: by a process that starts, or
 * by the one that runs, which says it on the log.
 */
import { randomBytes } from "node:crypto";
import { afterAll, beforeAll, beforeEach, expect, test } from "vitest";
import { readGuards } from "../../src/flow/evidence/environment.ts";
import type { Sql, Transaction } from "../../src/store/connect.ts";
import { assertServiceRole } from "../../src/store/privileges.ts";
import { asViewer } from "../../src/store/viewer.ts";
import { type FreshDatabase, freshDatabase } from "../postgres.ts";

const LOG = "a".repeat(32);

let db: FreshDatabase;
let whole: Awaited<ReturnType<typeof readGuards>>;

/** Rows past the door, by the owner: what they say does not matter here. */
const ROWS = `
  insert into entries (log, index, kind, at, prev, leaf, bytes)
  values ('${LOG}', 0, 'log', now(), decode(repeat('00', 32), 'hex'), decode(repeat('01', 32), 'hex'), 'x');
  insert into heads values ('${LOG}', 1, 'x', now(), 0);
  insert into jobs values ('${LOG}', 'hosted', 1, 1, 'x');
  insert into reports (log, kid, counter, digest, index, code, recorded)
  values ('${LOG}', 'k', 1, 'x', 1, 'accepted', 1);
  insert into checkpoints values ('${LOG}', 1, 'x', 'note', now());
  insert into proposals values ('${LOG}', 1, 'quota', 'p_first', now());
  insert into proposal_ends values ('${LOG}', 1, 2, 'refused', 'p_second');
  insert into proposals values ('${LOG}', 3, 'quota', 'p_first', now());
  insert into approval_uses values ('${LOG}', 4, 5);
  insert into adjustments (log, index, line, namespace_id, usage_month, billing_month, amount, reverses_index, reverses_line)
  values ('${LOG}', 6, 0, 1, '2026-11-01', '2026-11-01', 1, 1, 0);
  insert into credit_runs (log, index, form, lines, total, reverses) values ('${LOG}', 7, 'credit', 1, 1, 1);
  insert into hold_ends values ('${LOG}', 1, 8, 'rejected');
  insert into conflict_ends values ('${LOG}', 1, 9, 'stands');
  insert into breaks (log, index, fingerprint, code, month, kid, tracking, difference_ms)
  values ('${LOG}', 10, 'same', 'duration', '2026-11-01', '', 'hosted', 1);
  insert into month_ends values ('${LOG}', '2026-10-01', 11, 10);
  insert into statements values ('${LOG}', '2026-10-01', '{}');
  insert into access_log (log, number, day, at, by, roles, method, route, target, status, request)
  values ('${LOG}', 1, '2026-11-01', now(), 'p', '', 'GET', '/', '/', 200, 'r');`;

beforeAll(async () => {
  db = await freshDatabase();
  await db.owner.unsafe(ROWS);
  whole = await readGuards(db.reader);
});
afterAll(() => db.drop());

beforeEach(async () => {
  expect(await readGuards(db.reader), "the test before has put its control back").toEqual(whole);
});

interface Removal {
  /** Of docs/controls.md. */
  control: string;
  what: string;
  /** Tries what the control is against. */
  as: "owner" | "writer";
  attack: string;
  remove: string;
  restore: string;
  refused: RegExp;
  /** A process that starts refuses, or one that runs says that it drifted. */
  seen: "start" | "environment";
}

function trigger(control: string, table: string, attack: string, events = ""): Removal {
  const name = `${table}_append_only`;
  return {
    ...{ control, as: "owner", attack, refused: /append-only/, seen: "start" },
    what: `${attack} by the owner`,
    remove: `drop trigger ${name} on ${table}`,
    restore: `create trigger ${name} before update or delete${events} on ${table}
      for each statement execute function refuse_change();
      alter table ${table} enable always trigger ${name}`,
  };
}

function key(control: string, what: string, of: string, columns: string, attack: string): Removal {
  const [table = "", form = "primary key"] = of.split(": ");
  const name = form === "primary key" ? `${table}_pkey` : `${table}_${form}`;
  const made = form === "primary key" ? form : "unique";
  return {
    ...{ control, what, as: "writer", attack, refused: /duplicate key/, seen: "environment" },
    remove: `alter table ${table} drop constraint ${name} cascade`,
    restore: `alter table ${table} add constraint ${name} ${made} (${columns})`,
  };
}

const TRUNCATE = " or truncate";
const REMOVALS: Removal[] = [
  trigger("AC-2", "entries", "update entries set kind = 'service'", TRUNCATE),
  trigger("AC-2", "entries", "delete from entries", TRUNCATE),
  trigger("AC-2", "entries", "truncate entries", TRUNCATE),
  trigger("AC-10", "access_log", "delete from access_log", TRUNCATE),
  trigger("AC-6", "approval_uses", "delete from approval_uses"),
  trigger("IN-2", "jobs", "update jobs set job_id = 2"),
  trigger("IN-5", "adjustments", "update adjustments set amount = 0"),
  trigger("PC-1", "month_ends", "delete from month_ends"),
  trigger("PC-1", "statements", 'update statements set text = \'{"total":"0"}\''),
  {
    ...{ control: "AC-6", what: "an approval by who proposed", as: "writer", seen: "start" },
    attack: `insert into proposal_ends values ('${LOG}', 3, 5, 'approved', 'p_first')`,
    refused: /a second person is needed/,
    remove: "drop trigger proposal_ends_second_person on proposal_ends",
    restore: `create trigger proposal_ends_second_person before insert on proposal_ends
      for each row execute function refuse_same_person();
      alter table proposal_ends enable always trigger proposal_ends_second_person`,
  },
  {
    ...{ control: "RT-1", what: "the newest checkpoint deleted", as: "owner", seen: "start" },
    attack: "delete from checkpoints",
    refused: /kept|append-only/,
    remove: "drop trigger checkpoints_kept on checkpoints",
    restore: `create trigger checkpoints_kept before delete on checkpoints
      for each row execute function refuse_kept();
      alter table checkpoints enable always trigger checkpoints_kept`,
  },
  key(
    "AC-6",
    "an approval of what was refused",
    "proposal_ends",
    "log, proposal",
    `insert into proposal_ends values ('${LOG}', 1, 5, 'approved', 'p_second')`,
  ),
  key(
    "AC-6",
    "a second entry by one approval",
    "approval_uses",
    "log, approval",
    `insert into approval_uses values ('${LOG}', 4, 6)`,
  ),
  key(
    "IN-2",
    "a second entry for a build",
    "jobs",
    "log, tracking, job_id",
    `insert into jobs values ('${LOG}', 'hosted', 1, 2, 'y')`,
  ),
  key(
    "IN-5",
    "a second reversal of a line",
    "adjustments: reversed_once",
    "log, reverses_index, reverses_line",
    `insert into adjustments
       (log, index, line, namespace_id, usage_month, billing_month, amount, reverses_index, reverses_line)
     values ('${LOG}', 12, 0, 1, '2026-11-01', '2026-11-01', 1, 1, 0)`,
  ),
  key(
    "IN-7",
    "a second reversal of a credit run",
    "credit_runs: reversed_once",
    "log, reverses",
    `insert into credit_runs (log, index, form, lines, total, reverses)
     values ('${LOG}', 12, 'credit', 1, 1, 1)`,
  ),
  key(
    "IN-8",
    "a second end of a hold",
    "hold_ends",
    "log, hold",
    `insert into hold_ends values ('${LOG}', 1, 12, 'released')`,
  ),
  key(
    "IN-8",
    "a second end of a conflict",
    "conflict_ends",
    "log, conflict",
    `insert into conflict_ends values ('${LOG}', 1, 12, 'corrected')`,
  ),
  key(
    "IN-1",
    "a break that is opened twice",
    "breaks: opened_once",
    "log, fingerprint",
    `insert into breaks (log, index, fingerprint, code, month, kid, tracking, difference_ms)
     values ('${LOG}', 12, 'same', 'duration', '2026-11-01', '', 'hosted', 1)`,
  ),
  key(
    "PC-1",
    "a month that is closed twice",
    "month_ends",
    "log, month",
    `insert into month_ends values ('${LOG}', '2026-10-01', 12, 11)`,
  ),
];

class Undone extends Error {}

/** Whether it goes through; whatever it does is undone. */
async function goesThrough(sql: Sql, attack: (tx: Transaction) => Promise<unknown>) {
  try {
    await sql.begin(async (tx) => {
      await attack(tx);
      throw new Undone();
    });
  } catch (error) {
    if (error instanceof Undone) return "goes through";
    return error instanceof Error ? error.message : String(error);
  }
  throw new Error("it was not undone");
}

async function seenAtStart(): Promise<boolean> {
  return await assertServiceRole(db.writer).then(
    () => false,
    () => true,
  );
}

test.each(REMOVALS)("$control: $what", async ({ as, attack, refused, remove, restore, seen }) => {
  const tried = () => goesThrough(db[as], (tx) => tx.unsafe(attack));
  expect(await tried()).toMatch(refused);
  expect(await seenAtStart()).toBe(false);
  await db.owner.unsafe(remove);
  try {
    expect(await tried()).toBe("goes through");
    expect(await seenAtStart()).toBe(seen === "start");
    expect((await readGuards(db.reader)).triggers_sha256).not.toBe(whole.triggers_sha256);
  } finally {
    await db.owner.unsafe(restore);
  }
});

test("AC-2: an entry altered by the service itself, once it is let and the trigger sleeps", async () => {
  const tried = () =>
    goesThrough(db.writer, (tx) => tx`update entries set kind = 'log' where index = 0`);
  expect(await tried()).toMatch(/permission denied/);
  await db.owner`grant update on entries to minutebook_writer`;
  expect(await tried()).toMatch(/append-only/);
  expect(await seenAtStart()).toBe(true);
  expect((await readGuards(db.reader)).grants_sha256).not.toBe(whole.grants_sha256);
  await db.owner`alter table entries disable trigger entries_append_only`;
  expect(await tried()).toBe("goes through");
  await db.owner`alter table entries enable always trigger entries_append_only`;
  await db.owner`revoke update on entries from minutebook_writer`;
});

test("AC-12: another tenant's rows, once row security is off", async () => {
  const seen = async (): Promise<number> => {
    return await db.reader.begin(async (tx) => {
      await asViewer(tx, { log: "b".repeat(32), namespaces: "*" });
      return (await tx`select from public.adjustments`).length;
    });
  };
  expect(await seen()).toBe(0);
  await db.owner`alter table adjustments disable row level security`;
  expect(await seen()).toBeGreaterThan(0);
  expect((await readGuards(db.reader)).triggers_sha256).not.toBe(whole.triggers_sha256);
  await db.owner`alter table adjustments enable row level security`;
});

test("AC-12: another log's head, once a tenant's view forgets whose it is", async () => {
  const [view] = await db.owner<[{ text: string }]>`
    select pg_get_viewdef('tenant.heads'::regclass) as text`;
  const seen = async (): Promise<number> => {
    return await db.reader.begin(async (tx) => {
      await asViewer(tx, { log: "b".repeat(32), namespaces: "*" });
      return (await tx`select from heads`).length;
    });
  };
  expect(await seen()).toBe(0);
  await db.owner`create or replace view tenant.heads as select * from public.heads`;
  expect(await seen()).toBeGreaterThan(0);
  expect((await readGuards(db.reader)).triggers_sha256).not.toBe(whole.triggers_sha256);
  await db.owner.unsafe(`create or replace view tenant.heads as ${view.text}`);
  expect((await readGuards(db.reader)).triggers_sha256, "its barrier").not.toBe(
    whole.triggers_sha256,
  );
  await db.owner`alter view tenant.heads set (security_barrier)`;
});

test("AC-12: everybody's entries, in a view that is made for viewers", async () => {
  await db.owner`create view tenant.all_entries as select * from public.entries`;
  await db.owner`grant select on tenant.all_entries to minutebook_viewer`;
  const { grants_sha256, triggers_sha256 } = await readGuards(db.reader);
  expect(grants_sha256).not.toBe(whole.grants_sha256);
  expect(triggers_sha256).not.toBe(whole.triggers_sha256);
  await db.owner`drop view tenant.all_entries`;
});

test.each(["aside", "pg_catalog"])(
  "AC-4: entries deleted by the service, through a function of schema %s with another's rights",
  async (schema) => {
    const name = `${schema}.delete_entries()`;
    await db.superuser`create schema if not exists aside`;
    await db.superuser`grant usage on schema aside to minutebook_writer`;
    await db.superuser.unsafe(`
      create function ${name} returns void language plpgsql security definer as $$
      begin
        alter table public.entries disable trigger entries_append_only;
        delete from public.entries;
        alter table public.entries enable always trigger entries_append_only;
      end $$`);
    expect(await goesThrough(db.writer, (tx) => tx.unsafe(`select ${name}`))).toBe("goes through");
    expect(await seenAtStart()).toBe(true);
    const { grants_sha256, triggers_sha256 } = await readGuards(db.reader);
    expect(grants_sha256).not.toBe(whole.grants_sha256);
    expect(triggers_sha256).not.toBe(whole.triggers_sha256);
    await db.superuser.unsafe(`drop function ${name}`);
    await db.superuser`drop schema if exists aside`;
  },
);

const databaseName = () => new URL(db.urls.owner).pathname.slice(1);

/** A role of this test alone, which may connect here and nowhere else. */
const PROBE = `probe_${randomBytes(6).toString("hex")}`;

test.each([
  ["a file of the server that the service may read", "execute on function pg_read_file(text) to"],
  ["passwords that a reader may look at", "select on pg_authid to"],
  ["a column of them", "select (rolpassword) on pg_authid to"],
  ["the server's own schema, open to what shadows it", "create on schema pg_catalog to"],
  ["a way past triggers", "set on parameter session_replication_role to"],
  ["a role that reads everything", "pg_read_all_data to"],
])("AC-4: %s, granted to who can connect, is seen", async (_, grant) => {
  await db.superuser.unsafe(`create role ${PROBE}`);
  await db.superuser.unsafe(`grant connect on database ${databaseName()} to ${PROBE}`);
  const before = await readGuards(db.reader);
  await db.superuser.unsafe(`grant ${grant} ${PROBE}`);
  const granted = await readGuards(db.reader);
  await db.superuser.unsafe(`revoke ${grant.replace(/to$/, "from")} ${PROBE}`);
  expect(await readGuards(db.reader)).toEqual(before);
  expect(granted).not.toEqual(before);
  await db.superuser.unsafe(`drop owned by ${PROBE}; drop role ${PROBE}`);
});

test.each([
  ["for the service", "role minutebook_writer in database"],
  ["for everybody here", "database"],
])("AC-4: where names are looked up first, set %s, is seen", async (_, whom) => {
  await db.superuser.unsafe(`alter ${whom} ${databaseName()} set search_path = aside, public`);
  expect((await readGuards(db.reader)).grants_sha256).not.toBe(whole.grants_sha256);
  await db.superuser.unsafe(`alter ${whom} ${databaseName()} reset search_path`);
});
