/** A log that is replayed from its archive into another database. */
import { afterAll, beforeAll, expect, test } from "vitest";
import { seal } from "../../../src/flow/log/seal.ts";
import { CARD, NOW, QUOTA } from "../../core/history.ts";
import { type FreshDatabase, freshDatabase } from "../../postgres.ts";
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
import { restore, sealerOn } from "../restored.ts";
import { tell, toldOf } from "./told.ts";

let house: House;
let copy: FreshDatabase;
beforeAll(async () => {
  house = await openHouse();
  copy = await freshDatabase();
});
afterAll(async () => {
  await closeHouse(house);
  await copy.drop();
});

const LATER = Date.parse(NOW) + 3_600_000;

async function sealAll(log: string): Promise<void> {
  await seal({ ...sealerOn(house.database.writer, house.archive), log });
}

/** Minutes of compute at factor 1. */
async function use(door: Door, log: string, counter: number, minutes: number): Promise<void> {
  const finished_at = new Date(door.now).toISOString();
  const started_at = new Date(door.now - minutes * 60_000).toISOString();
  const usage = { duration_ms: String(minutes * 60_000), finished_at, started_at };
  const job = { id: String(counter), root_namespace_id: "7" };
  await door.submit(reported(1, log, { counter: String(counter), job, usage }));
}

test("T60 what comes back from the archive moves levels and tells nobody; what follows is told", async () => {
  const door = house.open();
  const card = { runner_factors: { "*": "1" }, project_factors: {} };
  const log = await newLog(door, "recovered", { card: { ...CARD, ...card } });
  await newAgent(door, log, 1);
  await door.appender.control(log, "quota", () => ({ ...QUOTA, monthly_minutes: "100" }));
  await use(door, log, 1, 80);
  expect(await tell(house.database.writer, log, door.now)).toEqual(["quota.warning"]);
  await sealAll(log);
  await restore(copy, house.archive, log);
  expect(await tell(copy.writer, log, LATER)).toEqual([]);

  // As a backup of the first database would have it: of before the loss all was news.
  await copy.writer`update quota_marks set news_from = '-infinity' where log = ${log}`;
  await use(door, log, 2, 16);
  expect(await tell(house.database.writer, log, door.now)).toEqual(["quota.danger"]);
  await sealAll(log);
  await restore(copy, house.archive, log);
  expect(await tell(copy.writer, log, LATER)).toEqual([]);
  expect(await toldOf(copy.reader, log)).toEqual([]);

  const on = openDoor(copy.writer, { archive: house.archive, seed: "copy" });
  house.doors.push(on);
  on.now = LATER;
  await use(on, log, 3, 3);
  expect(await tell(copy.writer, log, LATER)).toEqual([]);
  await use(on, log, 4, 1);
  expect(await tell(copy.writer, log, LATER)).toEqual(["quota.exceeded"]);
});
