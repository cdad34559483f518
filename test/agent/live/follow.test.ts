import { once } from "node:events";
import { writeFileSync } from "node:fs";
import { createServer, type Server } from "node:http";
import type { AddressInfo } from "node:net";
import { join } from "node:path";
import { afterEach, beforeEach, expect, test } from "vitest";
import { SURROUNDINGS } from "../../../src/agent/client.ts";
import { follow } from "../../../src/agent/live/follow.ts";
import { eventually } from "../eventually.ts";
import { RUNNER, usageLine } from "../records.ts";
import { closeStage, openStage, type Stage } from "../stage.ts";

const JOB = "9007199254740993";

let stage: Stage;
let runner: Server;
let list = "";
let controller: AbortController;
let ended: Promise<unknown>;
const notices: string[] = [];

beforeEach(async () => {
  notices.length = 0;
  list = listed(JOB, "g/p", "1m0.5s");
  stage = await openStage();
  runner = createServer((request, response) => {
    if (request.url === "/debug/jobs/list") response.end(list);
    else response.writeHead(404).end();
  }).listen(0, "127.0.0.1");
  await once(runner, "listening");
  const line = usageLine().replace(
    "https://gitlab.example/x",
    "https://gitlab.example/g/p/-/jobs/1",
  );
  stage.host.write(`${line}\n`);
});

afterEach(async () => {
  controller.abort();
  await ended;
  runner.closeAllConnections();
  runner.close();
  await closeStage(stage);
});

function listed(id: string, project: string, duration: string, state = "running"): string {
  return `url=https://gitlab.example/${project}/-/jobs/${id} state=${state} stage=step_script executor_stage=docker_run duration=${duration}\n`;
}

function start(): void {
  controller = new AbortController();
  ended = follow({
    folder: stage.host.state,
    runner: new URL(`http://127.0.0.1:${(runner.address() as AddressInfo).port}`),
    logs: stage.host.logs,
    surroundings: SURROUNDINGS,
    signal: controller.signal,
    intervalMs: 200,
    onNotice: (sentence) => notices.push(sentence),
  });
}

function said(): string {
  return notices.join("\n");
}

test("what the runner lists is heard of, under the ids that its usage log taught", async () => {
  start();
  await eventually(() => expect(said()).toContain("Running jobs: 1 answered, 0 of them"));
  expect(stage.service.heartbeats[0]).toMatchObject({
    runner: { system_id: "s_1818892f902b", uuid: RUNNER },
    jobs: [{ id: JOB, elapsed_ms: "60500", project_id: "50010", root_namespace_id: "1001" }],
  });
  list = listed(JOB, "g/p", "1h0m0s");
  await eventually(() => expect(stage.service.heardOf(JOB)?.elapsed_ms).toBe("3600000"));
  stage.service.beyond.add(JOB);
  await eventually(() => expect(said()).toContain("Running jobs: 1 answered, 1 of them"));
});

test("a job of a project that was never learnt is counted and said, not guessed", async () => {
  list += listed("8", "g/new", "1s");
  start();
  await eventually(() => expect(said()).toContain("cannot be placed, and count nowhere: 1."));
  expect(stage.service.heardOf("8")).toBeUndefined();
  const line = usageLine().replace(
    "https://gitlab.example/x",
    "https://gitlab.example/g/new/-/jobs/1",
  );
  stage.host.write(`${line}\n`);
  await eventually(() => expect(stage.service.heardOf("8")).toBeDefined());
});

test("where the host has several runners of the instance, the list does not say which, and nothing is guessed", async () => {
  const path = join(stage.host.state, "agent.json");
  const text = await stage.host.withState((state) => JSON.stringify(state.settings));
  writeFileSync(path, text.replace('"runners":[', '"runners":["another",'));
  start();
  await eventually(() => expect(said()).toContain("cannot be placed, and count nowhere: 1."));
  expect(stage.service.heartbeats).toEqual([]);
});

test("a runner that does not answer, or lists without end, is said, and followed again once it does", async () => {
  const good = list;
  list = "x".repeat(5 * 1024 * 1024);
  start();
  await eventually(() => expect(said()).toContain("lists jobs without end."));
  list = good;
  await eventually(() => expect(stage.service.heardOf(JOB)).toBeDefined());
});

test("a Minutebook that is away is asked again by each beat, and nothing is queued for it", async () => {
  const { service } = stage;
  service.misbehaviours = Array(100_000).fill((request: { socket: { destroy(): void } }) => {
    request.socket.destroy();
    return true;
  });
  start();
  await eventually(() => expect(said()).toContain("does not answer"));
  list = listed(JOB, "g/p", "2m0s");
  service.misbehaviours = [];
  await eventually(() => expect(service.heardOf(JOB)?.elapsed_ms).toBe("120000"));
  expect(service.heartbeats.length).toBeLessThan(5);
});

test("it runs beside an import, which has the rest of the state folder", async () => {
  start();
  await eventually(() => expect(stage.service.heartbeats.length).toBeGreaterThan(0));
  const summary = await stage.host.import();
  expect(summary.total.accepted).toBe(1);
});
