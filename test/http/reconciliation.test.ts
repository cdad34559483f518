import { afterAll, beforeAll, expect, test, vi } from "vitest";
import { readConfig } from "../../src/config.ts";
import { instantText } from "../../src/core/unit.ts";
import { reported } from "../flow/door.ts";
import { ask, beside, everybody, type House, newLog, openHouse, tokenOf } from "./house.ts";

const SECRET = "a secret of one log";
const HOUR = 3_600_000;

let house: House;
let log: string;
let token: string;

beforeAll(async () => {
  house = await openHouse();
  ({ log, token } = await newLog(house, "reconciliation", 1));
  const { reconciliation } = readConfig({});
  const platform = { log, pull: undefined, webhookSecret: SECRET, capacity: new Map() };
  const told = { ...reconciliation, platforms: [platform] };
  service = await beside(house, undefined, { reconciliation: told });
});
afterAll(() => house.close());

let service: Awaited<ReturnType<typeof beside>>;

const at = (agoMs: number): string => instantText(house.clock.time - agoMs);

/** As GitLab sends it, with members that nobody reads. */
function event(job: object): object {
  return {
    object_kind: "build",
    ref: "main",
    build_id: 9007199254740993n.toString(),
    build_stage: "test",
    build_status: "success",
    build_created_at: "2026-11-20 10:00:00 UTC",
    build_started_at: "2026-11-20 10:00:00 UTC",
    build_finished_at: "2026-11-20 10:10:00 UTC",
    build_duration: 600.0001,
    build_queued_duration: 1.5,
    project_id: 50,
    runner: { id: 700, description: "shared", is_shared: true, tags: ["linux"] },
    user: { id: 1, name: "Root", email: "root@example.test" },
    commit: { message: "commit\nmessage" },
    ...job,
  };
}

async function hooked(
  body: string,
  headers: Record<string, string> = {},
  of = log,
): Promise<{ status: number; json: Record<string, unknown> }> {
  const response = await fetch(`${service.url}/webhooks/gitlab/${of}`, {
    method: "POST",
    headers: {
      "content-type": "application/json",
      "x-gitlab-event": "Job Hook",
      "x-gitlab-token": SECRET,
      ...headers,
    },
    body,
  });
  return { status: response.status, json: (await response.json()) as Record<string, unknown> };
}

/** A number in the JSON, though no JavaScript number has it. */
const text = (job: object): string =>
  JSON.stringify(event(job)).replace(/"build_id":"(\d+)"/, '"build_id":$1');

const stored = async () =>
  await house.database.reader`
    select job_id, started_at, finished_at, duration_ms, status, source, revision
    from platform_jobs where log = ${log} order by job_id`;

test("a job's event is kept once, to the last digit of its number and without a float in its duration", async () => {
  expect(await hooked(text({}))).toEqual({ status: 200, json: { log, kept: 1 } });
  expect((await hooked(text({}))).status).toBe(200);
  expect(await stored()).toMatchObject([
    {
      job_id: 9007199254740993n,
      finished_at: new Date("2026-11-20T10:10:00.000Z"),
      duration_ms: 600_000n,
      source: "webhook",
    },
  ]);
});

test("an event that comes late takes nothing back", async () => {
  const running = { build_status: "running", build_finished_at: null, build_duration: null };
  await hooked(text(running));
  expect(await stored()).toMatchObject([{ status: "success", duration_ms: 600_000n }]);
});

test("a job of nobody's runner, and another event than a job's, are taken and not kept", async () => {
  expect((await hooked(text({ runner: null }))).json).toEqual({ log, kept: 0 });
  expect((await hooked(text({ runner: { id: 99 } }))).json).toEqual({ log, kept: 0 });
  expect((await hooked("{}", { "x-gitlab-event": "Push Hook" })).json).toEqual({ log, kept: 0 });
});

test("a wrong secret, none, and a log without one are answered alike, and nothing of them is in the log", async () => {
  const answers = await Promise.all([
    hooked(text({}), { "x-gitlab-token": "another secret entirely" }),
    hooked(text({}), { "x-gitlab-token": "" }),
    hooked(text({}), {}, "f".repeat(32)),
    hooked(text({}), {}, "none"),
  ]);
  const unauthenticated = { status: 401, json: { code: "unauthenticated" } };
  for (const answered of answers) expect(answered).toMatchObject(unauthenticated);
  expect(house.logged.join()).not.toContain("another secret");
  expect(house.logged.join()).not.toContain(SECRET);
});

test("what is no event, too much, or no JSON is refused", async () => {
  expect((await hooked('{"object_kind":"build"}')).json).toMatchObject({ code: "invalid-request" });
  expect((await hooked("[".repeat(100_000))).json).toMatchObject({ code: "invalid-request" });
  expect((await hooked(" ".repeat(1_100_000))).json).toMatchObject({ code: "too-large" });
  const typed = await hooked(text({}), { "content-type": "text/plain" });
  expect(typed.json).toMatchObject({ code: "unsupported-media-type" });
});

const job = (job_id: string, more: object = {}): object => ({
  job_id,
  runner_id: "700",
  project_id: "50",
  status: "success",
  started_at: at(2 * HOUR),
  finished_at: at(HOUR),
  duration: "3600",
  ...more,
});
const uploads = `POST /v1/logs/LOG/platform_jobs`;
const uploaded = (json: object) => ask(service, uploads.replace("LOG", log), { token, json });

test("jobs are uploaded with how far they are all there, and only a runner of the log is covered", async () => {
  const answered = await uploaded({
    jobs: [job("1"), job("2"), job("3", { runner_id: "99" })],
    covered: [{ runner_id: "700", to: at(-HOUR) }],
  });
  expect(answered.json).toMatchObject({ kept: "2", covered: [expect.any(String)] });
  const again = await uploaded({ jobs: [job("1")], covered: [{ runner_id: "700", to: at(0) }] });
  expect(again.json).toMatchObject({ kept: "1", covered: [] });
  const foreign = await uploaded({ jobs: [], covered: [{ runner_id: "99", to: at(0) }] });
  expect(foreign.json["code"]).toBe("not-found");
});

test("a job on each line is the same, and nothing of too many or of a wrong one is kept", async () => {
  const lines = async (...jobs: object[]): Promise<Response> =>
    await fetch(`${service.url}/v1/logs/${log}/platform_jobs`, {
      method: "POST",
      headers: { authorization: `Bearer ${token}`, "content-type": "application/x-ndjson" },
      body: jobs.map((each) => JSON.stringify(each)).join("\n"),
    });
  expect(await (await lines(job("4"), job("5"))).json()).toMatchObject({ kept: "2" });
  expect((await lines(job("6"), { job_id: 7 })).status).toBe(400);
  expect((await lines(...Array.from({ length: 1_001 }, () => ({})))).status).toBe(413);
  expect((await uploaded({ jobs: [job("6", { duration: "1e999" })] })).status).toBe(400);
  expect((await stored()).map(({ job_id }) => job_id)).not.toContain(6n);
});

test("T16: what nobody reported is shown as awaiting, is no usage, and after the grace is a break with an owner and an age", async () => {
  const shown = async (path: string) =>
    (await ask(service, `GET /v1/logs/${log}/${path}`, { token })).json;
  const awaiting = async () => (await shown("awaiting"))["jobs"] as Record<string, string>[];
  await vi.waitUntil(async () => (await awaiting()).length === 5, { timeout: 20_000 });
  const jobs = await awaiting();
  expect(jobs).toMatchObject([
    { job_id: "1" },
    { job_id: "2" },
    { job_id: "4" },
    { job_id: "5" },
    { job_id: "9007199254740993" },
  ]);
  const usage = await ask(service, `GET /v1/usage?log=${log}&fresh=true`, { token });
  expect(usage.json["rows"]).toEqual([]);

  // One is reported in time; the grace of the others ends.
  const started = { started_at: at(2 * HOUR), finished_at: at(HOUR), duration_ms: "3600000" };
  await ask(service, "POST /v1/reports", {
    jose: reported(1, log, { job: { id: "1" }, usage: started }),
  });
  house.clock.time += 24 * HOUR;
  const breaks = async () => (await shown("breaks"))["breaks"] as Record<string, string>[];
  await vi.waitUntil(
    async () => (await breaks()).filter(({ code }) => code === "missing-report").length === 4,
    { timeout: 20_000 },
  );
  const [found] = (await breaks()).filter(({ job_id }) => job_id === "2");
  if (found === undefined) throw new Error("no break");
  house.clock.time += HOUR;
  const path = `POST /v1/logs/${log}/breaks/${found["index"]}/owner`;
  expect((await ask(service, path, { token, json: {} })).status).toBe(201);
  const owned = (await breaks()).find(({ job_id }) => job_id === "2");
  expect(owned).toMatchObject({
    owner: expect.stringMatching(/^p_/),
    age_ms: expect.stringMatching(/^36/),
  });
  const named = { owner: "Jane Doe" };
  expect((await ask(service, path, { token, json: named })).json["code"]).toBe("invalid-request");
  const none = `POST /v1/logs/${log}/breaks/0/owner`;
  expect((await ask(service, none, { token, json: {} })).json["code"]).toBe("not-found");

  // It comes after all.
  const late = { job: { id: "2" }, usage: started, counter: "2" };
  await ask(service, "POST /v1/reports", { jose: reported(1, log, late) });
  const ended = async () =>
    (await shown("breaks?state=ended"))["breaks"] as Record<string, unknown>[];
  await vi.waitUntil(async () => (await ended()).length > 0, { timeout: 20_000 });
  expect(await ended()).toMatchObject([
    { job_id: "2", resolution: { outcome: "healed", by: "service" } },
  ]);
  expect((await ask(service, path, { token, json: {} })).json["code"]).toBe("already-decided");
});

test("a day's completeness says by runner what was seen, reported, matched, awaited and covered", async () => {
  const day = at(26 * HOUR).slice(0, 10);
  const { json } = await ask(service, `GET /v1/logs/${log}/completeness?day=${day}`, { token });
  // A walk over any of its instants began before its end.
  expect(json["made_since"]).toBe(`${day}T00:00:00.000Z`);
  expect(json["runners"]).toMatchObject([
    {
      runner_id: "700",
      platform_jobs: "5",
      reported: "2",
      matched: "2",
      missing: "3",
      breaks: [{ code: "missing-report", open: "3", ended: "1" }],
      covered_through: expect.any(String),
    },
  ]);
  const wrong = await ask(service, `GET /v1/logs/${log}/completeness?day=2026-02-30`, { token });
  expect(wrong.json["code"]).toBe("invalid-request");
});

test("a viewer sees the awaited jobs of their own namespaces alone", async () => {
  await uploaded({ jobs: [job("70", { namespace_id: "7", finished_at: at(0) })] });
  const seenBy = async (namespace: string): Promise<unknown> => {
    const viewer = await tokenOf(["viewer"], { logs: [log], namespaces: [namespace] });
    return (await ask(service, `GET /v1/logs/${log}/awaiting`, { token: viewer })).json["jobs"];
  };
  await vi.waitUntil(async () => JSON.stringify(await seenBy("7")).includes('"70"'), {
    timeout: 20_000,
  });
  expect(await seenBy("8")).toEqual([]);
});

test("operators see how many breaks stand open, by code, and for how long", async () => {
  house.clock.time += 4 * 24 * HOUR;
  const metrics = async (): Promise<string> =>
    (await ask(service, "GET /metrics", { token: await everybody() })).text;
  const old = /minutebook_breaks_oldest_seconds\{code="missing-report"\} \d{6}/;
  await vi.waitUntil(async () => old.test(await metrics()), { timeout: 20_000 });
  expect(await metrics()).toMatch(/minutebook_breaks_open\{code="missing-report"\} [1-9]/);
  await vi.waitUntil(() => house.logged.join().includes("breaks stand open for too long"), {
    timeout: 20_000,
  });
});
