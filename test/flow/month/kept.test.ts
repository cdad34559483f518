/** What is kept of a closed month stays as it was written, or is found to be something else. */
import { afterAll, beforeAll, expect, test } from "vitest";
import { check } from "../../../src/flow/check/check.ts";
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
});
