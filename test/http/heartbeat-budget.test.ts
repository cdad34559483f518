import { afterAll, beforeAll, expect, test } from "vitest";
import { heartbeatOf } from "./heartbeat.ts";
import { ask, type House, newLog, openHouse } from "./house.ts";
import { Desk } from "./quota-desk.ts";

let house: House;
let desk: Desk;

beforeAll(async () => {
  house = await openHouse();
  desk = new Desk(house, await newLog(house, "heartbeat budget", 1));
});
afterAll(() => house.close());

const EACH = 20;

/** Jobs from `first` on, twenty in each heartbeat, each in a namespace of its own. */
function madeUp(first: number, count: number): string[] {
  return Array.from({ length: count / EACH }, (_, i) => {
    const ids = Array.from({ length: EACH }, (_, j) => String(first + i * EACH + j));
    const jobs = ids.map((id) => ({ id, root_namespace_id: id, elapsed_ms: "0" }));
    return heartbeatOf(1, desk.log, jobs);
  });
}

test("jobs beyond 5,000 that one key makes up go on, are kept nowhere, and are told why", async () => {
  for (let first = 0; first < 5_000; first += 2_500) {
    const taken = await desk.heard(...madeUp(1_000_000 + first, 2_500));
    expect(new Set(taken.map(({ reason }) => reason))).toEqual(new Set(["unlimited"]));
  }
  const refused = await desk.heard(...madeUp(2_000_000, 1_000));
  expect(new Set(refused.map(({ allowed, reason }) => `${allowed} ${reason}`))).toEqual(
    new Set(["true too-many-jobs"]),
  );
  const { token } = desk;
  const shown = await ask(house, `GET /v1/quotas/${desk.log}/2000000`, { token });
  expect(shown.json["jobs"]).toEqual([]);
  // What it had is heard on, and another after the first have been silent for ten minutes.
  const [again] = await desk.heard(...madeUp(1_000_000, EACH));
  expect(again?.reason).toBe("unlimited");
  house.clock.time += 600_000;
  const [later] = await desk.heard(...madeUp(2_000_000, EACH));
  expect(later?.reason).toBe("unlimited");
});
