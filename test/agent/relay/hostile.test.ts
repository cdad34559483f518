/** A job, or whoever else reaches the relay, that would rather not be stopped. */
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { afterEach, beforeEach, expect, test } from "vitest";
import { eventually } from "../eventually.ts";
import { TOKEN } from "./gitlab.ts";
import { House } from "./house.ts";

const ID = "9007199254740993";
const PATH = `/api/v4/jobs/${ID}`;
const TYPE = ["Content-Type", "application/json"];

let house: House;

beforeEach(async () => {
  house = await House.open();
});

afterEach(() => house.close());

const touch = JSON.stringify({ state: "running", token: TOKEN });

function lastWord(token: string): string {
  return JSON.stringify({ state: "success", token });
}

test.each([
  ["of another token", () => house.runner.send("PUT", PATH, lastWord("wrong"), TYPE)],
  ["of no token", () => house.runner.send("PUT", PATH, '{"state":"failed"}', TYPE)],
  ["that is empty", () => house.runner.send("PUT", PATH, "{}", TYPE)],
])("a last word %s, which GitLab refuses, keeps no job from being stopped", async (_name, send) => {
  const job = await house.begun(ID);
  house.stage.service.beyond.add(ID);
  await eventually(async () => {
    expect(await send()).toMatchObject({ status: 403, jobStatus: "" });
    job.write(".");
    await job.patch();
    expect(job.aborted).toBe(true);
  });
  expect(house.gitlab.job(ID).states).not.toContain("success");
});

test("nor does one to a relay that was started anew, and knows no token yet", async () => {
  await house.begun(ID);
  await house.stopRelay();
  await house.startRelay();
  house.stage.service.beyond.add(ID);
  await house.runner.send("PUT", PATH, lastWord("wrong"), TYPE);
  await eventually(async () => {
    const answer = await house.runner.send("PUT", PATH, touch, TYPE);
    expect(answer).toMatchObject({ status: 200, jobStatus: "failed" });
  });
  expect(house.gitlab.job(ID).states).not.toContain("success");
});

test("nor does one with the job's own token that GitLab reads as something else", async () => {
  const job = await house.begun(ID);
  house.stage.service.beyond.add(ID);
  house.gitlab.misbehaviours = [
    { on: /^PUT/, act: (_, response) => Boolean(response.writeHead(200).end()) },
  ];
  const query = `${PATH}?state=running`;
  expect(await house.runner.send("PUT", query, lastWord(TOKEN), TYPE)).toMatchObject({
    status: 200,
  });
  await eventually(async () => {
    job.write(".");
    await job.patch();
    expect(job.aborted).toBe(true);
  });
});

test("whoever has not the job's token is not told in its runner's place", async () => {
  const { gitlab, runner, stage } = house;
  const job = await house.begun(ID);
  stage.service.beyond.add(ID);
  await eventually(() => expect(house.notices.join()).toContain("1 of them beyond"));
  gitlab.misbehaviours = [
    { on: /^PATCH/, act: (_, response) => Boolean(response.writeHead(202).end()) },
  ];
  const headers = ["JOB-TOKEN", "wrong", "Content-Range", "0-0"];
  const patch = await runner.send("PATCH", `${PATH}/trace`, "x", headers);
  expect(patch).toMatchObject({ status: 202, jobStatus: "" });
  expect(await job.touch()).toMatchObject({ status: 200, jobStatus: "failed" });
});

test.each([
  ["no info", ""],
  ["numbers that no number type holds", ',"info":{"a":12345678901234567890,"b":1e999,"c":1.10}'],
])(
  "a first PUT with %s is refused, and GitLab hears the rest of it as it was",
  async (_name, info) => {
    const { gitlab, runner, stage } = house;
    stage.service.beyond.add(ID);
    await house.taken(ID);
    const body = `{"token":"${TOKEN}","state":"running"${info}}`;
    const answer = await runner.send("PUT", PATH, body, ["Expect", "100-continue", ...TYPE]);
    expect(answer).toMatchObject({ status: 200, jobStatus: "failed" });
    expect(gitlab.job(ID)).toMatchObject({ status: "failed", failureReason: "ci_quota_exceeded" });
    const sent = gitlab.asked.at(-1)?.body.toString();
    expect(sent).toContain(info.slice(1));
    expect(sent).toContain(`"token":"${TOKEN}"`);
  },
);

test("a first PUT with its token in a header alone is refused too", async () => {
  const { gitlab, runner, stage } = house;
  stage.service.beyond.add(ID);
  await house.taken(ID);
  const headers = ["JOB-TOKEN", TOKEN, ...TYPE];
  const answer = await runner.send("PUT", PATH, '{"state":"running"}', headers);
  expect(answer).toMatchObject({ status: 200, jobStatus: "failed" });
  expect(gitlab.job(ID)).toMatchObject({ status: "failed" });
});

test("neither a token nor its hash is in a file", async () => {
  await house.begun(ID);
  const folder = join(house.stage.host.state, "live", "jobs");
  const kept = readFileSync(join(folder, `${ID}.json`), "utf8");
  expect(Object.keys(JSON.parse(kept)).toSorted()).toEqual(
    [
      "begun",
      "boot",
      "id",
      "project_id",
      "root_namespace_id",
      "runner",
      "timeout_ms",
      "told",
    ].concat(["unique_id", "v"]),
  );
});
