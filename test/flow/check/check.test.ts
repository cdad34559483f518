import { afterAll, beforeAll, expect, test } from "vitest";
import { signNote } from "../../../src/core/note.ts";
import { type CheckOptions, check } from "../../../src/flow/check/check.ts";
import type { CheckEvent, Finding, Summary } from "../../../src/flow/check/event.ts";
import { sha256 } from "../../../src/flow/report/signature.ts";
import type { Sql } from "../../../src/store/connect.ts";
import type { TestLedger } from "../../ledger.ts";
import { type FreshDatabase, freshDatabase } from "../../postgres.ts";
import { testKey } from "../../signing.ts";
import { LOG, notaryOf, writeHistory } from "../history.ts";

const OTHER_LOG = "b".repeat(32);

let db: FreshDatabase;
let ledger: TestLedger;

beforeAll(async () => {
  db = await freshDatabase();
  ledger = await writeHistory(db);
  await liftGuards(db.superuser);
});
afterAll(async () => {
  await db.drop();
});

/** What only a superuser can do, and then anything: triggers and constraints are out of the way. */
async function liftGuards(sql: Sql): Promise<void> {
  const tables = ["entries", "jobs", "reports", "keys", "checkpoints"];
  for (const table of tables) await sql`alter table ${sql(table)} disable trigger all`;
  const constraints = await sql<{ table: string; name: string }[]>`
    select conrelid::regclass::text as "table", conname as name
    from pg_constraint
    where contype = 'c' and connamespace = 'public'::regnamespace`;
  for (const { table, name } of constraints) {
    await sql`alter table ${sql(table)} drop constraint ${sql(name)}`;
  }
}

async function run(
  given: CheckOptions = { hash: sha256, notary: notaryOf(ledger) },
): Promise<{ findings: Finding[]; summary: Summary }> {
  const events: CheckEvent[] = [];
  for await (const event of check({ sql: db.reader }, given)) events.push(event);
  const summary = events.at(-1);
  if (summary?.kind !== "summary") throw new Error("the last event is the summary");
  return { findings: events.filter((event) => event.kind === "finding"), summary };
}

test("an untouched log is proven, and the answer says how much of it", async () => {
  const { findings, summary } = await run();
  expect(findings).toEqual([]);
  expect(summary).toEqual({
    kind: "summary",
    logs: 1,
    entries: String(ledger.size),
    findings: 0,
    unread: 0,
    unsigned: 0,
    exit: 0,
  });
});

test("without a key for the checkpoints nothing is found, and nothing is proven either", async () => {
  const { findings, summary } = await run({ hash: sha256 });
  expect(findings).toEqual([]);
  expect(summary).toMatchObject({ unsigned: 2, exit: 2 });
});

test("a checkpoint that is signed by the log's key and speaks for another origin is named", async () => {
  const sql = db.superuser;
  const [row] = await sql<{ size: bigint; note: string }[]>`select size, note from checkpoints`;
  const { text, name } = readNote(row?.note ?? "");
  const forged = signNote(text.replace("ledger.test/", "other.test/"), [{ ...testKey(201), name }]);
  const write = (note: string | undefined) =>
    sql`update checkpoints set note = ${note ?? ""} where size = ${row?.size ?? 0n}`;
  const { findings } = await findingsOf(
    () => write(forged),
    () => write(row?.note),
  );
  expect(findings).toMatchObject([
    { table: "checkpoints", column: "note", expected: name, found: `other.test/${LOG}` },
  ]);
});

function readNote(note: string): { text: string; name: string } {
  const text = note.slice(0, note.lastIndexOf("\n\n") + 1);
  return { text, name: text.slice(0, text.indexOf("\n")) };
}

/** When work was done is on no log: these two say nothing that bytes could prove. */
const UNPROVABLE = ["checkpoints.sealed_at", "watermarks.refreshed_at"];

const TABLES = [
  "entries",
  "heads",
  "jobs",
  "reports",
  "keys",
  "seals",
  "checkpoints",
  "usage_buckets",
  "watermarks",
];
const VIEWS = ["namespace", "project", "gitlab_hosted_runner"].flatMap((name) => [
  `open_${name}_monthly_usages`,
  `ci_${name}_monthly_usages`,
]);

interface Column {
  name: string;
  type: string;
}

async function columnsOf(relation: string): Promise<Column[]> {
  return await db.superuser<Column[]>`
    select attname as name, format_type(atttypid, null) as type
    from pg_attribute
    where attrelid = ${relation}::regclass and attnum > 0 and not attisdropped
    order by attnum`;
}

/** Another value of the column's type. */
function changed({ name, type }: Column): string {
  if (name === "log") return `'${OTHER_LOG}'`;
  if (type === "bytea") return `set_byte(${name}, 0, 255 - get_byte(${name}, 0))`;
  if (type === "text") return `${name} || 'x'`;
  if (type === "date") return `(${name} + interval '1 month')::date`;
  if (type.startsWith("timestamp")) return `${name} + interval '1 millisecond'`;
  // So far that no primary key stands in the way.
  return `${name} + 1_000`;
}

/** Changes one value, checks, and puts it back; what the check said of that table. */
async function tamper(table: string, column: Column, value = changed(column)): Promise<Finding[]> {
  const sql = db.superuser;
  const usage = table === "entries" ? sql`where kind = 'usage' and index > 6` : sql``;
  const [row] = await sql<{ ctid: string; before: string }[]>`
    update ${sql(table)}
    set ${sql(column.name)} = ${sql.unsafe(value)}
    where ctid = (select ctid from ${sql(table)} ${usage} limit 1)
    returning new.ctid::text as ctid, old.${sql(column.name)}::text as before`;
  if (row === undefined) throw new Error(`${table} is empty`);
  const { findings, summary } = await run();
  expect(summary.exit).toBe(findings.length > 0 ? 1 : 0);
  await sql`
    update ${sql(table)}
    set ${sql(column.name)} = ${row.before}::text::${sql.unsafe(column.type)}
    where ctid = ${row.ctid}::text::tid`;
  return findings.filter((finding) => finding.table === table);
}

/** A view cannot be updated, not even by a superuser; put a table with its rows in its place. */
async function tamperView(view: string, column: Column): Promise<Finding[]> {
  const sql = db.superuser;
  const kind = sql.unsafe(view.startsWith("open_") ? "materialized view" : "view");
  await sql`alter ${kind} ${sql(view)} rename to set_aside`;
  await sql`create table ${sql(view)} as select * from set_aside`;
  await sql`grant select on ${sql(view)} to minutebook_reader`;
  const findings = await tamper(view, column);
  await sql`drop table ${sql(view)}`;
  await sql`alter ${kind} set_aside rename to ${sql(view)}`;
  return findings;
}

/** A row moved to another log is a row too few here and one too many there. */
const names = (column: string) => (finding: Finding) =>
  finding.column === column || column === "log";

test("a superuser's change of any single column is named by its table and column", async () => {
  const unnamed: string[] = [];
  for (const relation of [...TABLES, ...VIEWS]) {
    for (const column of await columnsOf(relation)) {
      const change = VIEWS.includes(relation) ? tamperView : tamper;
      const findings = await change(relation, column);
      if (!findings.some(names(column.name))) unnamed.push(`${relation}.${column.name}`);
    }
  }
  expect(unnamed).toEqual(UNPROVABLE);
  expect((await run()).summary.exit).toBe(0);
});

/** By type: what a column takes and no entry can say. */
const OUTLANDISH: Record<string, string[]> = {
  "timestamp with time zone": ["infinity", "-infinity", "2026-11-01 BC", "294276-12-31"],
  date: ["infinity", "-infinity", "2026-11-01 BC"],
  numeric: ["NaN"],
};

test("what no entry can say is named by its table and column too: infinity, before Christ, no number", async () => {
  const unnamed = new Set<string>();
  for (const table of TABLES) {
    for (const column of await columnsOf(table)) {
      for (const value of OUTLANDISH[column.type] ?? []) {
        const findings = await tamper(table, column, `'${value}'`);
        if (!findings.some(names(column.name))) unnamed.add(`${table}.${column.name}`);
      }
    }
  }
  expect([...unnamed]).toEqual(UNPROVABLE);
});

async function findingsOf(change: () => Promise<unknown>, undo: () => Promise<unknown>) {
  await change();
  const { findings, summary } = await run();
  await undo();
  return { findings, summary };
}

test("after the first finding the count goes on, and the first is the first of the log", async () => {
  const sql = db.superuser;
  const flip = () =>
    sql`update entries set leaf = set_byte(leaf, 0, 255 - get_byte(leaf, 0)) where index in (7, 12, 20)`;
  const { findings, summary } = await findingsOf(flip, flip);
  const places = findings.map(({ table, index, column }) => `${table} ${index} ${column}`);
  expect(places).toEqual(["entries 7 leaf", "entries 12 leaf", "entries 20 leaf"]);
  expect(summary.findings).toBe(findings.length);
  expect(summary.exit).toBe(1);
});

test("bytes that were changed are told from a leaf that was, by the entry that came after", async () => {
  const sql = db.superuser;
  const swap = (from: string, to: string) =>
    sql`update entries set bytes = convert_to(replace(convert_from(bytes, 'UTF8'), ${from}, ${to}), 'UTF8')
        where index = 8`;
  const { findings } = await findingsOf(
    () => swap('"card":"2"', '"card":"1"'),
    () => swap('"card":"1"', '"card":"2"'),
  );
  const entry = findings.filter(({ table, index }) => table === "entries" && index === "8");
  expect(new Set(entry.map(({ column }) => column))).toEqual(new Set(["bytes"]));
  expect(entry.some(({ expected, found }) => expected === "card 2" && found === "card 1")).toBe(
    true,
  );
});

test.each(["jobs", "reports", "keys"])(
  "a row too few and a row too many in %s are named",
  async (table) => {
    const sql = db.superuser;
    await sql`create table kept as select * from ${sql(table)}`;
    await sql`delete from ${sql(table)} where ctid = (select min(ctid) from ${sql(table)})`;
    const few = await run();
    await sql`insert into ${sql(table)} select * from kept on conflict do nothing`;
    await sql`insert into ${sql(table)} select (jsonb_populate_record(t, '{"kid":"x","tracking":"x"}')).*
    from kept as t limit 1`;
    const many = await run();
    await sql`delete from ${sql(table)}`;
    await sql`insert into ${sql(table)} select * from kept`;
    await sql`drop table kept`;
    expect(few.findings).toMatchObject([{ table, found: "none" }]);
    expect(many.findings).toMatchObject([{ table, expected: "none" }]);
  },
);

test("an entry that was cut out, and a tail that was cut off, are named at their place", async () => {
  const sql = db.superuser;
  await sql`create table kept as select * from entries`;
  const restore = () => sql`insert into entries select * from kept on conflict do nothing`;
  const inside = await findingsOf(() => sql`delete from entries where index = 10`, restore);
  const tail = await findingsOf(() => sql`delete from entries where index > 20`, restore);
  await sql`drop table kept`;
  expect(inside.findings[0]).toMatchObject({
    table: "entries",
    column: "index",
    index: "10",
    found: "11",
  });
  const heads = tail.findings.filter(({ table }) => table === "heads");
  expect(heads[0]).toMatchObject({ column: "size", expected: "21", found: "22" });
  expect(tail.findings.some(({ table }) => table === "jobs")).toBe(true);
});

test("a bucket or a row of a view that nothing gives, or that is gone, is named", async () => {
  const sql = db.superuser;
  await sql`create table kept as select * from usage_buckets`;
  await sql`delete from usage_buckets where last_index = 20`;
  await sql`insert into usage_buckets
    select (jsonb_populate_record(t, '{"last_index":99,"namespace_id":99}')).* from kept as t limit 1`;
  const { findings } = await run();
  await sql`delete from usage_buckets`;
  await sql`insert into usage_buckets select * from kept`;
  await sql`drop table kept`;
  expect(findings).toMatchObject([
    { table: "usage_buckets", column: "last_index", expected: "20", found: "none" },
    { table: "usage_buckets", column: "last_index", expected: "none", found: "99" },
  ]);
});
