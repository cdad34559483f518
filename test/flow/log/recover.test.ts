import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, test } from "vitest";
import { foresee, recover } from "../../../src/flow/log/recover.ts";
import { seal } from "../../../src/flow/log/seal.ts";
import { refresh } from "../../../src/flow/usage/fold.ts";
import { type FreshDatabase, freshDatabase } from "../../postgres.ts";
import { closeHouse, type Door, type House, openDoor, openHouse } from "../door.ts";
import {
  begun,
  expectProven,
  fill,
  recoveringOn,
  restore,
  sealerOn,
  tablesOf,
} from "../restored.ts";

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

async function sealAll(log: string): Promise<bigint> {
  const made = await seal({ ...sealerOn(house.database.writer, house.archive), log });
  return made?.size ?? 0n;
}

/** On the restored database: a report, and the seal that covers it. */
async function goOn(log: string, seed: number): Promise<void> {
  const other = openDoor(copy.writer, { archive: house.archive, seed: `copy ${seed}` });
  house.doors.push(other);
  await fill(other, log, seed, 3, 5_000);
  const [head] = await copy.reader`select size from heads where log = ${log}`;
  const sealer = sealerOn(copy.writer, house.archive);
  expect(await seal({ ...sealer, log })).toMatchObject({ size: head?.["size"] });
  await expectProven(copy);
}

test("an empty database gets the log back to the last byte and column, answers as before, and seals on", async () => {
  const log = await begun(door, "empty", 1);
  const first = await sealAll(log);
  await fill(door, log, 1, 260);
  await sealAll(log);
  const texts = await fill(door, log, 1, 290, 1_000);
  const archived = await sealAll(log);
  const answered = await door.submit(...texts);

  const found = await restore(copy, house.archive, log);
  const done = { log, archived, after: archived, unsigned: 0n, aside: 0 };
  expect(found).toEqual({ ...done, before: 0n, checkpoints: 3 });
  expect(first).toBe(5n);
  expect(await tablesOf(copy, log)).toEqual(await tablesOf(house.database, log));
  expect(await restore(copy, house.archive, log)).toEqual({
    ...done,
    before: archived,
    checkpoints: 0,
  });
  await refresh({ sql: copy.writer, clock: { now: () => Date.now() } });
  await expectProven(copy);
  const other = openDoor(copy.writer, { archive: house.archive, seed: "copy" });
  house.doors.push(other);
  expect((await other.submit(...texts)).results).toEqual(answered.results);
  await goOn(log, 1);
});

test("a database that was left behind gets the rest, and keeps what it has", async () => {
  const log = await begun(door, "left behind", 2);
  for (const count of [1, 40, 215, 300]) {
    await fill(door, log, 2, count, count * 1_000);
    const archived = await sealAll(log);
    const recovering = recoveringOn(copy.writer, house.archive, log);
    const foreseen = await foresee(recovering);
    expect(await recover(recovering)).toEqual(foreseen);
    expect(foreseen.after).toBe(archived);
    expect(await tablesOf(copy, log)).toEqual(await tablesOf(house.database, log));
  }
  await goOn(log, 2);
});

test("a dry run writes nothing, into the database or the archive", async () => {
  const log = await begun(door, "dry run", 3);
  await sealAll(log);
  const found = await foresee(recoveringOn(copy.writer, house.archive, log));
  expect(found).toMatchObject({ before: 0n, after: 5n, checkpoints: 1 });
  expect(await copy.reader`select from entries`).toHaveLength(0);
  expect(await copy.reader`select from seals`).toHaveLength(0);
});

describe("interrupted", () => {
  test("after any of its transactions it leaves a log that checks and that nobody writes to, and goes on", async () => {
    const log = await begun(door, "boundaries", 4);
    await fill(door, log, 4, 100);
    await sealAll(log);
    await fill(door, log, 4, 500, 1_000);
    await sealAll(log);
    let before = -1n;
    for (let whole = false; !whole; ) {
      const recovering = recoveringOn(copy.writer, house.archive, log);
      let left = 1;
      const archived: typeof recovering.appender.archived = async (name, work) => {
        if (left === 0) throw new Error("killed");
        left -= 1;
        await recovering.appender.archived(name, work);
      };
      const dying = { ...recovering, appender: { ...recovering.appender, archived } };
      const ended = await recover(dying).catch((error: Error) => error.message);
      whole = ended !== "killed";
      await expectProven(copy);
      const [head] = await copy.reader`select size from heads where log = ${log}`;
      expect(head?.["size"]).toBeGreaterThan(before);
      before = head?.["size"];
      const other = openDoor(copy.writer, { archive: house.archive, seed: `${before}` });
      house.doors.push(other);
      if (!whole) {
        await expect(fill(other, log, 4, 1, 9_000)).rejects.toMatchObject({ code: "log-behind" });
      }
    }
    expect(await tablesOf(copy, log)).toEqual(await tablesOf(house.database, log));
    await goOn(log, 4);
  });

  test("rolled back in the middle of a transaction it leaves nothing of it", async () => {
    const log = await begun(door, "rolled back", 5);
    await sealAll(log);
    const recovering = recoveringOn(copy.writer, house.archive, log);
    const archived: typeof recovering.appender.archived = (name, work) =>
      recovering.appender.archived(name, async (replay) => {
        await work(replay);
        throw new Error("killed");
      });
    const dying = { ...recovering, appender: { ...recovering.appender, archived } };
    await expect(recover(dying)).rejects.toThrow("killed");
    for (const table of ["entries", "heads", "jobs", "keys", "seals", "checkpoints"]) {
      expect(await copy.reader`select from ${copy.reader(table)}`).toHaveLength(0);
    }
    await restore(copy, house.archive, log);
    await goOn(log, 5);
  });
});

test("two at once, from nothing, leave what one would have left", async () => {
  const log = await begun(door, "two at once", 6);
  await fill(door, log, 6, 400);
  const archived = await sealAll(log);
  const both = await Promise.all([1, 2].map(() => restore(copy, house.archive, log)));
  expect(both.map(({ after }) => after)).toEqual([archived, archived]);
  expect(await tablesOf(copy, log)).toEqual(await tablesOf(house.database, log));
  await goOn(log, 6);
});

test("beside a service that writes and seals it finds nothing to do", async () => {
  const log = await begun(door, "healthy", 7);
  await sealAll(log);
  let over = false;
  const serving = (async () => {
    for (let round = 1; !over; round += 1) {
      await fill(door, log, 7, 30, round * 1_000);
      await sealAll(log);
    }
  })();
  for (let look = 0; look < 5; look += 1) {
    const found = await restore(house.database, house.archive, log);
    expect(found).toMatchObject({ unsigned: 0n, aside: 0, checkpoints: 0, before: found.after });
  }
  over = true;
  await serving;
});
