import { afterAll, beforeAll, expect, onTestFinished, test } from "vitest";
import { seal } from "../../../src/flow/log/seal.ts";
import { openVisibility, setVisibility } from "../../../src/flow/log/visibility.ts";
import { connect } from "../../../src/store/connect.ts";
import { type FreshDatabase, freshDatabase } from "../../postgres.ts";
import { sealerOf } from "../chain.ts";
import {
  closeHouse,
  type Door,
  entriesOf,
  type House,
  newLog,
  ofKind,
  openHouse,
  signerFor,
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
  const { reader: sql, writer } = house.database;
  return { clock, visibility: openVisibility({ sql, writer, guard: door.guard, clock }) };
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

/** A process over this database and the house's archive. */
function processOver(database: FreshDatabase) {
  const { guard } = sealerOf(database.writer, house.archive, signerFor);
  const clock = { now: () => 0 };
  return openVisibility({ sql: database.reader, writer: database.writer, guard, clock });
}

/** The database as it was when the log had so many entries. */
async function restoredTo(log: string, size: bigint): Promise<FreshDatabase> {
  const copy = await freshDatabase();
  onTestFinished(() => copy.drop());
  const { reader: from } = house.database;
  const entries = await from`
    select log, index, kind, at, prev, leaf, bytes
    from entries
    where log = ${log} and index < ${size}
    order by index`;
  const { leaf, at } = entries.at(-1) ?? {};
  await copy.writer`insert into entries ${copy.writer([...entries])}`;
  await copy.writer`
    insert into heads (log, size, leaf, at, control_index)
    values (${log}, ${size}, ${leaf}, ${at}, ${size - 1n})`;
  return copy;
}

test("a copy that went back makes no log public, from the first request of a process on", async () => {
  const log = await newLog(door, "restored");
  const { index } = await set(log, true);
  const copy = await restoredTo(log, index + 1n);
  expect(await processOver(copy).isPublic(log)).toBe(true);
  await set(log, false);
  const sealer = sealerOf(house.database.writer, house.archive, signerFor);
  await seal({ ...sealer, log });
  expect(await processOver(copy).isPublic(log)).toBe(false);
  expect(await processOver(house.database).isPublic(log)).toBe(false);
  await set(log, true);
  expect(await processOver(house.database).isPublic(log)).toBe(true);
});

test("a replica that has not heard of a restriction yet makes no log public", async () => {
  const log = await newLog(door, "lagging");
  const { index } = await set(log, true);
  const replica = await restoredTo(log, index + 1n);
  await set(log, false);
  const { writer } = house.database;
  const clock = { now: () => 0 };
  const lagging = openVisibility({ sql: replica.reader, writer, guard: door.guard, clock });
  expect(await lagging.isPublic(log)).toBe(false);
});

test("while the writer cannot be asked no log is public, and nobody with a token is kept out", async () => {
  const log = await newLog(door, "away");
  await set(log, true);
  const { reader: sql, urls } = house.database;
  const writer = connect(urls.writer, { max: 1 });
  await writer.end();
  const clock = { now: () => 0 };
  const away = openVisibility({ sql, writer, guard: door.guard, clock });
  expect(await away.isPublic(log)).toBe(false);
});
