/** The relay as a process of its own: killed, stopped, locked, and by its options. */
import type { ChildProcess } from "node:child_process";
import { once } from "node:events";
import { afterEach, beforeEach, expect, test } from "vitest";
import { eventually } from "../eventually.ts";
import { agentProcess, runAgent } from "../process.ts";
import { closeStage, openStage, type Stage } from "../stage.ts";
import { GitLab } from "./gitlab.ts";
import { Runner, type RunnerJob } from "./runner.ts";

const ID = "42";

let stage: Stage;
let gitlab: GitLab;
let gitlabUrl: URL;
let children: ChildProcess[];

beforeEach(async () => {
  stage = await openStage();
  gitlab = new GitLab();
  gitlabUrl = await gitlab.start();
  children = [];
});

afterEach(async () => {
  for (const child of children) {
    if (child.exitCode !== null || child.signalCode !== null) continue;
    child.kill("SIGKILL");
    await once(child, "close");
  }
  await gitlab.stop();
  await closeStage(stage);
});

interface Started {
  child: ChildProcess;
  port: string;
  runner: Runner;
  output: () => string;
}

async function start(port = "0"): Promise<Started> {
  const where = ["--state", stage.host.state, "--gitlab", gitlabUrl.href];
  const args = ["relay", ...where, "--listen", `127.0.0.1:${port}`, "--every", "1"];
  const child = agentProcess(args);
  children.push(child);
  let output = "";
  for (const stream of [child.stdout, child.stderr]) {
    stream.on("data", (chunk) => {
      output += chunk;
    });
  }
  const listening = /Listening on (http:\/\/127\.0\.0\.1:([0-9]+)) for/;
  await eventually(() => expect(output).toMatch(listening));
  const [, url = "", taken = ""] = listening.exec(output) ?? [];
  return { child, port: taken, runner: new Runner(url), output: () => output };
}

async function begin({ runner }: Started, id = ID): Promise<RunnerJob> {
  gitlab.queue(id);
  const job = await runner.take();
  if (job === undefined) throw new Error("no job was given");
  await job.touch();
  return job;
}

test("killed in the middle of a job, it goes on with it when it starts again, with all its time", async () => {
  const first = await start();
  const job = await begin(first);
  job.write("before");
  await job.patch();
  await eventually(() => expect(stage.service.heardOf(ID)).toBeDefined());
  const heard = Number(stage.service.heardOf(ID)?.elapsed_ms);
  first.child.kill("SIGKILL");
  await once(first.child, "close");
  // To the runner a relay that is away is a GitLab that is: no answer, which stops nothing.
  expect(await job.touch()).toMatchObject({ status: 0 });
  const said = stage.service.heartbeats.length;
  stage.service.beyond.add(ID);
  await start(first.port);
  await eventually(async () => {
    job.write(".");
    await job.patch();
    expect(job.aborted).toBe(true);
  });
  const after = stage.service.heartbeats.slice(said).flatMap(({ jobs }) => jobs);
  expect(Number(after[0]?.elapsed_ms)).toBeGreaterThan(heard);
  expect(await job.finish("failed")).toBe(200);
  expect(gitlab.job(ID).trace.toString()).toMatch(/^before\.+$/);
  expect(job.answers.filter(({ jobStatus }) => jobStatus === "failed")).toHaveLength(1);
});

test("killed after GitLab ended a job and before its runner was told, the runner begins and GitLab stops it", async () => {
  const first = await start();
  stage.service.beyond.add(ID);
  gitlab.misbehaviours = [
    { on: /^PUT/, act: () => false },
    {
      on: /^PUT/,
      act: () => {
        gitlab.job(ID).status = "failed";
        return first.child.kill("SIGKILL");
      },
    },
  ];
  const closed = once(first.child, "close");
  const job = await begin(first);
  expect(job.answers).toMatchObject([{ status: 0 }]);
  expect(job.aborted).toBe(false);
  await closed;
  await start(first.port);
  job.write("it began");
  expect(await job.patch()).toMatchObject({ status: 403, jobStatus: "failed" });
  expect(job.aborted).toBe(true);
});

test("stopped, it ends what is under way first, and says what it did", async () => {
  const { child, runner, output } = await start();
  let answer: () => void = () => undefined;
  gitlab.misbehaviours = [
    {
      on: /^POST/,
      act: (_, response) => {
        answer = () => response.writeHead(204).end();
        return true;
      },
    },
  ];
  const polled = runner.send("POST", "/api/v4/jobs/request", "{}");
  await eventually(() => expect(gitlab.lines()).toHaveLength(1));
  const closed = once(child, "close");
  child.kill("SIGTERM");
  await eventually(async () => {
    const other = new Runner(runner.url);
    expect(await other.send("GET", "/")).toMatchObject({ status: 0 });
  });
  answer();
  expect(await polled).toMatchObject({ status: 204 });
  expect(await closed).toEqual([0, null]);
  expect(output()).toContain("0 jobs passed, 0 refused, 0 told to stop.");
});

test("one at a time has the running jobs of a state folder, and an import beside it the rest", async () => {
  const { child } = await start();
  const where = ["--state", stage.host.state];
  const second = await runAgent(["live", ...where, "--usage-logs", stage.host.logs]);
  expect(second.status).toBe(1);
  expect(second.stderr).toMatch(
    new RegExp(`^in-use: Another agent \\(process ${child.pid}\\) is using .*live\\.`),
  );
  const beside = await runAgent(["import", stage.host.logs, ...where]);
  expect(beside).toMatchObject({ status: 0 });
});

test.each([
  ["no port", ["--listen", "127.0.0.1"], 1, "Expected a host and a port"],
  [
    "no address of GitLab's",
    ["--gitlab", "gitlab.example"],
    1,
    "Expected an http or https address.",
  ],
  ["a pace that freezes jobs", ["--every", "61"], 1, "1 to 60."],
  ["half of a TLS key", ["--tls-cert", "cert.pem"], 1, "--tls-cert and --tls-key go together."],
])(
  "%s is refused in one line",
  async (_name, different, status, sentence) => {
    const where = [
      "--state",
      stage.host.state,
      "--gitlab",
      gitlabUrl.href,
      "--listen",
      "127.0.0.1:0",
    ];
    const ended = await runAgent(["relay", ...where, ...different]);
    expect(ended.status).toBe(status);
    expect(ended.stderr).toContain(sentence);
  },
  60_000,
);

test("an address that is taken, and a folder without a key, are said in one line", async () => {
  const { port } = await start();
  const taken = ["--gitlab", gitlabUrl.href, "--listen", `127.0.0.1:${port}`];
  const empty = await runAgent(["relay", "--state", `${stage.host.root}/empty`, ...taken]);
  expect(empty).toMatchObject({
    status: 1,
    stderr: "not-enrolled: No key is enrolled here: begin with `agent claim`.\n",
  });
});
