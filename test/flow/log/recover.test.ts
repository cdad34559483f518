import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, test } from "vitest";
import { seal } from "../../../src/flow/log/seal.ts";
import { refresh } from "../../../src/flow/usage/fold.ts";
import { type FreshDatabase, freshDatabase } from "../../postgres.ts";
import { closeHouse, type Door, type House, openDoor, openHouse } from "../door.ts";
import { begun, expectProven, fill, restore, sealerOn, tablesOf } from "../restored.ts";

let house: House;
let door: Door;
let copy: FreshDatabase;

beforeAll(async () => {
  house = await openHouse();
  door = house.open();
});
afterAll(() => closeHouse(house));
beforeEach(async () => {
  copy = await freshDatabase();
});
afterEach(() => copy.drop());

async function sealed(log: string): Promise<bigint> {
  const made = await seal({ ...sealerOn(house.database.writer, house.archive), log });
  return made?.size ?? 0n;
}

describe("an empty database", () => {
  test("gets the log back to the last byte and column, is proven by check, and seals on", async () => {
    const log = await begun(door, "empty", 1);
    const first = await sealed(log);
    await fill(door, log, 1, 300);
    await sealed(log);
    const texts = await fill(door, log, 1, 290, 1_000);
    const archived = await sealed(log);
    const answered = await door.submit(...texts.slice(0, 500));

    const found = await restore(copy, house.archive, log);
    expect(found).toEqual({
      log,
      archived,
      before: 0n,
      after: archived,
      unsigned: 0n,
      checkpoints: 3,
      aside: 0,
    });
    expect(first).toBe(5n);
    expect(await tablesOf(copy, log)).toEqual(await tablesOf(house.database, log));
    await refresh({ sql: copy.writer, clock: { now: () => Date.now() } });
    await expectProven(copy);
    const other = openDoor(copy.writer, { archive: house.archive, seed: "copy" });
    house.doors.push(other);
    expect((await other.submit(...texts.slice(0, 500))).results).toEqual(answered.results);
    await fill(other, log, 1, 3, 5_000);
    const sealer = sealerOn(copy.writer, house.archive);
    expect(await seal({ ...sealer, log })).toMatchObject({ size: archived + 7n });
    await expectProven(copy);
  });
});
