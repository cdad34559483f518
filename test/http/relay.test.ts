/** A relay between a runner and a GitLab, by a real agent's key, over a real service. */
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, expect, test } from "vitest";
import { AgentState, Client, claim, SURROUNDINGS } from "../../src/agent/index.ts";
import { Relay } from "../../src/agent/relay/relay.ts";
import { DECISION_AGE_MS } from "../../src/flow/quota/decide.ts";
import { eventually } from "../agent/eventually.ts";
import { UNIQUE_ID, RUNNER as UUID } from "../agent/records.ts";
import { GitLab } from "../agent/relay/gitlab.ts";
import { Runner, type RunnerJob } from "../agent/relay/runner.ts";
import { RUNNER } from "../core/history.ts";
import { ask, type House, newLog, openHouse } from "./house.ts";
import { Desk } from "./quota-desk.ts";

/** Of all jobs that this GitLab gives out. */
const NAMESPACE = "1001";

const root = mkdtempSync(join(tmpdir(), "minutebook-relay-"));
const gitlab = new GitLab();
const controller = new AbortController();
let house: House;
let desk: Desk;
let runner: Runner;
let relay: Promise<unknown>;

beforeAll(async () => {
  house = await openHouse();
  const { log, token } = await newLog(house, UNIQUE_ID, 1);
  desk = new Desk(house, { log, token });
  const runners = [{ ...RUNNER, uuid: UUID }];
  const enrolled = await ask(house, "POST /v1/enrolments", {
    token,
    json: { log, namespaces: [], runners },
  });
  const state = new AgentState(root);
  const client = new Client({ server: house.url, surroundings: SURROUNDINGS });
  const once = { log, token: String(enrolled.json["token"]), pinned: undefined };
  await claim(state, client, once);
  state.close();
  const url = await gitlab.start();
  const listening = await new Promise<string>((resolve, reject) => {
    relay = new Relay({
      folder: root,
      listen: { host: "127.0.0.1", port: 0 },
      gitlab: url,
      surroundings: SURROUNDINGS,
      signal: controller.signal,
      intervalMs: 500,
      onNotice: () => undefined,
      onListening: resolve,
    }).run();
    relay.catch(reject);
  });
  runner = new Runner(listening);
});

afterAll(async () => {
  runner.close();
  controller.abort();
  await relay;
  await gitlab.stop();
  await house.close();
  rmSync(root, { recursive: true });
});

async function begin(id: string): Promise<RunnerJob> {
  gitlab.queue(id);
  const job = await runner.take();
  if (job === undefined) throw new Error("no job was given");
  await job.touch();
  return job;
}

test("a running job is stopped once its namespace is beyond its quota, the next is refused, and a raise lets one begin", async () => {
  await desk.limit(NAMESPACE, { monthly_minutes: "10", grace_minutes: "0" });
  const running = await begin("501");
  expect(running.aborted).toBe(false);
  await eventually(async () => {
    expect(await desk.remaining(NAMESPACE)).toMatch(/^9\.9/);
  });

  await desk.report(NAMESPACE, "500", 10);
  house.clock.time += DECISION_AGE_MS + 1;
  await eventually(async () => {
    await running.touch();
    expect(running.aborted).toBe(true);
  });
  const refused = await begin("502");
  expect(refused.aborted).toBe(true);
  expect(gitlab.job("502")).toMatchObject({
    status: "failed",
    failureReason: "ci_quota_exceeded",
    states: ["running", "failed"],
  });
  expect(await running.finish("failed")).toBe(200);
  const { stops } = await desk.stops(NAMESPACE);
  const stopped = (stops as { job_id: string }[]).map(({ job_id }) => job_id);
  expect(new Set(stopped)).toEqual(new Set(["501", "502"]));

  await desk.limit(NAMESPACE, { monthly_minutes: "1000", grace_minutes: "0" });
  house.clock.time += DECISION_AGE_MS + 1;
  const raised = await begin("503");
  expect(raised.aborted).toBe(false);
  expect(await raised.finish("success")).toBe(200);
});
