/** What nobody works off is counted, and said once when it is overdue. */
import { afterAll, beforeAll, expect, test } from "vitest";
import { startWaiting } from "../../src/command/waiting.ts";
import { openLog } from "../../src/telemetry.ts";
import {
  closeHouse,
  codes,
  type House,
  newAgent,
  newLog,
  openHouse,
  reported,
} from "../flow/door.ts";

let house: House;

beforeAll(async () => {
  house = await openHouse();
});
afterAll(() => closeHouse(house));

const DAY_MS = 86_400_000;

test("a hold that waits for more than three days is said, and not a conflict of today", async () => {
  const door = house.open();
  const log = await newLog(door, "waiting");
  await newAgent(door, log, 1);
  const long = { duration_ms: "2678400001" };
  expect(codes(await door.submit(reported(1, log, { job: { id: "9" }, usage: long })))).toEqual([
    "over-cap",
  ]);
  const held = door.now;
  door.now += 3 * DAY_MS;
  const other = reported(1, log, { counter: "3", usage: { duration_ms: "1" } });
  expect(codes(await door.submit(reported(1, log, { counter: "2" }), other))).toEqual([
    "accepted",
    "conflict",
  ]);
  const lines: string[] = [];
  for (const late of [0, 1]) {
    const abort = new AbortController();
    const looked: object[] = [];
    await startWaiting({
      sql: house.database.reader,
      clock: { now: () => held + 3 * DAY_MS + late },
      log: openLog("info", { write: (line) => void lines.push(line) }),
      metrics: {
        unresolved: (open) => {
          looked.push(...open);
          abort.abort();
        },
      },
      signal: abort.signal,
    });
    expect(looked).toEqual([
      { kind: "conflict", open: 1, ms: late },
      { kind: "hold", open: 1, ms: 3 * DAY_MS + late },
    ]);
  }
  expect(lines.map((line) => JSON.parse(line))).toMatchObject([{ kinds: ["hold"], days: 3 }]);
});
