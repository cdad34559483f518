/** Receipts of each no, as the namespace's owner sees them. */
import { afterAll, beforeAll, expect, test } from "vitest";
import { DECISION_AGE_MS } from "../../src/flow/quota/decide.ts";
import { kidOf } from "../core/history.ts";
import { ask, type House, newLog, openHouse, tokenOf } from "./house.ts";
import { Desk } from "./quota-desk.ts";

let house: House;
let desk: Desk;
let over: string;

beforeAll(async () => {
  house = await openHouse();
  desk = new Desk(house, await newLog(house, "stops", 1));
  over = await desk.namespace({ monthly_minutes: "1", grace_minutes: "0" });
  await desk.report(over, "1", 1);
  house.clock.time += DECISION_AGE_MS + 1;
});
afterAll(() => house.close());

test("a refused start and a job told failed are there when their answers are, with who asked", async () => {
  const [start] = await desk.start(over, "2");
  const running = await desk.beat(over, "3", 2);
  expect([start?.job_status, running?.job_status]).toEqual(["failed", "failed"]);
  const { stops } = (await desk.stops(over)) as { stops: Record<string, unknown>[] };
  expect(stops).toMatchObject([
    {
      ...{ job_id: "3", ask: "run", by: kidOf(1), reason: "beyond", times: "1" },
      live: { compute_minutes: "2.0000" },
      remaining: { compute_minutes: running?.remaining_minutes },
      as_of: running?.as_of,
    },
    {
      ...{ job_id: "2", ask: "start", reason: "beyond", times: "1", source: "process" },
      remaining: { compute_minutes: start?.remaining_minutes },
      as_of: start?.as_of,
    },
  ]);
  expect(stops[1]?.["by"]).toMatch(/^p_/);
});

test("what is allowed leaves nothing behind", async () => {
  const free = await desk.namespace({ monthly_minutes: "10" });
  await desk.start(free, "4");
  await desk.beat(free, "5", 1);
  expect((await desk.stops(free))["stops"]).toEqual([]);
});

test("the owner sees those of their own namespace, and of another's not even that there is one", async () => {
  const path = `/v1/quotas/${desk.log}/${over}/stops`;
  const scope = { logs: [desk.log], namespaces: [over] };
  const own = await ask(house, `GET ${path}`, { token: await tokenOf(["viewer"], scope) });
  expect(own.status).toBe(200);
  const blind = await tokenOf(["viewer"], { ...scope, namespaces: ["1"] });
  const hidden = await ask(house, `GET ${path}`, { token: blind });
  const missing = await ask(house, "GET /v1/quotas/nothing/nothing/stops", { token: blind });
  expect([hidden.status, hidden.text]).toEqual([404, missing.text]);
});
