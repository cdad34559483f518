/** What a relay believes of requests that anybody can send who reaches it. */
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, expect, test } from "vitest";
import { claimOf } from "../../../src/agent/relay/claim.ts";
import { readUpdate, type Update } from "../../../src/agent/relay/exchange.ts";
import { Register, type RelayedJob } from "../../../src/agent/relay/register.ts";

const JSON_TYPE = ["Content-Type", "application/json"];

let folder: string;
let now: number;
let register: Register;

beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), "minutebook-claim-"));
  now = 1_000;
  register = new Register({ folder, boot: "boot", clock: () => now, onNotice: () => undefined });
});

afterEach(() => rmSync(folder, { recursive: true, force: true }));

/** @param token undefined as after a restart */
function running(token: string | undefined): RelayedJob {
  const ids = { id: "42", uniqueId: "instance", runner: "r", projectId: "1", rootNamespaceId: "2" };
  const hash = token === undefined ? undefined : said("running", token).token;
  register.give({ ...ids, timeoutMs: undefined, token: hash }, "s_1");
  register.begin("42");
  const job = register.get("42");
  if (job === undefined) throw new Error("no job");
  return job;
}

function said(state: string, token: string, headers = JSON_TYPE): Update {
  return readUpdate("/api/v4/jobs/42", headers, Buffer.from(JSON.stringify({ state, token })));
}

function answer(update: Update, status: number, headers: string[] = []): void {
  const claim = claimOf(register, "42", update);
  claim?.answered({ status, headers });
  claim?.over();
}

test.each([undefined, "good"])(
  "a last word ends a job only when GitLab has taken it (the token known: %s)",
  (token) => {
    const job = running(token);
    for (const status of [400, 401, 403, 404, 409, 429, 500, 502]) {
      answer(said("success", "good"), status);
      expect(register.get("42")).toBe(job);
      expect(job).toMatchObject({ lastWords: 0, logAgain: false });
    }
    answer(said("success", "good"), 202);
    expect(register.get("42")).toBeUndefined();
  },
);

test("nothing is said of a job while a last word of it is under way, however many there are", () => {
  const job = running("good");
  const one = claimOf(register, "42", said("success", "good"));
  const two = claimOf(register, "42", said("success", "good"));
  one?.answered({ status: 503, headers: [] });
  one?.over();
  expect(job.lastWords).toBe(1);
  two?.over(); // it was never answered
  expect(job.lastWords).toBe(0);
});

test("after a 412 the runner sends its log again: nothing is said until it says that it runs", () => {
  const job = running("good");
  answer(said("success", "good"), 412);
  expect(job).toMatchObject({ lastWords: 0, logAgain: true });
  answer(said("running", "good"), 403);
  expect(job.logAgain).toBe(true);
  answer(said("running", "good"), 200);
  expect(job.logAgain).toBe(false);
});

test("GitLab's 403 ends a job where it says that the job has ended, and not where it says nothing", () => {
  const job = running("good");
  answer(said("running", "good"), 403);
  answer(said("running", "good"), 403, ["Job-Status", "running"]);
  expect(register.get("42")).toBe(job);
  answer(said("success", "good"), 403, ["Job-Status", "success"]);
  expect(register.get("42")).toBeUndefined();
});

test("requests with another token than the job's are believed nothing, whatever GitLab answers", () => {
  const job = running("good");
  for (const status of [200, 202, 403, 412]) {
    for (const state of ["success", "failed", "running", "pending", "none"]) {
      now += 1;
      answer(said(state, "bad"), status, ["Job-Status", "failed"]);
      answer(said(state, "bad", [...JSON_TYPE, "JOB-TOKEN", "good"]), status);
      answer(said(state, "good", [...JSON_TYPE, "JOB-TOKEN", "bad"]), status);
      answer({ state: "last", tokens: [], token: undefined }, status);
    }
  }
  expect(register.get("42")).toBe(job);
  expect(job).toMatchObject({ heardAt: 1_000, lastWords: 0, logAgain: false });
});

test("a runner is heard of by its job's token, or by what GitLab took of it, and by nothing else", () => {
  const known = running("good");
  now = 2_000;
  answer(said("running", "good"), 502);
  expect(known.heardAt).toBe(2_000);
  const unknown = running(undefined);
  now = 3_000;
  answer(said("running", "good"), 403);
  answer(said("running", "good"), 502);
  expect(unknown.heardAt).toBe(2_000);
  answer(said("running", "good"), 200);
  expect(unknown.heardAt).toBe(3_000);
});

test("a token is learnt from what GitLab took by it, where there is no doubt which it looked at", () => {
  const job = running(undefined);
  const path = "/api/v4/jobs/42";
  const body = Buffer.from('{"state":"running","token":"bad"}');
  const tokenless = Buffer.from('{"state":"running"}');
  answer(said("running", "bad"), 403);
  answer(said("running", "bad", [...JSON_TYPE, "JOB-TOKEN", "good"]), 200);
  answer(said("running", "bad", ["Content-Type", "application/x-www-form-urlencoded"]), 200);
  answer(readUpdate(`${path}?token=good`, JSON_TYPE, body), 200);
  answer(readUpdate(path, [...JSON_TYPE, "JOB-TOKEN", "bad"], tokenless), 200);
  answer({ state: "none", tokens: ["a log's"], token: undefined }, 202);
  expect(job.token).toBeUndefined();
  answer(said("running", "good"), 200);
  expect(job.token).toBe(said("running", "good").token);
  answer(said("success", "bad"), 200);
  expect(register.get("42")).toBe(job);
});

test.each<[string, string, string[], string]>([
  ["a query beside it", "?state=running", JSON_TYPE, '{"state":"success"}'],
  [
    "a form's type",
    "",
    ["Content-Type", "application/x-www-form-urlencoded"],
    '{"state":"success"}',
  ],
  ["no type", "", [], '{"state":"success"}'],
  ["two types", "", [...JSON_TYPE, "content-type", "text/plain"], '{"state":"success"}'],
  ["a coding", "", [...JSON_TYPE, "Content-Encoding", "br"], '{"state":"success"}'],
  ["two states", "", JSON_TYPE, '{"state":"success","state":"running"}'],
  ["no state", "", JSON_TYPE, "{}"],
  ["no JSON", "", JSON_TYPE, "{"],
  ["nothing in it", "", JSON_TYPE, ""],
])("a body with %s is no last word, as GitLab may read another", (_name, query, headers, body) => {
  const { state } = readUpdate(`/api/v4/jobs/42${query}`, headers, Buffer.from(body));
  expect(state).toBe("none");
});
