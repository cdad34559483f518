/** Rows that a superuser takes away before their day has a digest: what the log says then, and who finds it. */
import { randomBytes } from "node:crypto";
import { afterAll, beforeAll, expect, test } from "vitest";
import { checkDay, digestDays } from "../../../src/flow/access/digest.ts";
import { check } from "../../../src/flow/check/check.ts";
import { createAccessMark } from "../../../src/store/access-log.ts";
import type { Sql } from "../../../src/store/connect.ts";
import { closeHouse, type Door, type House, newLog, openHouse, sha256 } from "../door.ts";

let house: House;
let door: Door;
let log: string;
let [reader, writer, superuser] = [] as Sql[] as [Sql, Sql, Sql];

beforeAll(async () => {
  house = await openHouse();
  door = house.open();
  ({ reader, writer, superuser } = house.database);
  log = await newLog(door, "accesses");
  await createAccessMark(writer, log, undefined);
  await superuser`alter table access_log disable trigger access_log_append_only`;
});
afterAll(() => closeHouse(house));

async function asked(day: string, count: number): Promise<void> {
  await writer`
    with mark as (
      update access_marks set number = number + ${count} where log = ${log} returning number
    )
    insert into access_log (log, number, day, at, by, roles, method, route, target, status, request)
    select
      ${log}, number - ${count} + n, ${day}, ${new Date(`${day}T12:00:00.000Z`)},
      'p_x', 'auditor', 'GET', '/v1/usage', '/v1/usage', 200, 'r'
    from mark, generate_series(1, ${count}) as n`;
}

/** @returns what it told of while it wrote what was due */
async function digested(): Promise<string[]> {
  const told: string[] = [];
  const { appender } = door;
  await digestDays({ sql: writer, appender, random: randomBytes }, (error) => {
    told.push(String(error));
  });
  return told;
}

const take = (number: number) =>
  superuser`delete from access_log where log = ${log} and number = ${number}`;

async function found(): Promise<string[][]> {
  const findings: string[][] = [];
  for await (const event of check({ sql: reader }, { hash: sha256 })) {
    if (event.kind !== "finding") continue;
    findings.push([event.table, event.column, event.expected, event.found]);
  }
  return findings;
}

test("a row that is gone before its day has a digest is missing on the log once, and found by who checks", async () => {
  await asked("2026-01-05", 2);
  expect(await digested()).toEqual([]);
  expect(await found()).toEqual([]);
  await asked("2026-01-06", 3);
  await take(3);
  await take(5);
  // What was behind a day's last row shows when the next row comes.
  expect(await checkDay(reader, log, "2026-01-06")).toMatchObject({ agrees: false, missing: "2" });
  expect(await digested()).toEqual(["Error: 1 rows of 2026-01-06 or before are missing"]);
  await asked("2026-01-07", 1);
  expect(await digested()).toEqual(["Error: 1 rows of 2026-01-07 or before are missing"]);
  await asked("2026-01-08", 1);
  expect(await digested()).toEqual([]);
  const stated = [];
  for (const day of ["2026-01-05", "2026-01-06", "2026-01-07", "2026-01-08"]) {
    const { agrees, stated: said } = await checkDay(reader, log, day);
    stated.push([agrees, said?.lines, said?.missing]);
  }
  expect(stated).toEqual([
    [false, "2", undefined], // one beside it is gone
    [false, "1", "1"],
    [false, "1", "1"],
    [true, "1", undefined],
  ]);
  expect(await found()).toEqual([
    ["access_log", "number", "3", "none"],
    ["access_log", "number", "5", "none"],
  ]);
});

test("a row of a digested day that is changed, and a mark that is put back, are found by who checks", async () => {
  await asked("2026-01-09", 1);
  await digested();
  const before = await found();
  const [mark] = await superuser<{ number: bigint }[]>`
    update access_marks set number = number - 1 where log = ${log} returning number`;
  const number = mark?.number ?? 0n;
  await superuser`update access_log set by = 'p_other' where log = ${log} and day = '2026-01-09'`;
  expect((await found()).slice(before.length)).toEqual([
    ["access_marks", "number", String(number + 1n), String(number)],
    ["access_log", "2026-01-09", expect.stringMatching(/^1 rows/), expect.any(String)],
  ]);
});
