/** The prefix for who asks and does not write: as new as asked for, and never in a commit's way. */
import { afterAll, beforeAll, expect, test } from "vitest";
import { CARD } from "../../core/history.ts";
import { TestLedger } from "../../ledger.ts";
import { freshDatabase } from "../../postgres.ts";
import {
  closeHouse,
  type Door,
  type House,
  newAgent,
  newLog,
  openDoor,
  openHouse,
  reported,
} from "../door.ts";
import { switchable } from "../quota/logs.ts";
import { readBack } from "../replay.ts";

let house: House;
let door: Door;

beforeAll(async () => {
  house = await openHouse();
  door = house.open();
});
afterAll(() => closeHouse(house));

/** Cards of hosted runners that start later and later. */
async function newCard(by: Door, log: string, day: number): Promise<bigint> {
  const effective_from = `2026-12-${String(day).padStart(2, "0")}T00:00:00.000Z`;
  const { index } = await by.appender.control(log, "rate_card", () => ({
    ...CARD,
    effective_from,
  }));
  return index;
}

test("what another process wrote is in the prefix of whoever asks for that size", async () => {
  const other = house.open();
  const log = await newLog(other, "asked");
  expect((await door.appender.prefix(log)).cards("hosted")).toHaveLength(1);
  const index = await newCard(other, log, 1);
  expect((await door.appender.prefix(log)).controlIndex).toBe(index - 1n);
  expect((await door.appender.prefix(log, index)).controlIndex).toBe(index - 1n);
  expect((await door.appender.prefix(log, index + 1n)).controlIndex).toBe(index);
  // Beyond the end there is nothing to wait for.
  expect((await door.appender.prefix(log, 1_000n)).controlIndex).toBe(index);
});

test("what this process wrote is in the prefix at once", async () => {
  const log = await newLog(door, "own");
  const index = await newCard(door, log, 1);
  expect((await door.appender.prefix(log)).controlIndex).toBe(index);
});

test("a log that does not exist is not found", async () => {
  await expect(door.appender.prefix("f".repeat(32))).rejects.toMatchObject({ code: "not-found" });
});

test("commits and prefixes of several processes go on at once, and no entry is judged by half a prefix", async () => {
  const other = house.open();
  const log = await newLog(other, "at once");
  await newAgent(door, log, 1);
  const asked = async (size: bigint): Promise<void> => {
    const prefix = await door.appender.prefix(log, size);
    expect(prefix.controlIndex).toBeGreaterThanOrEqual(size - 1n);
  };
  await Promise.all([
    ...Array.from({ length: 10 }, async (_, i) => {
      const counter = String(i + 1);
      await door.submit(reported(1, log, { counter, job: { id: counter } }));
      await door.appender.prefix(log);
    }),
    ...Array.from({ length: 10 }, async (_, i) => {
      const size = (await newCard(other, log, i + 1)) + 1n;
      // Of the entry before the card nobody knows whether it controls anything.
      const before = door.appender.prefix(log, size - 1n);
      await Promise.all([asked(size), before, newCard(door, log, i + 1)]);
    }),
  ]);
  await readBack(house, log);
});

test("another copy of the database, with another card at the same index: the card that stands there counts", async () => {
  const restored = await freshDatabase();
  const made = (factor: string): TestLedger => {
    const ledger = new TestLedger("d".repeat(32));
    ledger.card("hosted", { small: factor });
    return ledger;
  };
  const [lost, standing] = [made("1/3"), made("7")];
  await lost.load(house.database.owner);
  await standing.load(restored.owner);
  const { sql, to } = switchable(house.database.writer);
  const apart = openDoor(sql, { archive: house.archive });
  const factorOf = async (size: bigint) =>
    (await apart.appender.prefix(lost.log, size))
      .cards("hosted")
      .map((card) => card.runner_factors);
  expect(await factorOf(2n)).toEqual([{ small: "1/3" }]);
  to(restored.writer);
  expect(await factorOf(3n)).toEqual([{ small: "7" }]);
  await apart.close();
  await restored.drop();
});
