/** Running jobs over HTTP, by one process without Redis. */
import { afterAll, beforeAll, expect, test } from "vitest";
import { DECISION_AGE_MS } from "../../src/flow/quota/decide.ts";
import { kidOf } from "../core/history.ts";
import { heartbeatOf } from "./heartbeat.ts";
import { ask, type House, newLog, openHouse } from "./house.ts";
import { Desk, minutes } from "./quota-desk.ts";

let house: House;
let desk: Desk;

beforeAll(async () => {
  house = await openHouse();
  desk = new Desk(house, await newLog(house, "heartbeats", 1));
});
afterAll(() => house.close());

/** So that what is known from before is older than a decision may be. */
async function report(id: string, namespace: string, at: number): Promise<void> {
  await desk.report(namespace, id, at);
  house.clock.time += DECISION_AGE_MS + 1;
}

test("what a heartbeat says is counted at once, and its answer says of what it was computed", async () => {
  const id = await desk.namespace({ monthly_minutes: "10" });
  const [heard] = await desk.hear(heartbeatOf(1, desk.log, [{ id: "11", root_namespace_id: id }]));
  expect(heard).toMatchObject({
    code: "heard",
    log: desk.log,
    kid: kidOf(1),
    decisions: [
      {
        job_id: "11",
        namespace_id: id,
        allowed: true,
        job_status: "running",
        reason: "within",
        remaining_compute_ms: "540000.000000",
        remaining_minutes: "9.0000",
        age_ms: "0",
        source: "process",
      },
    ],
  });
});

test("heartbeats that are repeated, late or out of order change nothing", async () => {
  const id = await desk.namespace({ monthly_minutes: "10" });
  await desk.beat(id, "21", 1);
  await desk.beat(id, "21", 4);
  for (const late of [4, 1, 3, 0]) {
    expect((await desk.beat(id, "21", late))?.remaining_minutes).toBe("6.0000");
  }
  // Two and three were lost; five heals them.
  expect((await desk.beat(id, "21", 5))?.remaining_minutes).toBe("5.0000");
});

test("one job in two heartbeats of a request counts by the longer", async () => {
  const id = await desk.namespace({ monthly_minutes: "10" });
  const of = (at: number) => {
    const job = { id: "22", root_namespace_id: id, elapsed_ms: minutes(at) };
    return heartbeatOf(1, desk.log, [job, job]);
  };
  const decisions = await desk.heard(of(3), of(2));
  expect(decisions.map(({ remaining_minutes }) => remaining_minutes)).toEqual(
    new Array(4).fill("7.0000"),
  );
});

test.each([
  ["default grace", undefined, 1_000],
  ["no grace", "0", 0],
])(
  "G21: quota 10 minutes, fifty long jobs, %s: each is told failed at its first heartbeat beyond, and not before",
  async (_, grace_minutes, grace) => {
    const id = await desk.namespace({
      monthly_minutes: "10",
      ...(grace_minutes && { grace_minutes }),
    });
    const jobs = Array.from({ length: 50 }, (_, i) => `${Number(id) * 100 + i}`);
    const started = await desk.start(id, ...jobs);
    expect(started.filter(({ allowed }) => allowed)).toHaveLength(10);
    // All fifty run nevertheless, as pipelines do that began before; all of them say so at once.
    const all = (elapsed_ms: string) => {
      const said = jobs.map((job) => ({ id: job, root_namespace_id: id, elapsed_ms }));
      return desk.heard(
        heartbeatOf(1, desk.log, said.slice(0, 25)),
        heartbeatOf(1, desk.log, said.slice(25)),
      );
    };
    const bound = (10 + grace) / 50;
    const within = await all(minutes(bound));
    expect(new Set(within.map(({ job_status }) => job_status))).toEqual(new Set(["running"]));
    const beyond = await all(String(bound * 60_000 + 1));
    expect(beyond).toHaveLength(50);
    for (const { job_status, reason } of beyond) {
      expect([job_status, reason]).toEqual(["failed", "beyond"]);
    }
    // Nobody goes on, so nothing more is used than was said then.
    const over = `-${(grace + 50 / 60_000).toFixed(4)}`;
    expect(await desk.remaining(id)).toBe(over);
  },
);

test("a silent agent gives nothing back, until the report is on the log or the time is over", async () => {
  const id = await desk.namespace({ monthly_minutes: "10" });
  const job = { id: "31", root_namespace_id: id, elapsed_ms: minutes(4), timeout_ms: minutes(60) };
  await desk.heard(heartbeatOf(1, desk.log, [job]));
  const before = house.clock.time;
  house.clock.time += 6 * 24 * 60 * 60_000;
  expect(await desk.remaining(id)).toBe("6.0000");
  house.clock.time = before + 7 * 24 * 60 * 60_000 + (56 + 60) * 60_000;
  expect(await desk.remaining(id)).toBe("10.0000");
  house.clock.time = before;
  await report("32", id, 3);
  expect(await desk.remaining(id)).toBe("7.0000");
});

test("a heartbeat that is said again keeps no job alive, nor does it bring one back", async () => {
  const id = await desk.namespace({ monthly_minutes: "10" });
  const job = { id: "33", root_namespace_id: id, elapsed_ms: minutes(4), timeout_ms: minutes(60) };
  const said = heartbeatOf(1, desk.log, [job]);
  await desk.heard(said);
  const before = house.clock.time;
  house.clock.time += 6 * 24 * 60 * 60_000;
  expect((await desk.heard(said))[0]?.remaining_minutes).toBe("6.0000");
  house.clock.time = before + 7 * 24 * 60 * 60_000 + (56 + 60) * 60_000;
  expect((await desk.heard(said))[0]?.remaining_minutes).toBe("10.0000");
  expect(await desk.remaining(id)).toBe("10.0000");
  house.clock.time = before;
});

test("a report takes the place of what was live, and a heartbeat that comes after it adds nothing", async () => {
  const id = await desk.namespace({ monthly_minutes: "10" });
  await desk.beat(id, "41", 2);
  await report("41", id, 3);
  const late = await desk.beat(id, "41", 2);
  expect(late).toMatchObject({ allowed: true, job_status: "running", reason: "on-log" });
  expect(late?.remaining_minutes).toBe("7.0000");
  expect((await desk.beat(id, "41", 9))?.remaining_minutes).toBe("7.0000");
  expect(await desk.remaining(id)).toBe("7.0000");
});

test("a job that never ran is given back, and its heartbeat brings it back only if it runs longer", async () => {
  const id = await desk.namespace({ monthly_minutes: "10" });
  await desk.beat(id, "42", 2);
  await desk.neverRan(id, "42");
  expect(await desk.remaining(id)).toBe("10.0000");
  expect((await desk.beat(id, "42", 2))?.remaining_minutes).toBe("10.0000");
  expect((await desk.beat(id, "42", 3))?.remaining_minutes).toBe("7.0000");
});

test("500 heartbeats are heard in one request, and one more is too many", async () => {
  const id = await desk.namespace({ monthly_minutes: "1000" });
  const heartbeats = Array.from({ length: 500 }, (_, i) => {
    return heartbeatOf(1, desk.log, [{ id: `${700_000 + i}`, root_namespace_id: id }]);
  });
  expect(await desk.heard(...heartbeats)).toHaveLength(500);
  expect(await desk.remaining(id)).toBe("500.0000");
  const json = { heartbeats: [...heartbeats, ...heartbeats.slice(0, 1)] };
  expect((await ask(house, "POST /v1/heartbeats", { json })).status).toBe(413);
});
