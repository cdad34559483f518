/** Each process' copy of the logs' own mappings, and what becomes of it while the database is away. */
import { afterAll, beforeAll, expect, test } from "vitest";
import type { MappedRole } from "../../../src/core/control.ts";
import { openStandings } from "../../../src/flow/access/standing.ts";
import { connect } from "../../../src/store/connect.ts";
import { barPrincipals } from "../../../src/store/principals.ts";
import { closeHouse, type Door, type House, newLog, openHouse } from "../door.ts";

let house: House;
let door: Door;
let log: string;

beforeAll(async () => {
  house = await openHouse();
  door = house.open();
  log = await newLog(door, "mapped", { card: "none" });
});
afterAll(() => closeHouse(house));

const grant = (value: string): MappedRole => ({
  ...{ claim: "groups", issuer: "https://one.example", namespaces: "*" },
  ...{ role: "finance", value },
});

async function map(...values: string[]): Promise<void> {
  const salt = Buffer.alloc(16).toString("base64");
  const body = { approval: "", by: "p_x", grants: values.map(grant), salt };
  await door.appender.control(log, "role_mapping", () => body);
}

function open(sql = house.database.writer) {
  const clock = { ms: 0 };
  const failures: unknown[] = [];
  const failed = (error: unknown) => void failures.push(error);
  const standings = openStandings({ sql, failed, now: () => clock.ms });
  const values = async () => {
    const { mappings } = await standings.current();
    return mappings.get(log)?.map(({ value }) => value);
  };
  return { clock, failures, standings, values };
}

test("a new mapping counts within five seconds for whoever has an older copy, and at once when asked to look", async () => {
  await map("one");
  const { clock, standings, values } = open();
  expect(await values()).toEqual(["one"]);
  const before = await standings.current();
  await map("two", "three");
  expect(await values()).toEqual(["one"]);
  clock.ms = 5_000;
  expect(await values()).toEqual(["two", "three"]);
  expect(await standings.current()).not.toBe(before);
  await map();
  await standings.renew();
  expect(await values()).toEqual([]);
});

test("as long as nothing changes the copy is the same object, so that nothing is worked out again", async () => {
  const { clock, standings } = open();
  const first = await standings.current();
  for (let i = 0; i < 3; i += 1) {
    clock.ms += 5_000;
    expect(await standings.current()).toBe(first);
  }
});

test("whoever is barred is known with it", async () => {
  const { standings } = open();
  await barPrincipals(house.database.writer, [{ log, id: "p_gone", by: "p_x", reason: "left" }]);
  await standings.renew();
  expect([...((await standings.current()).barred.get("p_gone") ?? [])]).toEqual([log]);
});

test("while the database is away a mapping stays as it was, and nobody gets what configuration gives", async () => {
  await map("kept");
  const sql = connect(house.database.urls.writer, { max: 2 });
  const { clock, failures, values } = open(sql);
  expect(await values()).toEqual(["kept"]);
  await sql.end();
  for (let i = 0; i < 3; i += 1) {
    clock.ms += 60_000;
    expect(await values()).toEqual(["kept"]);
  }
  expect(failures.length).toBeGreaterThan(0);
});

test("before anything was read nobody is let in at all: busy", async () => {
  const sql = connect(house.database.urls.writer, { max: 2 });
  await sql.end();
  const { standings } = open(sql);
  await expect(async () => await standings.current()).rejects.toMatchObject({ code: "busy" });
});
