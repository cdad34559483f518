/** What is kept of a closed month stays as it was written, or is found to be something else. */
import { afterAll, beforeAll, expect, test } from "vitest";
import { check } from "../../../src/flow/check/check.ts";
import { type Rebuilt, rebuild } from "../../../src/flow/usage/rebuild.ts";
import { closeHouse, type House, openHouse, sha256 } from "../door.ts";
import { openDesk } from "./desk.ts";

const OCTOBER = "2026-10-01";
const TABLES = ["allocations", "pack_rolls", "statements"] as const;

let house: House;
let log: string;

beforeAll(async () => {
  house = await openHouse();
  const desk = await openDesk(house, "kept", { since: "2026-10-20T12:00:00.000Z" });
  log = desk.log;
  await desk.account("");
  await desk.limit("9", { monthly_minutes: "2" });
  await desk.pack("9", { minutes: "5", purchased_in: OCTOBER });
  const build = { job: "1", namespace: "9", minutes: 3, finished: "2026-10-20T11:00:00.000Z" };
  expect(await desk.build(build)).toBe("accepted");
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
  for (const [i, table] of TABLES.entries()) {
    await owner`truncate ${owner(table)}`;
    expect(await rebuilt(false)).toMatchObject({ of: `${table} 1 0 differs`, exit: 1 });
    expect((await kept())[i]).toEqual([]);
    expect(await rebuilt(true)).toMatchObject({ of: `${table} 1 0 written`, exit: 0 });
    expect(await kept()).toEqual(before);
  }
});

test("what is counted from a table that differs is not counted before that is put right", async () => {
  const { owner, superuser } = house.database;
  await owner`truncate allocations`;
  await superuser`update usage_buckets set compute_ms = compute_ms + 1 where log = ${log}`;
  const uncounted = TABLES.map((table) => `${table}   uncounted`);
  const differing = ["usage_buckets 1 1 differs", ...uncounted].join();
  expect(await rebuilt(false)).toMatchObject({ of: differing, exit: 1 });
  const written = "usage_buckets 1 1 written,allocations 1 0 written";
  expect(await rebuilt(true)).toMatchObject({ of: written, exit: 0 });
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
  expect(await found()).toEqual(["allocations sha256", "pack_rolls sha256", "statements totals"]);
  // An answer that was given is taken back by nobody but the owner, who empties its table.
  const refused = "allocations 1 1 refused,pack_rolls 1 0 written,statements 1 1 refused";
  expect(await rebuilt(true)).toMatchObject({ of: refused, exit: 1 });
  await owner`truncate allocations, statements`;
  expect((await rebuilt(true)).exit).toBe(0);
  expect(await found()).toEqual([]);
});
