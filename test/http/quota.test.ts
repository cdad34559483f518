/** Decisions over HTTP, by one process without Redis. */
import { afterAll, beforeAll, expect, test } from "vitest";
import { DECISION_AGE_MS } from "../../src/flow/quota/decide.ts";
import { heartbeatOf } from "./heartbeat.ts";
import { ask, type House, newLog, openHouse, tokenOf } from "./house.ts";
import { Desk, minutes } from "./quota-desk.ts";

const BEYOND = { allowed: false, reason: "beyond" };

let house: House;
let desk: Desk;

beforeAll(async () => {
  house = await openHouse();
  desk = new Desk(house, await newLog(house, "quota", 1));
});
afterAll(() => house.close());

/** So that what is known from before is older than a decision may be. */
async function used(namespace: string, at: number, id: string): Promise<void> {
  await desk.report(namespace, id, at);
  house.clock.time += DECISION_AGE_MS + 1;
}

test("decisions come in the order of the questions, whichever namespaces they are of", async () => {
  const [few, none] = [
    await desk.namespace({ monthly_minutes: "10" }),
    await desk.namespace({ monthly_minutes: "0" }),
  ];
  const one = await desk.namespace({ monthly_minutes: "1", grace_minutes: "0" });
  await used(one, 1, "9001");
  const decisions = await desk.decide([
    { job_id: "1", namespace_id: one, ask: "start" },
    { job_id: "2", namespace_id: few, ask: "start" },
    { job_id: "3", namespace_id: one, ask: "start", tracking: "self_managed" },
    { job_id: "4", namespace_id: none, ask: "start" },
    { job_id: "5", namespace_id: few, ask: "go_on" },
  ]);
  expect(decisions.map(({ job_id, allowed, reason }) => [job_id, allowed, reason])).toEqual([
    ["1", false, "beyond"],
    ["2", true, "within"],
    ["3", true, "not-counted"],
    ["4", true, "unlimited"],
    ["5", true, "within"],
  ]);
  expect(decisions[0]).toMatchObject({
    job_status: "failed",
    remaining_minutes: "0.0000",
    month: "2026-11-01",
    source: "process",
  });
  expect(decisions[3]).not.toHaveProperty("remaining_minutes");
});

test("a thousand jobs are decided in one request, and one more is too many", async () => {
  const id = await desk.namespace({ monthly_minutes: "10" });
  const jobs = Array.from({ length: 1_000 }, (_, i) => {
    return { job_id: `${i}`, namespace_id: i % 2 === 0 ? id : `${5_000 + i}`, ask: "go_on" };
  });
  const decisions = await desk.decide(jobs);
  expect(decisions.map(({ job_id }) => job_id)).toEqual(jobs.map(({ job_id }) => job_id));
  const json = { log: desk.log, jobs: [...jobs, ...jobs.slice(0, 1)] };
  const { status } = await ask(house, "POST /v1/decisions", { token: desk.token, json });
  expect(status).toBe(413);
});

test("an unknown namespace is no error: it has no limit, so nothing stops it", async () => {
  const [decision] = await desk.start("77777777", "1");
  expect(decision).toMatchObject({ allowed: true, reason: "unlimited" });
});

test("another tenant's log is 404, exactly like a missing one", async () => {
  const token = await tokenOf(["platform"], { logs: ["f".repeat(32)] });
  const jobs = [{ job_id: "1", namespace_id: "1", ask: "start" }];
  const hidden = await ask(house, "POST /v1/decisions", { token, json: { log: desk.log, jobs } });
  const missing = await ask(house, "POST /v1/decisions", {
    token: desk.token,
    json: { log: "e".repeat(32), jobs },
  });
  expect([hidden.status, hidden.text]).toEqual([404, missing.text]);
});

test("T34: 99.3 of 100 minutes used is not 100, though it may be shown so", async () => {
  const id = await desk.namespace({ monthly_minutes: "100" });
  await used(id, 99.3, "3401");
  expect((await desk.start(id, "3402"))[0]).toMatchObject({
    allowed: true,
    remaining_minutes: "0.7000",
  });
  // The first has a minute reserved, and what is left is less.
  expect((await desk.start(id, "3403"))[0]).toMatchObject({ allowed: false, reason: "beyond" });
});

test("T43: what was refused has used nothing, and a raise gives all of the difference at once", async () => {
  const id = await desk.namespace({ monthly_minutes: "10" });
  await used(id, 10, "4300");
  for (let i = 0; i < 50; i += 1) {
    expect((await desk.start(id, `${4_301 + i}`))[0]?.allowed).toBe(false);
  }
  house.clock.time += 1;
  await desk.limit(id, { monthly_minutes: "15" });
  house.clock.time += 1;
  expect(await desk.remaining(id)).toBe("5.0000");
  const started = await desk.start(id, ...Array.from({ length: 10 }, (_, i) => `${4_401 + i}`));
  expect(started.filter(({ allowed }) => allowed)).toHaveLength(5);
});

test("G18: minutes that are bought let the pending job start at its next ask", async () => {
  const id = await desk.namespace({ monthly_minutes: "1" });
  await used(id, 1, "1800");
  expect((await desk.start(id, "1801"))[0]?.allowed).toBe(false);
  await desk.pack(id, "100");
  expect((await desk.start(id, "1801"))[0]).toMatchObject({
    allowed: true,
    remaining_minutes: "100.0000",
  });
});

test("G23: a pending job that is cancelled is never counted", async () => {
  const id = await desk.namespace({ monthly_minutes: "1" });
  expect((await desk.start(id, "2301"))[0]?.allowed).toBe(true);
  expect((await desk.start(id, "2302"))[0]?.allowed).toBe(false);
  await desk.neverRan(id, "2301");
  expect(await desk.remaining(id)).toBe("1.0000");
  expect((await desk.start(id, "2302"))[0]?.allowed).toBe(true);
});

test("a start that is asked again is the same start", async () => {
  const id = await desk.namespace({ monthly_minutes: "2" });
  for (let i = 0; i < 5; i += 1) expect((await desk.start(id, "1"))[0]?.allowed).toBe(true);
  expect((await desk.start(id, "2"))[0]?.allowed).toBe(true);
  expect((await desk.start(id, "3"))[0]?.allowed).toBe(false);
});

test("with bill both go on beyond the limit, up to the cap where there is one", async () => {
  const open = await desk.namespace({ monthly_minutes: "1", beyond: "bill" });
  const capped = await desk.namespace({ monthly_minutes: "1", beyond: "bill", cap: "5" });
  for (const id of [open, capped]) await used(id, 3, `${id}1`);
  const [first, second] = [await desk.start(open, "1"), await desk.start(capped, "1")];
  expect(first[0]).toMatchObject({ allowed: true, remaining_minutes: "-2.0000" });
  expect(second[0]).toMatchObject({ allowed: true, remaining_minutes: "-2.0000" });
  const running = (id: string, ms: string) =>
    desk.heard(heartbeatOf(1, desk.log, [{ id: `${id}2`, root_namespace_id: id, elapsed_ms: ms }]));
  expect((await running(capped, minutes(3)))[0]?.allowed).toBe(true);
  expect((await running(capped, minutes(3.1)))[0]).toMatchObject({ reason: "beyond" });
  expect((await running(open, minutes(3_000)))[0]?.allowed).toBe(true);
  expect((await desk.start(capped, "3"))[0]?.allowed).toBe(false);
  expect((await desk.start(open, "3"))[0]?.allowed).toBe(true);
});

test("the month changes without a job", async () => {
  const id = await desk.namespace({ monthly_minutes: "10" });
  await used(id, 10, "1100");
  expect((await desk.start(id, "1101"))[0]).toMatchObject({ allowed: false, month: "2026-11-01" });
  const before = house.clock.time;
  house.clock.time = Date.parse("2026-12-01T00:00:00.000Z");
  expect((await desk.start(id, "1101"))[0]).toMatchObject({
    allowed: true,
    month: "2026-12-01",
    remaining_minutes: "10.0000",
  });
  house.clock.time = before;
});

test("a raise and a first limit hold at once, though a clock an hour ahead wrote the entry before", async () => {
  const ahead = new Desk(house, await newLog(house, "ahead", 2));
  const raised = await ahead.namespace({ monthly_minutes: "1" });
  expect(await ahead.start(raised, "1", "2")).toMatchObject([{ allowed: true }, BEYOND]);
  house.clock.time += 3_600_000;
  await ahead.namespace({ monthly_minutes: "1" });
  house.clock.time -= 3_600_000;
  await ahead.limit(raised, { monthly_minutes: "2" });
  const first = await ahead.namespace({ monthly_minutes: "1" });
  house.clock.time += DECISION_AGE_MS + 1;
  expect(await ahead.start(raised, "2", "3")).toMatchObject([{ reason: "within" }, BEYOND]);
  expect(await ahead.start(first, "4", "5")).toMatchObject([{ reason: "within" }, BEYOND]);
});
