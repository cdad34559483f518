import { readFileSync } from "node:fs";
import { join } from "node:path";
import { afterEach, beforeEach, expect, test } from "vitest";
import { check } from "../../../src/flow/check/check.ts";
import { sha256 } from "../../../src/flow/report/signature.ts";
import { type Rebuilt, rebuild } from "../../../src/flow/usage/rebuild.ts";
import { DERIVED_TABLES, LEFT_TABLES } from "../../../src/store/rebuilds.ts";
import type { TestLedger } from "../../ledger.ts";
import { type FreshDatabase, freshDatabase } from "../../postgres.ts";
import { clock, LOG, notaryOf, writeHistory } from "../history.ts";

const TABLES = ["jobs", "reports", "keys", "heads", "watermarks", "usage_buckets"];
const VIEWS = ["namespace", "project", "gitlab_hosted_runner"].map(
  (name) => `ci_${name}_monthly_usages`,
);

let db: FreshDatabase;
let ledger: TestLedger;

beforeEach(async () => {
  db = await freshDatabase();
  ledger = await writeHistory(db);
});
afterEach(async () => {
  await db.drop();
});

async function run(write: boolean): Promise<Rebuilt> {
  return await rebuild({ sql: db.owner, clock, hash: sha256 }, { write });
}

/** Every row of a relation as text, in an order of its own. */
async function rowsOf(relation: string): Promise<string[]> {
  const rows = await db.superuser<{ row: string }[]>`
    select r::text as row from ${db.superuser(relation)} as r order by 1`;
  return rows.map(({ row }) => row);
}

async function everything(): Promise<Record<string, string[]>> {
  const all: Record<string, string[]> = {};
  for (const relation of [...TABLES, ...VIEWS]) all[relation] = await rowsOf(relation);
  return all;
}

async function proven(): Promise<boolean> {
  let exit: number | undefined;
  for await (const event of check({ sql: db.reader }, { hash: sha256, notary: notaryOf(ledger) })) {
    if (event.kind === "summary") exit = event.exit;
  }
  return exit === 0;
}

const stateOf = (rebuilt: Rebuilt, table: string) =>
  rebuilt.tables.find((row) => row.table === table);

test("invariant 1: dropping every derived table and rebuilding gives the same figures to the last digit", async () => {
  const before = await everything();
  for (const table of TABLES) await db.superuser`truncate ${db.superuser(table)}`;
  for (const view of VIEWS) {
    await db.superuser`refresh materialized view ${db.superuser(view.replace("ci_", "open_"))} with no data`;
  }
  const rebuilt = await run(true);
  const written = rebuilt.tables.filter(({ state }) => state === "written");
  expect(written.map(({ table }) => table)).toEqual(TABLES);
  expect(rebuilt.tables.every(({ state }) => state === "written" || state === "equal")).toBe(true);
  expect(rebuilt.exit).toBe(0);
  expect(await everything()).toEqual(before);
  expect(Object.values(before).every((rows) => rows.length > 0)).toBe(true);
  expect(await proven()).toBe(true);
});

test("what stands as the bytes give it is equal, and stays untouched", async () => {
  const before = await everything();
  const rebuilt = await run(true);
  expect(rebuilt).toMatchObject({ logs: 1, entries: "22", typed: { count: 0 }, exit: 0 });
  expect(rebuilt.tables).toEqual(
    DERIVED_TABLES.map((table) => ({ table, missing: "0", surplus: "0", state: "equal" })),
  );
  expect(await everything()).toEqual(before);
});

test("comparing only, a difference is counted and nothing is changed", async () => {
  await db.superuser`update usage_buckets set compute_ms = compute_ms + 0.000001 where last_index = 20`;
  await db.superuser`truncate keys`;
  const before = await everything();
  const rebuilt = await run(false);
  expect(stateOf(rebuilt, "usage_buckets")).toMatchObject({
    missing: "1",
    surplus: "1",
    state: "differs",
  });
  expect(stateOf(rebuilt, "keys")).toMatchObject({ missing: "1", surplus: "0", state: "differs" });
  expect(rebuilt.exit).toBe(1);
  expect(await everything()).toEqual(before);
});

test("figures that were changed by hand are put right, and the views with them", async () => {
  const before = await everything();
  await db.superuser`update usage_buckets set namespace_id = namespace_id + 98, jobs = 0`;
  await db.superuser`refresh materialized view open_namespace_monthly_usages`;
  await db.superuser`update heads set control_index = -1`;
  expect((await run(true)).exit).toBe(0);
  expect(await everything()).toEqual(before);
});

test("a row written once that differs is refused: a rebuild adds to these tables and takes nothing back", async () => {
  await db.superuser`alter table jobs disable trigger all`;
  await db.superuser`update jobs set index = 3 where index = 5`;
  await db.superuser`alter table jobs enable trigger all`;
  await db.superuser`alter table keys disable trigger all`;
  await db.superuser`update keys set public_key = sha256(public_key)`;
  await db.superuser`alter table keys enable trigger all`;
  await db.superuser`truncate reports`;
  const jobs = await rowsOf("jobs");
  const rebuilt = await run(true);
  expect(stateOf(rebuilt, "jobs")).toMatchObject({ missing: "1", surplus: "1", state: "refused" });
  expect(stateOf(rebuilt, "keys")).toMatchObject({ surplus: "1", state: "refused" });
  expect(stateOf(rebuilt, "reports")).toMatchObject({ state: "written" });
  expect(rebuilt.exit).toBe(1);
  expect(await rowsOf("jobs")).toEqual(jobs);
  // The way out: the owner empties them, and what the bytes give is written.
  await db.owner`truncate jobs, keys`;
  expect((await run(true)).exit).toBe(0);
  expect(await proven()).toBe(true);
});

test("figures come from bytes: a typed column that was changed is found and not believed", async () => {
  const before = await everything();
  await db.superuser`alter table entries disable trigger all`;
  await db.superuser`update entries set compute_ms = 1 where index = 6`;
  await db.superuser`truncate usage_buckets`;
  const rebuilt = await run(true);
  expect(rebuilt.typed.count).toBe(1);
  expect(rebuilt.typed.first).toMatchObject({
    log: LOG,
    index: "6",
    column: "compute_ms",
    found: "1.000000",
  });
  expect(rebuilt.exit).toBe(1);
  expect(await everything()).toEqual(before);
});

test("without a log there is nothing to rebuild from, and it says so", async () => {
  const empty = await freshDatabase();
  const rebuilt = await rebuild({ sql: empty.owner, clock, hash: sha256 }, { write: true });
  await empty.drop();
  expect(rebuilt).toMatchObject({ logs: 0, entries: "0", exit: 2 });
});

test("a log that cannot be read is not rebuilt from, and nothing is changed", async () => {
  await db.superuser`alter table entries disable trigger all`;
  await db.superuser`update entries set bytes = '\\x00' where index = 7`;
  await db.superuser`truncate usage_buckets`;
  const before = await everything();
  await expect(run(true)).rejects.toThrow(`entry 7 of ${LOG} cannot be read`);
  expect(await everything()).toEqual(before);
});

/** docs/operations.md: each table in one line, with what it is and how it comes back. */
function declared(): { is: string; tables: string[]; back: string }[] {
  const text = readFileSync(join(import.meta.dirname, "../../../docs/operations.md"), "utf8");
  const lines = text.matchAll(/^\| (log|derived|beside) \| (.+) \| (.+) \|$/gm);
  return [...lines].map(([, is = "", named = "", back = ""]) => {
    return { is, tables: [...named.matchAll(/`(\w+)`/g)].map(([, name = ""]) => name), back };
  });
}

test("every table of the database is declared: the log, what follows from it, and what is beside it", async () => {
  const tables = await db.owner<{ name: string }[]>`
    select relname as name
    from pg_class
    where relkind in ('r', 'p', 'm') and relnamespace = 'public'::regnamespace`;
  const named = declared().flatMap((line) => line.tables);
  expect(named.toSorted()).toEqual(tables.map(({ name }) => name).toSorted());
  const derived = declared().filter(({ is }) => is === "derived");
  const rebuilt = derived.filter(({ back }) => back.startsWith("`minutebook rebuild --write`"));
  expect(rebuilt.flatMap((line) => line.tables).toSorted()).toEqual(DERIVED_TABLES.toSorted());
  const left = LEFT_TABLES.flatMap((line) => line.tables as readonly string[]);
  const shown = ["open_namespace", "open_project", "open_gitlab_hosted_runner"];
  const views = shown.map((name) => `${name}_monthly_usages`);
  const others = derived.filter((line) => !rebuilt.includes(line));
  expect(others.flatMap((line) => line.tables).toSorted()).toEqual([...left, ...views].toSorted());
});
