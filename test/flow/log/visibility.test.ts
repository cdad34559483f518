import { afterAll, beforeAll, expect, test } from "vitest";
import { openVisibility, setVisibility } from "../../../src/flow/log/visibility.ts";
import {
  closeHouse,
  type Door,
  entriesOf,
  type House,
  newLog,
  ofKind,
  openHouse,
} from "../door.ts";

let house: House;
let door: Door;

beforeAll(async () => {
  house = await openHouse();
  door = house.open();
});

afterAll(() => closeHouse(house));

const set = (log: string, isPublic: boolean) =>
  setVisibility(door, { log, by: "p_ops" }, { public: isPublic });

function reader() {
  const clock = { time: 0, now: () => clock.time };
  return { clock, visibility: openVisibility({ sql: house.database.reader, clock }) };
}

test("a log is restricted until an entry says otherwise, and then as the newest one says", async () => {
  const log = await newLog(door, "newest counts");
  const isPublic = () => reader().visibility.isPublic(log);
  expect(await isPublic()).toBe(false);
  for (const wanted of [true, false, true]) {
    await set(log, wanted);
    expect(await isPublic()).toBe(wanted);
  }
  expect(await reader().visibility.isPublic("f".repeat(32))).toBe(false);
});

test("what stands already is answered by its entry", async () => {
  const log = await newLog(door, "twice");
  const first = await set(log, true);
  const again = await set(log, true);
  expect([first.written, again.written]).toEqual([true, false]);
  expect(again.index).toBe(first.index);
  expect(ofKind(await entriesOf(house.database.reader, log), "visibility")).toHaveLength(1);
});

test("writers at once leave one entry", async () => {
  const log = await newLog(door, "at once");
  const other = house.open();
  const doors = [door, other, door, other, door, other];
  const receipts = await Promise.all(
    doors.map((each) => setVisibility(each, { log, by: "p_ops" }, { public: true })),
  );
  expect(receipts.filter(({ written }) => written)).toHaveLength(1);
  expect(new Set(receipts.map(({ index }) => index)).size).toBe(1);
});

test("a process knows of a restriction after a second, whichever way its clock went", async () => {
  const log = await newLog(door, "restricted");
  await set(log, true);
  for (const step of [1_000, -1_000]) {
    await set(log, true);
    const { clock, visibility } = reader();
    expect(await visibility.isPublic(log)).toBe(true);
    await set(log, false);
    clock.time += step;
    expect(await visibility.isPublic(log)).toBe(false);
  }
});

test("within the second nobody asks the database again, and no log is taken for another", async () => {
  const log = await newLog(door, "known");
  const restricted = await newLog(door, "unknown");
  await set(log, true);
  const { clock, visibility } = reader();
  expect(await visibility.isPublic(log)).toBe(true);
  await set(log, false);
  clock.time += 999;
  expect(await visibility.isPublic(log)).toBe(true);
  expect(await visibility.isPublic(restricted)).toBe(false);
});
