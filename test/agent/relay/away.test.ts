/** Minutebook that is away, slow, or no Minutebook: whatever it is, what runner and GitLab say passes. */
import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { afterEach, beforeEach, expect, test } from "vitest";
import { eventually } from "../eventually.ts";
import type { Misbehaviour } from "../service.ts";
import { House } from "./house.ts";

const ID = "42";

let house: House;

beforeEach(async () => {
  house = await House.open();
});

afterEach(() => house.close());

/** From now on, until the list is emptied. */
function misbehave(act: Misbehaviour): void {
  house.stage.service.misbehaviours = Array(100_000).fill(act);
}

const away: Misbehaviour = (request) => {
  request.socket.destroy();
  return true;
};

async function runThrough(): Promise<void> {
  const job = await house.begun(ID);
  job.write("a log");
  await job.patch();
  expect(await job.finish("success")).toBe(200);
  expect(job.aborted).toBe(false);
  expect(house.gitlab.job(ID)).toMatchObject({ status: "success", states: ["running", "success"] });
}

test.each<[string, Misbehaviour]>([
  ["away", away],
  ["busy", (_, response) => Boolean(response.writeHead(503, { "Retry-After": "60" }).end())],
  ["some other program", (_, response) => Boolean(response.writeHead(200).end("<html>"))],
  ["of another opinion about its address", (_, response) => Boolean(response.writeHead(404).end())],
  ["answering for no job", (_, response) => Boolean(response.writeHead(200).end('{"results":[]}'))],
])("a job runs through while Minutebook is %s", async (_name, act) => {
  house.stage.service.beyond.add(ID);
  misbehave(act);
  await runThrough();
});

test("a job waits for a Minutebook that hangs no longer than two seconds, and runs through", async () => {
  house.stage.service.beyond.add(ID);
  misbehave(() => true);
  const begun = performance.now();
  await runThrough();
  // And what a busy machine adds; whoever has no patience of their own waits for a minute.
  expect(performance.now() - begun).toBeLessThan(20_000);
});

test.each<[string, (results: unknown[]) => unknown]>([
  ["without a status that runners know", () => decisionOf({ job_status: "failure" })],
  ["that contradicts itself", () => decisionOf({ allowed: true })],
  ["of another job", () => decisionOf({ job_id: "43" })],
  ["of a heartbeat that is not heard", () => decisionOf({}, "key-ended")],
  ["in another form", () => ({ results: [{ code: "heard", decisions: "all" }] })],
])("no job is stopped by an answer %s", async (_name, distort) => {
  house.stage.service.distortDecisions = distort;
  await runThrough();
});

function decisionOf(different: object, code = "heard"): unknown {
  const decision = { job_id: ID, allowed: false, job_status: "failed", ...different };
  return { results: [{ code, decisions: [decision] }] };
}

test("a `failed` is forgotten when nobody says it again", async () => {
  const job = await house.begun(ID);
  house.stage.service.beyond.add(ID);
  await eventually(() => expect(house.notices.join()).toContain("1 of them beyond"));
  misbehave(away);
  await eventually(() => expect(house.notices.join()).toContain("does not answer"));
  expect(await job.touch()).toMatchObject({ status: 200, jobStatus: "" });
  // And comes back with it: elapsed time is cumulative, so nothing is to be made up for.
  house.stage.service.misbehaviours = [];
  await eventually(async () => {
    await job.touch();
    expect(job.aborted).toBe(true);
  });
});

test("an agent's state that cannot be read is said, and everything passes", async () => {
  const path = join(house.stage.host.state, "agent.json");
  house.stage.service.beyond.add(ID);
  writeFileSync(path, "{");
  await runThrough();
  await eventually(() => expect(house.notices.join()).toContain("agent.json is not this agent's"));
});

test("a job of an instance that is not enrolled here is counted, said, and passes", async () => {
  house.stage.service.beyond.add(ID);
  const { host } = house.stage;
  const path = join(host.state, "agent.json");
  const text = await host.withState((state) => JSON.stringify(state.settings));
  writeFileSync(path, text.replace(/"unique_id":"[^"]+"/, '"unique_id":"another"'));
  await runThrough();
  const job = await house.begun("43");
  await eventually(() =>
    expect(house.notices.join()).toContain("cannot be placed, and count nowhere: 1."),
  );
  await job.finish("success");
});
