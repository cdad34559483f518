/** Decisions over HTTP by two processes over one Redis, which is killed, flushed and restored under them. */
import { afterAll, beforeAll, beforeEach, expect, test, vi } from "vitest";
import type { Service } from "../../src/command/service.ts";
import type { QuotaConfig } from "../../src/config-quota.ts";
import { DECISION_AGE_MS } from "../../src/flow/quota/decide.ts";
import { type RedisServer, startRedis } from "../redis.ts";
import { heartbeatOf } from "./heartbeat.ts";
import { beside, type House, newLog, openHouse } from "./house.ts";
import { Desk, minutes } from "./quota-desk.ts";

let redis: RedisServer;
let house: House;
let other: Service;
let here: Desk;
let there: Desk;

beforeAll(async () => {
  redis = await startRedis();
  const quota: QuotaConfig = {
    redis: { kind: "single", url: redis.url },
    withoutRedis: "plan",
    startReserveMs: 60_000,
  };
  house = await openHouse({ quota });
  other = await beside(house, undefined, { quota });
  here = new Desk(house, await newLog(house, "two", 1));
  there = here.moved(other);
});
afterAll(async () => {
  await house.close();
  await redis.stop();
});
/** A machine that stood still had Redis taken for away: it is tried again a second later. */
beforeEach(async () => {
  const source = async (desk: Desk) => (await desk.start("1", "1"))[0]?.source;
  const isUp = async (): Promise<boolean> => {
    house.clock.time += 1_001;
    return (await source(here)) === "redis" && (await source(there)) === "redis";
  };
  await vi.waitUntil(isUp, { timeout: 20_000 });
});

/** So that both read what is on the log. */
function later(): void {
  house.clock.time += DECISION_AGE_MS + 1;
}

test("T42: of 200 starts at once on one minute left, by two processes, one is allowed", async () => {
  const id = await here.namespace({ monthly_minutes: "1" });
  const answers = await Promise.all(
    Array.from({ length: 200 }, (_, i) => (i % 2 === 0 ? here : there).start(id, `${4_200 + i}`)),
  );
  const allowed = answers.flat().filter((decision) => decision.allowed);
  expect(allowed.map(({ source }) => source)).toEqual(["redis"]);
});

test("T42: and of 200 in one request as well", async () => {
  const id = await here.namespace({ monthly_minutes: "1" });
  const answers = await here.start(id, ...Array.from({ length: 200 }, (_, i) => `${i}`));
  expect(answers.map(({ allowed }) => allowed)).toEqual([true, ...new Array(199).fill(false)]);
});

test("what one process heard counts for the other at once", async () => {
  const id = await here.namespace({ monthly_minutes: "10" });
  await here.beat(id, "11", 4);
  expect(await there.remaining(id)).toBe("6.0000");
  await there.beat(id, "11", 5);
  await here.beat(id, "11", 4);
  expect(await here.remaining(id)).toBe("5.0000");
});

test("a raise at one process holds at the next ask of the other", async () => {
  const id = await here.namespace({ monthly_minutes: "1" });
  await here.report(id, "4300", 1);
  later();
  expect((await there.start(id, "4301"))[0]?.allowed).toBe(false);
  await here.pack(id, "2");
  expect((await there.start(id, "4301"))[0]).toMatchObject({
    allowed: true,
    remaining_minutes: "2.0000",
  });
});

test("a late heartbeat at a process that has not seen the report adds nothing", async () => {
  const id = await here.namespace({ monthly_minutes: "10" });
  await here.beat(id, "51", 2);
  await there.beat(id, "51", 2);
  await here.report(id, "51", 3);
  later();
  expect(await here.remaining(id)).toBe("7.0000");
  // The clock of the other stands where its figures are as old as they may be.
  house.clock.time -= DECISION_AGE_MS + 1;
  expect(await there.beat(id, "51", 2)).toMatchObject({
    reason: "on-log",
    remaining_minutes: "7.0000",
  });
  expect(await there.remaining(id)).toBe("7.0000");
  house.clock.time += DECISION_AGE_MS + 1;
  expect(await here.remaining(id)).toBe("7.0000");
});

test("T38, T41: a key that is gone is made anew from the ledger and the next heartbeats, and nothing forks", async () => {
  const id = await here.namespace({ monthly_minutes: "10" });
  await here.report(id, "61", 3);
  await here.beat(id, "62", 2);
  later();
  expect(await there.remaining(id)).toBe("5.0000");
  await redis.say("DEL", `minutebook:quota:{${here.log}:${id}}`);
  // The ledger's figures are there at once; who runs is heard again.
  expect(await there.remaining(id)).toBe("7.0000");
  await here.beat(id, "62", 2);
  expect(await there.remaining(id)).toBe("5.0000");
  expect(await here.remaining(id)).toBe("5.0000");
});

test("T38: what is live and not yet reported outlives a flush by the next heartbeats", async () => {
  const id = await here.namespace({ monthly_minutes: "100" });
  const jobs = Array.from({ length: 20 }, (_, i) => `${6_300 + i}`);
  const all = (at: number) => {
    const said = jobs.map((job) => ({ id: job, root_namespace_id: id, elapsed_ms: minutes(at) }));
    return here.heard(heartbeatOf(1, here.log, said));
  };
  await all(1);
  await redis.say("FLUSHALL");
  const [first] = await all(2);
  expect(first?.remaining_minutes).toBe("60.0000");
  expect(await there.remaining(id)).toBe("60.0000");
});
