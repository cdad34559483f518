/** Jobs that no bill is made of, in namespaces that have nothing left: neither counted nor stopped. */
import { afterAll, beforeAll, expect, test } from "vitest";
import { heartbeatOf } from "./heartbeat.ts";
import { ask, cardBody, type House, newAgent, newLog, openHouse } from "./house.ts";
import { Desk, minutes } from "./quota-desk.ts";

const DURATION_CAP_MS = 2_678_400_000;
const DAY_MS = 86_400_000;
const FREE = { allowed: true, job_status: "running", reason: "not-counted" };
const BEYOND = { allowed: false, reason: "beyond" };

let house: House;
let desk: Desk;

beforeAll(async () => {
  house = await openHouse();
  const { log, token } = await newLog(house, "uncounted", 1);
  desk = new Desk(house, { log, token });
  const runner_factors = { "*": "1", free: "0" };
  await control("rate_cards", { ...cardBody(), runner_factors, project_factors: { charity: "0" } });
  await control("project_classes", { class: "charity", project_id: "77" });
  await newAgent(house, log, 2, { uuid: "free", machine_type: "free", runner_id: "1" });
});
afterAll(() => house.close());

async function control(path: string, body: object): Promise<void> {
  const effective_from = "2026-11-20T12:00:00.001Z";
  const json = { source: "", ...body, effective_from };
  const route = `POST /v1/logs/${desk.log}/${path}`;
  const { status, text } = await ask(house, route, { token: desk.token, json });
  if (status !== 201) throw new Error(text);
  house.clock.time += 1;
}

async function exhausted(of = desk): Promise<string> {
  const id = await of.namespace({ monthly_minutes: "1", grace_minutes: "0" });
  await of.beat(id, `${id}0`, 2);
  return id;
}

test("a job on a machine or of a project that costs nothing runs on where nothing is left", async () => {
  const id = await exhausted();
  const job = { id: "1", root_namespace_id: id, elapsed_ms: minutes(50) };
  const [machine] = await desk.heard(heartbeatOf(2, desk.log, [job], "free"));
  const [project] = await desk.heard(heartbeatOf(1, desk.log, [{ ...job, project_id: "77" }]));
  const [priced] = await desk.heard(heartbeatOf(1, desk.log, [{ ...job, elapsed_ms: "0" }]));
  expect([machine, project, priced]).toMatchObject([FREE, FREE, BEYOND]);
  expect(machine).not.toHaveProperty("as_of");
  expect(await desk.remaining(id)).toBe("-1.0000");
});

test.each(["start", "go_on"])(
  "asked %s, a job is free if it is so on its machine, or on any where that is not said",
  async (kind) => {
    const id = await exhausted();
    const jobs = [
      { machine_type: "free" },
      { project_id: "77" },
      { project_id: "77", machine_type: "small" },
      { machine_type: "small" },
      {},
    ].map((more, i) => ({ job_id: `1${i}`, namespace_id: id, ask: kind, ...more }));
    expect(await desk.decide(jobs)).toMatchObject([FREE, FREE, FREE, BEYOND, BEYOND]);
    const stops = (await desk.stops(id))["stops"] as Record<string, unknown>[];
    const stopped = stops.filter(({ ask }) => ask === kind).map(({ job_id }) => job_id);
    expect(stopped.sort()).toEqual(["13", "14"]);
  },
);

test("before a log's first billed day no job is counted or stopped", async () => {
  const body = { unique_id: "early", platform: "dotcom", billing_from: "2026-12-01T00:00:00.000Z" };
  const { token } = desk;
  const { log } = (await ask(house, "POST /v1/logs", { token, json: body })).json;
  const early = new Desk(house, { log: String(log), token });
  const json = { ...cardBody(), project_factors: {} };
  await ask(house, `POST /v1/logs/${log}/rate_cards`, { token, json });
  await newAgent(house, early.log, 3, { uuid: "early" });
  const id = await early.namespace({ monthly_minutes: "1", grace_minutes: "0" });
  const jobs = ["1", "2"].map((job) => ({
    id: job,
    root_namespace_id: id,
    elapsed_ms: minutes(9),
  }));
  expect(await early.heard(heartbeatOf(3, early.log, jobs, "early"))).toMatchObject([FREE, FREE]);
  expect(await early.start(id, "3")).toMatchObject([FREE]);
  expect((await early.stops(id))["stops"]).toEqual([]);
});

test("a job that has run longer than a report may say is not counted, as its report would be held", async () => {
  const id = await desk.namespace({ monthly_minutes: "100000" });
  const of = (elapsed_ms: number) =>
    desk.heard(
      heartbeatOf(1, desk.log, [{ id: "31", root_namespace_id: id, elapsed_ms: `${elapsed_ms}` }]),
    );
  expect(await of(37 * DAY_MS)).toMatchObject([FREE]);
  expect(await desk.remaining(id)).toBe("100000.0000");
  // What it said up to then counts on.
  const [last] = await of(DURATION_CAP_MS);
  expect(last).toMatchObject({ reason: "within", remaining_minutes: "55360.0000" });
  expect(await of(DURATION_CAP_MS + 1)).toMatchObject([FREE]);
  expect(await desk.remaining(id)).toBe("55360.0000");
});
