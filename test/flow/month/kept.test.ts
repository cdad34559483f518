/** What is kept of a closed month stays as it was written, or is found to be something else. */
import { afterAll, beforeAll, expect, test } from "vitest";
import { check } from "../../../src/flow/check/check.ts";
import { type Rebuilt, rebuild } from "../../../src/flow/usage/rebuild.ts";
import { DERIVED_TABLES } from "../../../src/store/rebuilds.ts";
import { closeHouse, digestOf, type House, openHouse, sha256 } from "../door.ts";
import { type MonthDesk, openDesk } from "./desk.ts";

const OCTOBER = "2026-10-01";
const TABLES = ["allocations", "pack_rolls", "statements"] as const;

let house: House;
let log: string;
let desk: MonthDesk;

beforeAll(async () => {
  house = await openHouse();
  desk = await openDesk(house, "kept", { since: "2026-10-20T12:00:00.000Z" });
  log = desk.log;
  await desk.account("");
  await desk.limit("9", { monthly_minutes: "2" });
  await desk.pack("9", { minutes: "5", purchased_in: OCTOBER });
  const build = { job: "1", namespace: "9", minutes: 3, finished: "2026-10-20T11:00:00.000Z" };
  expect(await desk.build(build)).toBe("accepted");
  expect(await desk.build({ ...build, minutes: 4 })).toBe("conflict");
  expect(await desk.build({ ...build, job: "2", finished: "2026-10-20T13:00:00.000Z" })).toBe(
    "future",
  );
  await desk.resolveConflicts();
  await desk.resolveHolds();
  await desk.resolveBreak(await desk.breakOf(OCTOBER));
  await desk.adjust(OCTOBER, { namespace_id: "9", usage_month: OCTOBER, amount: "-0.000001" });
  desk.at("2026-11-04T00:00:00.000Z");
  await desk.attest();
  await desk.cover(`${OCTOBER}T00:00:00.000Z`, "2026-11-01T00:00:00.000Z");
  expect(await desk.close(OCTOBER)).toEqual(["done"]);
  await desk.settle();
  expect(await desk.finish()).toMatchObject({ missing: [] });
  await desk.settle();
});

afterAll(() => closeHouse(house));

test("no role of the service changes what is kept of a closed month, nor does its owner", async () => {
  const { owner, writer } = house.database;
  for (const table of TABLES) {
    await expect(writer`delete from ${writer(table)}`).rejects.toThrow("permission denied");
    await expect(owner`delete from ${owner(table)}`).rejects.toThrow("append-only");
  }
});

async function rebuilt(write: boolean): Promise<Pick<Rebuilt, "months" | "exit"> & { of: string }> {
  const clock = { now: () => Date.UTC(2026, 10, 4) };
  const found = await rebuild({ sql: house.database.owner, clock, hash: sha256 }, { write });
  const of = found.tables
    .filter(({ state }) => state !== "equal")
    .map(({ table, missing, surplus, state }) => `${table} ${missing} ${surplus} ${state}`);
  return { of: of.join(), months: found.months, exit: found.exit };
}

test("invariant 1: what is kept of a closed month is dropped and rebuilt, to the last digit and byte", async () => {
  const { owner, reader } = house.database;
  const kept = () =>
    Promise.all(TABLES.map((table) => reader`select * from ${reader(table)} order by 1, 2, 3`));
  const before = await kept();
  expect(before.map((rows) => rows.length)).toEqual([1, 1, 1]);
  expect(await rebuilt(false)).toEqual({ of: "", months: { count: 0 }, exit: 0 });
  const all = (state: string) => TABLES.map((table) => `${table} 1 0 ${state}`).join();
  await owner`truncate ${owner(TABLES)}`;
  expect(await rebuilt(false)).toMatchObject({ of: all("differs"), exit: 1 });
  expect(await kept()).toEqual([[], [], []]);
  expect(await rebuilt(true)).toMatchObject({ of: all("written"), exit: 0 });
  expect(await kept()).toEqual(before);
});

/** Of decisions of two persons, of credit runs and of the portal there is nothing here: their own tests compare. */
const ELSEWHERE = [
  "proposals",
  "proposal_ends",
  "approval_uses",
  "credit_runs",
  "feed_acks",
  "portal_breaks",
];

test("invariant 1: of a log with a closed month every derived table is dropped at once, and rebuilt", async () => {
  const { superuser } = house.database;
  const rowsOf = async (table: string) => {
    const rows = await superuser`select r::text as row from ${superuser(table)} as r order by 1`;
    return rows.map(({ row }) => row as string);
  };
  const everything = async () =>
    new Map(
      await Promise.all(DERIVED_TABLES.map(async (table) => [table, await rowsOf(table)] as const)),
    );
  const before = await everything();
  const empty = DERIVED_TABLES.filter((table) => before.get(table)?.length === 0);
  expect(empty).toEqual(ELSEWHERE);
  await superuser`truncate ${superuser(DERIVED_TABLES)}`;
  const { exit, of } = await rebuilt(true);
  expect([exit, of.split(",").length]).toEqual([0, DERIVED_TABLES.length - ELSEWHERE.length]);
  // When figures were refreshed last is no fact of the log.
  const after = await everything();
  for (const table of DERIVED_TABLES.filter((name) => name !== "watermarks")) {
    expect([table, after.get(table)]).toEqual([table, before.get(table)]);
  }
});

test("what is counted from a table that differs is not counted before that is put right", async () => {
  const { owner, superuser } = house.database;
  await owner`truncate allocations`;
  await superuser`update usage_buckets set compute_ms = compute_ms + 1 where jobs = 1`;
  const uncounted = TABLES.map((table) => `${table}   uncounted`);
  const differing = ["usage_buckets 1 1 differs", ...uncounted].join();
  expect(await rebuilt(false)).toMatchObject({ of: differing, exit: 1 });
  const written = "usage_buckets 1 1 written,allocations 1 0 written";
  expect(await rebuilt(true)).toMatchObject({ of: written, exit: 0 });
});

test("no other text is served as a month's statement, and none that the archive does not have is ever signed", async () => {
  const { owner, superuser } = house.database;
  const october = await desk.statement(OCTOBER);
  const note = await desk.note(OCTOBER);
  const altered = { code: "not-as-signed", cause: expect.objectContaining({}) };
  const state = async (text: string): Promise<void> => {
    await superuser`update statements set text = ${text} where log = ${log} and month = ${OCTOBER}`;
  };
  await owner`alter table statements disable trigger statements_append_only`;
  await state(october.replace('"jobs":"', '"jobs":"1'));
  await expect(desk.statement(OCTOBER)).rejects.toMatchObject(altered);
  await expect(desk.note(OCTOBER)).rejects.toMatchObject(altered);
  // Nor of an entry that was altered to fit, which the archive has otherwise.
  const other = october.replace('"jobs":"', '"jobs":"2');
  const fitted = async (from: string, to: string): Promise<void> => {
    await superuser`
      update entries
      set bytes = convert_to(
        replace(convert_from(bytes, 'UTF8'), ${digestOf(from)}::text, ${digestOf(to)}::text), 'UTF8'
      )
      where log = ${log} and kind = 'month_closed'`;
  };
  await owner`alter table entries disable trigger all`;
  await fitted(october, other);
  await state(other);
  expect(await desk.statement(OCTOBER)).toBe(other);
  await expect(desk.note(OCTOBER)).rejects.toMatchObject(altered);
  await fitted(other, october);
  await state(october);
  await owner`alter table entries enable always trigger entries_append_only`;
  await owner`alter table statements enable always trigger statements_append_only`;
  expect(await desk.note(OCTOBER)).toBe(note);
});

test("check finds a line or a statement that was changed where no trigger refused it", async () => {
  const { auditor, owner, superuser } = house.database;
  const found = async (): Promise<string[]> => {
    const differing: string[] = [];
    for await (const event of check({ sql: auditor }, { hash: sha256 })) {
      if (event.kind === "finding") differing.push(`${event.table} ${event.column}`);
    }
    return differing;
  };
  expect(await found()).toEqual([]);
  for (const table of TABLES) {
    await owner`alter table ${owner(table)} disable trigger ${owner(`${table}_append_only`)}`;
  }
  await superuser`
    update allocations set included = included - 1, overage = overage + 1 where log = ${log}`;
  await superuser`delete from pack_rolls where log = ${log}`;
  await superuser`
    update statements set text = replace(text, '"jobs":"1"', '"jobs":"2"') where log = ${log}`;
  expect(await found()).toEqual(["allocations sha256", "pack_rolls sha256", "statements sha256"]);
  // An answer that was given is taken back by nobody but the owner, who empties its table.
  const refused = "allocations 1 1 refused,pack_rolls 1 0 written,statements 1 1 refused";
  expect(await rebuilt(true)).toMatchObject({ of: refused, exit: 1 });
  await owner`truncate allocations, statements`;
  expect((await rebuilt(true)).exit).toBe(0);
  expect(await found()).toEqual([]);
});
