/** Entries that stand together or not at all, and the tables that follow from them. */
import { afterAll, beforeAll, expect, test } from "vitest";
import { BESIDE_TABLES } from "../../src/core/beside.ts";
import type { Body } from "../../src/core/entry.ts";
import { rebuild } from "../../src/flow/usage/rebuild.ts";
import { NOW } from "../core/history.ts";
import { closeHouse, type Door, type House, newLog, ofKind, openHouse, sha256 } from "./door.ts";
import { readBack } from "./replay.ts";

let house: House;
let door: Door;

beforeAll(async () => {
  house = await openHouse();
  door = house.open();
});

afterAll(() => closeHouse(house));

const salt = Buffer.alloc(16).toString("base64");
const CASE = { by: "finance", reason: "outage", salt, ticket: "INC-1" };
const open = (fingerprint: number): Body<"break"> => ({
  ...{ code: "duration", detail: "", difference_ms: "-5001", job_id: "7", kid: "", salt },
  fingerprint: Buffer.alloc(32, fingerprint).toString("base64"),
  ...{ month: "2026-11-01", namespace_id: "", runner_id: "", tracking: "hosted", usage: "" },
});
const accepted = (index: bigint): Body<"break_resolved"> => ({
  ...CASE,
  ...{ approval: "", break: String(index), evidence: "", outcome: "accepted" },
});

test("entries that are put together are neighbours, and their rows stand beside them", async () => {
  const log = await newLog(door, "together");
  const [first, second] = await door.appender.together(log, async (put) => {
    const broken = await put("break", open(1));
    return [broken, await put("break_resolved", accepted(broken.index))];
  });
  expect(second?.index).toBe((first?.index ?? 0n) + 1n);
  const [row] = await house.database.reader`
    select b.index, e.index as end, b.difference_ms, b.usage
    from breaks b
    join break_ends e on e.log = b.log and e.break = b.index
    where b.log = ${log}`;
  expect(row).toEqual({
    index: first?.index,
    end: second?.index,
    difference_ms: -5001n,
    usage: null,
  });
});

test("of entries of which one cannot stand, none does", async () => {
  const log = await newLog(door, "none-of-them");
  const before = (await readBack(house, log)).length;
  const twice = door.appender.together(log, async (put) => {
    await put("break", open(2));
    await put("break", open(2));
  });
  await expect(twice).rejects.toMatchObject({ code: "already-decided" });
  expect(await readBack(house, log)).toHaveLength(before);
  await door.appender.control(log, "break", () => open(2));
  expect(ofKind(await readBack(house, log), "break")).toHaveLength(1);
});

test("of two processes that decide one thing at once, exactly one does", async () => {
  const log = await newLog(door, "one-of-two");
  const { index } = await door.appender.control(log, "break", () => open(3));
  const others = [door, house.open(), house.open()];
  const outcomes = await Promise.allSettled(
    others.map(({ appender }) => appender.control(log, "break_resolved", () => accepted(index))),
  );
  const codes = outcomes.map((each) => (each.status === "rejected" ? each.reason.code : "written"));
  expect(codes.sort()).toEqual(["already-decided", "already-decided", "written"]);
});

test("nothing is put behind a control entry that it would be judged without", async () => {
  const log = await newLog(door, "behind");
  const before = (await readBack(house, log)).length;
  const behind = door.appender.together(log, async (put) => {
    await put("project_class", {
      ...{ approval: "", by: "finance", class: "oss", effective_from: NOW },
      ...{ project_id: "5", salt, source: "" },
    });
    await put("break", open(4));
  });
  await expect(behind).rejects.toThrow("behind a control entry");
  expect(await readBack(house, log)).toHaveLength(before);
});

test("what stands beside is rebuilt from the entries, and what was lost comes back", async () => {
  const log = await newLog(door, "rebuilt");
  await door.appender.control(log, "break", () => open(5));
  const { superuser, owner } = house.database;
  await superuser`alter table breaks disable trigger all`;
  await superuser`delete from breaks where log = ${log}`;
  await superuser`alter table breaks enable trigger all`;
  await superuser`alter table breaks enable always trigger breaks_append_only`;
  const clock = { now: () => door.now };
  const { tables } = await rebuild({ sql: owner, clock, hash: sha256 }, { write: true });
  const states = Object.fromEntries(tables.map(({ table, state }) => [table, state]));
  expect(states["breaks"]).toBe("written");
  for (const table of BESIDE_TABLES) if (table !== "breaks") expect(states[table]).toBe("equal");
  const rows = await house.database.reader`select from breaks where log = ${log}`;
  expect(rows).toHaveLength(1);
});
