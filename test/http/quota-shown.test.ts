/** A namespace's quota as its owner sees it: every figure with its entry, exact and rounded. */
import { afterAll, beforeAll, beforeEach, expect, test } from "vitest";
import type { NamespaceQuota } from "../../src/flow/quota/show.ts";
import { NOW } from "../core/history.ts";
import { reported } from "../flow/door.ts";
import { heartbeatOf } from "./heartbeat.ts";
import { ask, type House, newLog, openHouse, tokenOf } from "./house.ts";
import { Desk, minutes } from "./quota-desk.ts";

let house: House;
let desk: Desk;
let counter = 0;
let names = 200;
/** Of its own for each test. */
let namespace: string;

beforeAll(async () => {
  house = await openHouse();
  desk = new Desk(house, await newLog(house, "shown", 1));
});
afterAll(() => house.close());
beforeEach(() => {
  names += 1;
  namespace = String(names);
  house.clock.time = Date.parse(NOW);
});

async function shown(): Promise<NamespaceQuota> {
  const { status, text } = await ask(house, `GET /v1/quotas/${desk.log}/${namespace}`, desk);
  if (status !== 200) throw new Error(text);
  return JSON.parse(text);
}

/** A build that ended at `finished_at`. */
async function used(count: number, finished_at: string): Promise<void> {
  counter += 1;
  const job = { id: `${counter}`, root_namespace_id: namespace };
  const usage = { duration_ms: minutes(count), finished_at };
  const jose = reported(1, desk.log, { counter: `${counter}`, job, usage });
  const { status, text } = await ask(house, "POST /v1/reports", { jose });
  if (status !== 201) throw new Error(text);
  // What was read in this millisecond is new enough for whoever asks in it.
  house.clock.time += 1;
}

function beat(id: string, elapsed_ms: string) {
  return desk.heard(heartbeatOf(1, desk.log, [{ id, elapsed_ms, root_namespace_id: namespace }]));
}

const amount = (count: number) => ({
  compute_ms: `${count * 60_000}.000000`,
  compute_minutes: `${count}.0000`,
});

test("GitLab's published example, by the entries: 3,000 of 5,000 were drawn for April, 12,000 are left", async () => {
  await desk.limit(namespace, {
    monthly_minutes: "10000",
    effective_from: "2026-01-01T00:00:00.000Z",
  });
  const pack = { pack_id: "A-1", purchased_in: "2026-04-01", source: "portal" };
  const order = { log: desk.log, namespace_id: namespace, minutes: "5000", source_version: "1" };
  const bought = await ask(house, "POST /v1/packs", { ...desk, json: { ...order, ...pack } });
  await used(13_000, "2026-04-20T12:00:00.000Z");
  const quota = await shown();
  const index = quota.limit?.index;
  expect(quota).toMatchObject({
    month: "2026-11-01",
    unlimited: false,
    limit: { monthly_minutes: "10000", grace_minutes: "1000", amount: amount(10_000) },
    earlier: [
      {
        month: "2026-04-01",
        limit: index,
        limit_minutes: "10000",
        used: amount(13_000),
        over: amount(3_000),
      },
    ],
    packs: [
      {
        index: bought.json["index"],
        source: "portal",
        pack_id: "A-1",
        minutes: "5000",
        expires_in: "2027-03-01",
        draws: [{ month: "2026-04-01", ...amount(3_000) }],
        undrawn: amount(2_000),
        left: amount(2_000),
      },
    ],
    used: amount(0),
    available: amount(12_000),
    remaining: amount(12_000),
    start_bound: amount(12_000),
    run_bound: amount(13_000),
  });
});

test("what runs is told by job, and a job that is silent for three heartbeats is frozen and goes on counting", async () => {
  await desk.limit(namespace, { monthly_minutes: "100" });
  await beat("9001", "600000");
  house.clock.time += 89_999;
  await beat("9002", "1500");
  expect(await shown()).toMatchObject({
    jobs: [
      { job_id: "9001", state: "running", elapsed_ms: "600000", factor: "1/1", ...amount(10) },
      { job_id: "9002", state: "running", compute_ms: "1500.000000", compute_minutes: "0.0250" },
    ],
    live: { compute_ms: "601500.000000", compute_minutes: "10.0250" },
    remaining: { compute_minutes: "89.9750" },
  });
  house.clock.time += 1;
  expect((await shown()).jobs.map(({ state }) => state)).toEqual(["frozen", "running"]);
  await beat("9001", "690000");
  expect(await shown()).toMatchObject({
    jobs: [{ state: "running", ...amount(11.5), compute_minutes: "11.5000" }, {}],
  });
});

test("starts that were let through stand apart: they hold back others and are not live", async () => {
  await desk.limit(namespace, { monthly_minutes: "2" });
  await desk.start(namespace, "9101");
  const until = new Date(house.clock.time + 300_000).toISOString();
  expect(await shown()).toMatchObject({
    jobs: [],
    live: amount(0),
    remaining: amount(2),
    reserved: amount(1),
    reservations: [{ job_id: "9101", until, ...amount(1) }],
    slip: { starts: "1", reserve: amount(1) },
  });
});

test("what can slip through is what the configuration bounds, and no more than that starts or runs on", async () => {
  await desk.limit(namespace, { monthly_minutes: "10", grace_minutes: "0" });
  const before = await shown();
  expect(before.slip).toMatchObject({ starts: "10", tolerance: amount(0), beyond: amount(0) });
  const ids = Array.from({ length: 12 }, (_, i) => `${9_200 + i}`);
  const started = await desk.start(namespace, ...ids);
  expect(started.filter(({ allowed }) => allowed)).toHaveLength(Number(before.slip?.starts));
  for (const id of ids.slice(0, 10)) await beat(id, "60000");
  // Ten jobs, each at factor 1 for 30 s and 60 s.
  expect((await shown()).slip).toMatchObject({ starts: "0", beyond: amount(15) });
});

test("the month's end is a straight line through what was used and runs, and none in its first minutes", async () => {
  await desk.limit(namespace, { monthly_minutes: "1000" });
  await used(90, "2026-11-10T00:00:00.000Z");
  await beat("9301", "600000");
  house.clock.time = Date.UTC(2026, 10, 21);
  const month_ms = String(30 * 86_400_000);
  expect((await shown()).projected).toEqual({
    ...amount(150),
    elapsed_ms: String(20 * 86_400_000),
    month_ms,
  });
  house.clock.time = Date.UTC(2026, 11, 1, 0, 9, 59, 999);
  const begun = await shown();
  expect(begun).toMatchObject({ month: "2026-12-01", used: amount(0), available: amount(1_000) });
  expect(begun.projected).toBeUndefined();
  house.clock.time += 1;
  expect((await shown()).projected).toMatchObject({ elapsed_ms: "600000" });
});

test("a namespace that nobody knows has no limit, and nothing to slip through", async () => {
  const quota = await shown();
  expect(quota).toMatchObject({ unlimited: true, packs: [], earlier: [], jobs: [] });
  const { limit, start_bound, run_bound, slip } = quota;
  expect({ limit, start_bound, run_bound, slip }).toEqual({});
});

test("a viewer sees the quota of their namespaces, and another's is 404 like a missing log", async () => {
  const seen = await tokenOf(["viewer"], { logs: [desk.log], namespaces: [namespace] });
  const path = `GET /v1/quotas/${desk.log}/${namespace}`;
  expect((await ask(house, path, { token: seen })).status).toBe(200);
  const hidden = await ask(house, `GET /v1/quotas/${desk.log}/1${namespace}`, { token: seen });
  const missing = await ask(house, `GET /v1/quotas/${"f".repeat(32)}/1`, desk);
  expect([hidden.status, hidden.text]).toEqual([404, missing.text]);
});
