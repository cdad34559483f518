import { existsSync, readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { afterEach, beforeEach, expect, test } from "vitest";
import { eventually } from "../eventually.ts";
import { TOKEN } from "./gitlab.ts";
import { House } from "./house.ts";

const ID = "9007199254740993"; // beyond 2^53: any number type would make …992 of it

let house: House;

beforeEach(async () => {
  house = await House.open();
});

afterEach(() => house.close());

test("a job within its quota passes untouched, and is heard of while it runs", async () => {
  const { gitlab, stage } = house;
  const job = await house.begun(ID);
  job.write("one");
  await job.patch();
  await eventually(() => expect(stage.service.heardOf(ID)).toBeDefined());
  job.write("two");
  expect(await job.finish("success")).toBe(200);
  expect(job.aborted).toBe(false);
  expect(gitlab.job(ID)).toMatchObject({ status: "success", states: ["running", "success"] });
  expect(gitlab.job(ID).trace.toString()).toBe("onetwo");
  expect(stage.service.heartbeats[0]).toMatchObject({
    log: stage.service.log,
    runner: { system_id: "s_1818892f902b", uuid: stage.service.claimRunners[0] },
    jobs: [{ id: ID, project_id: "50010", root_namespace_id: "1001", timeout_ms: "3600000" }],
  });
});

test("elapsed time is cumulative from the moment the job began, and its last word ends its heartbeats", async () => {
  const { service } = house.stage;
  const job = await house.begun(ID);
  const elapsed = (): number => Number(service.heardOf(ID)?.elapsed_ms ?? 0);
  await eventually(() => expect(elapsed()).toBeGreaterThan(200));
  const all = service.heartbeats.map(({ jobs }) => Number(jobs[0]?.elapsed_ms));
  expect(all).toEqual(all.toSorted((a, b) => a - b));
  await job.finish("success");
  const said = service.heartbeats.length;
  const other = await house.begun("77");
  await eventually(() => expect(Number(service.heardOf("77")?.elapsed_ms)).toBeGreaterThan(0));
  const later = service.heartbeats.slice(said + 1).flatMap(({ jobs }) => jobs.map(({ id }) => id));
  expect(new Set(later)).toEqual(new Set(["77"]));
  await other.finish("success");
});

test("a job beyond its quota is refused at its first PUT, and GitLab learns of it first", async () => {
  const { gitlab, stage } = house;
  stage.service.beyond.add(ID);
  const job = await house.taken(ID);
  const answer = await job.touch();
  expect(answer).toMatchObject({ status: 200, jobStatus: "failed" });
  expect(job.aborted).toBe(true);
  expect(gitlab.job(ID)).toMatchObject({
    status: "failed",
    failureReason: "ci_quota_exceeded",
    states: ["running", "failed"],
  });
  expect(stage.service.heardOf(ID)).toMatchObject({ elapsed_ms: "0" });
});

test("a job that GitLab will not end is begun, and stopped by the runner's own last word", async () => {
  const { gitlab, stage } = house;
  stage.service.beyond.add(ID);
  const job = await house.taken(ID);
  gitlab.misbehaviours = [
    { on: /^PUT/, act: () => false },
    { on: /^PUT/, act: (_, response) => Boolean(response.writeHead(503).end()) },
  ];
  expect(await job.touch()).toMatchObject({ status: 200, jobStatus: "" });
  await eventually(async () => {
    job.write(".");
    await job.patch();
    expect(job.aborted).toBe(true);
  });
  expect(await job.finish("failed")).toBe(200);
  expect(gitlab.job(ID)).toMatchObject({ status: "failed", failureReason: "" });
});

test("a running job beyond its quota is told once, on whatever comes next, and never on its last word", async () => {
  const { gitlab, stage } = house;
  const job = await house.begun(ID);
  stage.service.beyond.add(ID);
  await eventually(async () => {
    job.write("x");
    await job.patch();
    expect(job.aborted).toBe(true);
  });
  // GitLab has the log that the runner sent by the answer that stopped it; the runner finds out by 416.
  job.write("the last lines");
  expect(await job.finish("failed")).toBe(200);
  const told = job.answers.filter(({ jobStatus }) => jobStatus === "failed");
  expect(told).toHaveLength(1);
  expect(told[0]?.status).toBe(202);
  expect(job.answers.at(-1)).toMatchObject({ status: 200, jobStatus: "" });
  expect(gitlab.job(ID).trace.toString()).toMatch(/^x+the last lines$/);
  expect(gitlab.job(ID).states).toEqual(["running", "failed"]);
});

test("told by a PUT, it is not told again by a PATCH", async () => {
  const job = await house.begun(ID);
  house.stage.service.beyond.add(ID);
  await eventually(async () => {
    await job.touch();
    expect(job.aborted).toBe(true);
  });
  job.write("more");
  expect(await job.patch()).toMatchObject({ status: 202, jobStatus: "running" });
  expect(await job.touch()).toMatchObject({ status: 200, jobStatus: "" });
});

test.each([500, 429, 502])(
  "an answer of %i, which the runner tries again by itself, is not spent on telling it",
  async (status) => {
    const { gitlab, stage } = house;
    const job = await house.begun(ID);
    stage.service.beyond.add(ID);
    await eventually(() => expect(house.notices.join()).toContain("1 of them beyond"));
    gitlab.misbehaviours = [
      { on: /^PATCH/, act: (_, response) => Boolean(response.writeHead(status).end()) },
    ];
    job.write("a log");
    expect(await job.patch()).toMatchObject({ status: 202, jobStatus: "failed" });
    expect(gitlab.lines().filter((line) => line.startsWith("PATCH"))).toHaveLength(2);
  },
);

test("its last word passes however often GitLab wants it: 500, 429, 202, 412", async () => {
  const { gitlab, stage } = house;
  const job = await house.begun(ID);
  stage.service.beyond.add(ID);
  await eventually(() => expect(house.notices.join()).toContain("1 of them beyond"));
  gitlab.misbehaviours = [500, 429, 202, 412].map((status) => ({
    on: /^PUT/,
    act: (_, response) => Boolean(response.writeHead(status).end()),
  }));
  expect(await job.finish("success")).toBe(200);
  expect(job.answers.map(({ jobStatus }) => jobStatus)).not.toContain("failed");
  expect(gitlab.job(ID)).toMatchObject({ status: "success" });
});

test("after a last word that GitLab did not take, the rest of the log passes untold", async () => {
  const { gitlab, stage } = house;
  const job = await house.begun(ID);
  stage.service.beyond.add(ID);
  await eventually(() => expect(house.notices.join()).toContain("1 of them beyond"));
  gitlab.misbehaviours = [
    { on: /^PUT/, act: (_, response) => Boolean(response.writeHead(412).end()) },
  ];
  expect(await job.finish("success", 1)).toBe(0);
  job.write("sent again");
  expect(await job.patch()).toMatchObject({ status: 202, jobStatus: "running" });
  expect(await job.finish("success")).toBe(200);
});

test("an answer that broke off before the runner had it counts for nothing: it is told by the next", async () => {
  const { gitlab, stage } = house;
  const job = await house.begun(ID);
  stage.service.beyond.add(ID);
  await eventually(() => expect(house.notices.join()).toContain("1 of them beyond"));
  gitlab.misbehaviours = [
    {
      on: /^PATCH/,
      act: (_, response) => {
        response.writeHead(202, { "Content-Length": "9" });
        response.write("part", () => response.destroy());
        return true;
      },
    },
  ];
  job.write("a log");
  expect(await job.patch()).toMatchObject({ status: 0 });
  expect(await job.patch()).toMatchObject({ status: 202, jobStatus: "failed" });
});

test("GitLab's own word that a job has ended is left as it is", async () => {
  const { gitlab } = house;
  const job = await house.begun(ID);
  house.stage.service.beyond.add(ID);
  await eventually(() => expect(house.notices.join()).toContain("1 of them beyond"));
  gitlab.misbehaviours = [
    {
      on: /^PUT/,
      act: (_, response) => Boolean(response.writeHead(200, { "job-status": "canceled" }).end()),
    },
  ];
  expect(await job.touch()).toMatchObject({ status: 200, jobStatus: "canceled" });
});

test("a limit that is raised lets the job go on, untold", async () => {
  const { service } = house.stage;
  const job = await house.begun(ID);
  service.beyond.add(ID);
  await eventually(() => expect(house.notices.at(-1)).toContain("1 of them beyond"));
  service.beyond.clear();
  await eventually(() => expect(house.notices.at(-1)).toContain("0 of them beyond"));
  expect(await job.touch()).toMatchObject({ status: 200, jobStatus: "" });
});

test("no token, variable or payload is in a file or a notice", async () => {
  const { stage } = house;
  stage.service.beyond.add("8");
  const job = await house.begun(ID);
  await (await house.taken("8")).touch();
  const folder = join(stage.host.state, "live", "jobs");
  const kept = readdirSync(folder).map((name) => readFileSync(join(folder, name), "utf8"));
  expect(kept).toHaveLength(1);
  for (const secret of [TOKEN, "glrt-secret", "SECRET", "a variable", "build"]) {
    expect([...kept, ...house.notices].join("\n")).not.toContain(secret);
  }
  await job.finish("success");
  expect(existsSync(join(folder, `${ID}.json`))).toBe(false);
});
