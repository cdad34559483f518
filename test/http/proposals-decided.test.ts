/** Four eyes over HTTP: what was decided is written, and just that, and once. */
import { afterAll, beforeAll, expect, test } from "vitest";
import { instantText } from "../../src/core/unit.ts";
import { expire } from "../../src/flow/control/expire.ts";
import { ofKind } from "../flow/door.ts";
import { BILLING_FROM, coded, FourEyes } from "./four-eyes.ts";
import { ask, cardBody, everybody } from "./house.ts";

let desk: FourEyes;

beforeAll(async () => {
  desk = await FourEyes.open();
});

afterAll(() => desk.house.close());

const sizeOf = async () => (await desk.entries()).length;

test("what an approval let in is that entry and no other, and once", async () => {
  const { approval } = (await desk.approve(await desk.opened())).json;
  const written = ofKind(await desk.entries(), "quota").at(-1);
  if (written === undefined) throw new Error("no limit");
  const put = (body: typeof written.body) =>
    desk.house.appender.control(desk.log, "quota", () => body);
  const { source_version } = desk.limit();
  const effective_from = instantText(Date.parse(written.at) + 1);
  const newer = { ...written.body, source_version: String(source_version), effective_from };
  await expect(put(newer)).rejects.toThrow("approval-required");
  await expect(put({ ...newer, approval: "0" })).rejects.toThrow("approval-required");
  await expect(put(written.body)).rejects.toThrow("stale-source-version");
  const { by, salt } = written.body;
  const body = { approval: String(approval), by, grants: await desk.grants(), salt };
  const mapping = desk.house.appender.control(desk.log, "role_mapping", () => body);
  await expect(mapping).rejects.toThrow("approval-required");
});

test("the same visibility is decided twice by two approvals, and by one only once", async () => {
  const content = { public: false };
  const opened = await desk.opened({ action: "visibility", content });
  const answer = await desk.approve(opened);
  expect(answer.status).toBe(201);
  const written = ofKind(await desk.entries(), "visibility").at(-1);
  if (written === undefined) throw new Error("no visibility");
  const again = desk.house.appender.control(desk.log, "visibility", () => written.body);
  await expect(again).rejects.toThrow("already-decided");
});

test("a proposal that was refused, or taken back by who made it, cannot be approved", async () => {
  const refused = await desk.opened();
  const json = { reason: "not agreed" };
  expect(
    (await ask(desk.house, `POST ${desk.path(refused)}/refusal`, { token: desk.approver, json }))
      .status,
  ).toBe(201);
  expect(coded(await desk.approve(refused))).toEqual([409, "proposal-ended"]);
  expect(await desk.state(refused)).toBe("refused");

  const withdrawn = await desk.opened();
  const stranger = await desk.issuer.bearer("5", ["finance"]);
  const foreign = await ask(desk.house, `POST ${desk.path(withdrawn)}/withdrawal`, {
    token: stranger,
    json,
  });
  expect(coded(foreign)).toEqual([404, "not-found"]);
  const own = await ask(desk.house, `POST ${desk.path(withdrawn)}/withdrawal`, {
    token: desk.proposer,
    json,
  });
  expect(own.status).toBe(201);
  expect(coded(await desk.approve(withdrawn))).toEqual([409, "proposal-ended"]);
  const again = await ask(desk.house, `POST ${desk.path(withdrawn)}/withdrawal`, {
    token: desk.proposer,
    json,
  });
  expect(coded(again)).toEqual([409, "proposal-ended"]);
  const ends = ofKind(await desk.entries(), "proposal_ended");
  expect(ends.slice(-2).map(({ body }) => [body.outcome, body.reason])).toEqual([
    ["refused", "not agreed"],
    ["withdrawn", "not agreed"],
  ]);
});

test("what nobody decided in time is over, and the log says so once", async () => {
  const opened = await desk.opened({ expires_in_s: 60 });
  desk.house.clock.time += 60_000;
  expect(coded(await desk.approve(opened))).toEqual([410, "proposal-expired"]);
  expect(await desk.state(opened)).toBe("expired");
  const random = (bytes: number) => new Uint8Array(bytes);
  const { clock, appender, database } = desk.house;
  const options = { clock, appender, random, sql: database.writer };
  const failures: unknown[] = [];
  const rounds = [0, 1].map(() => expire(options, (error) => failures.push(error)));
  const ended = await Promise.all(rounds);
  expect([ended.reduce((sum, each) => sum + each), failures]).toEqual([1, []]);
  expect(coded(await desk.approve(opened))).toEqual([410, "proposal-expired"]);
  const [end] = ofKind(await desk.entries(), "proposal_ended").slice(-1);
  expect(end?.body).toMatchObject({ outcome: "expired", proposal: opened.index });
});

test("what cannot be written is refused when it is proposed, by the rule that it breaks", async () => {
  const stale = { content: desk.limit({ source_version: "0" }) };
  expect(coded(await desk.propose(stale))).toEqual([409, "stale-source-version"]);
  const odd = { content: desk.limit({ beyond: "for ever" }) };
  const answer = await desk.propose(odd);
  const beyond = ["content.beyond"];
  expect(answer).toMatchObject({ status: 400, json: { members: beyond, not_allowed: beyond } });
  const numbers = { content: desk.limit({ grace_minutes: 5 }) };
  expect(coded(await desk.propose(numbers))).toEqual([400, "invalid-request"]);
  const address = await desk.issuer.bearer("anna@example.com", ["finance"]);
  expect(coded(await desk.propose({}, address))).toEqual([422, "token-says-too-much"]);
});

test("a request that does not fit is told which members are missing, unknown or not allowed", async () => {
  const { grace_minutes: _, ...content } = desk.limit({ approval: "1", cap: "much" });
  expect((await desk.propose({ content })).json).toEqual({
    ...{ type: expect.any(String), title: expect.any(String), status: 400 },
    code: "invalid-request",
    members: ["content.grace_minutes", "content.approval", "content.cap"],
    missing: ["content.grace_minutes"],
    unknown: ["content.approval"],
    not_allowed: ["content.cap"],
  });
  const { json } = await desk.propose({ colour: "red", ticket: undefined });
  expect(json).toMatchObject({ missing: ["ticket"], unknown: ["colour"] });
  expect(json).not.toHaveProperty("not_allowed");
  const list = { token: desk.proposer, json: [] };
  const whole = (await ask(desk.house, "POST /v1/proposals", list)).json;
  expect([whole["code"], "members" in whole]).toEqual(["invalid-request", false]);
});

test("what can no longer be written is refused by its own rule; nothing is written and the proposal stays open", async () => {
  const effective_from = instantText(desk.house.clock.time + 1_000);
  const opened = await desk.opened({ content: desk.limit({ effective_from }) });
  desk.house.clock.time += 2_000;
  const size = await sizeOf();
  expect(coded(await desk.approve(opened))).toEqual([422, "starts-in-the-past"]);
  expect([await sizeOf(), await desk.state(opened)]).toEqual([size, "open"]);
});

test("under dual control no person changes anything alone, in whosoever's name", async () => {
  const token = await desk.issuer.bearer("1", ["finance", "operator", "provisioner"]);
  const runner = {
    ...{ effective_from: BILLING_FROM, machine_type: "small", runner_id: "9" },
    ...{ runner_type: "instance", tracking: "hosted", uuid: "billed" },
  };
  const { namespace_id, ...changed } = desk.limit({ source: "gitlab" });
  const alone: [string, object][] = [
    [`POST /v1/logs/${desk.log}/rate_cards`, cardBody()],
    [`POST /v1/logs/${desk.log}/visibility`, { public: true }],
    [`PUT /v1/quotas/${desk.log}/${namespace_id}`, changed],
    ["POST /v1/enrolments", { log: desk.log, namespaces: [], runners: [runner] }],
  ];
  await desk.systems(["gitlab"]);
  for (const [asked, json] of alone) {
    const answer = await ask(desk.house, asked, { token, json });
    expect([asked, ...coded(answer)]).toEqual([asked, 409, "approval-required"]);
  }
  const own = { ...runner, runner_type: "group", tracking: "self_managed", uuid: "own" };
  const enrol = { log: desk.log, namespaces: ["7"], runners: [own] };
  expect((await ask(desk.house, "POST /v1/enrolments", { token, json: enrol })).status).toBe(201);
  const larger = {
    ...enrol,
    runners: [{ ...own, machine_type: "large", effective_from: "2027-01-01T00:00:00.000Z" }],
  };
  const answer = await ask(desk.house, "POST /v1/enrolments", { token, json: larger });
  expect(coded(answer)).toEqual([409, "approval-required"]);
});

test("a system that the mode names changes limits without a person, and one that it does not name none", async () => {
  await desk.systems(["gitlab"]);
  const token = await desk.issuer.bearer("9", ["platform"]);
  const set = async (source: string) => {
    const { namespace_id, ...json } = desk.limit({ source });
    return await ask(desk.house, `PUT /v1/quotas/${desk.log}/${namespace_id}`, { token, json });
  };
  expect((await set("gitlab")).status).toBe(201);
  expect(coded(await set("another"))).toEqual([409, "approval-required"]);
  await desk.systems([]);
  expect(coded(await set("gitlab"))).toEqual([409, "approval-required"]);
});

test("a runner that is billed is enrolled directly behind its approval, which saw what it is and its factor", async () => {
  await desk.decided("rate_card", { ...cardBody(), runner_factors: { "*": "2", large: "3" } });
  const content = {
    claim_until: "2027-01-01T00:00:00.000Z",
    namespaces: [],
    runners: [
      {
        ...{ effective_from: BILLING_FROM, machine_type: "small", runner_id: "1" },
        ...{ runner_type: "instance", tracking: "hosted", uuid: "hosted" },
      },
    ],
    token_sha256: "A".repeat(43).concat("="),
  };
  const opened = await desk.opened({ action: "enrolment", content });
  const answer = await desk.approve(opened);
  expect(answer.status).toBe(201);
  const { approval, index } = answer.json;
  expect(BigInt(String(index))).toBe(BigInt(String(approval)) + 1n);
  const shown = await desk.show(opened);
  expect(shown.json).toMatchObject({ entry: index });
  const of = { machine_type: "small", runner_id: "1", tracking: "hosted", uuid: "hosted" };
  const effect = { needed: true, runners: [{ ...of, factor: "2" }] };
  expect(JSON.parse(String(shown.json["effect"]))).toEqual(effect);
  const enrolled = ofKind(await desk.entries(), "enrolment").at(-1);
  if (enrolled === undefined) throw new Error("not enrolled");
  const runners = enrolled.body.runners.map((runner) => ({ ...runner, uuid: "another" }));
  const body = { ...enrolled.body, runners, token_sha256: "B".repeat(42).concat("A=") };
  const again = desk.house.appender.control(desk.log, "enrolment", () => body);
  await expect(again).rejects.toThrow("approval-required");
});

test("roles change by two persons, and never so that nobody could approve", async () => {
  const grants = await desk.grants();
  const none = { grants: grants.filter(({ role }) => role !== "approver") };
  expect(coded(await desk.propose({ action: "role_mapping", content: none }))).toEqual([
    409,
    "approver-needed",
  ]);
  const fewer = { grants: grants.filter(({ role }) => role !== "witness") };
  const opened = await desk.opened({ action: "role_mapping", content: fewer });
  const shown = await desk.show(opened);
  expect(JSON.parse(String(shown.json["effect"]))).toEqual({
    stands: "1",
    taken: grants.filter(({ role }) => role === "witness"),
  });
  expect((await desk.approve(opened)).status).toBe(201);
  expect(await desk.grants()).toEqual(fewer.grants);
});

test("under single control what is asked for is done at once, until two persons are asked for", async () => {
  const token = await everybody();
  const json = {
    unique_id: "single",
    platform: "dotcom",
    billing_from: BILLING_FROM,
  };
  const single = String((await ask(desk.house, "POST /v1/logs", { token, json })).json["log"]);
  const done = await desk.propose({ log: single }, token);
  expect(done).toMatchObject({ status: 201, json: { state: "done" } });
  const dual = {
    log: single,
    action: "mode",
    content: { billing_from: json.billing_from, control: "dual", sources: [] },
  };
  expect(coded(await desk.propose(dual, token))).toEqual([409, "approver-needed"]);
  const mapping = {
    log: single,
    action: "role_mapping",
    content: { grants: await desk.grants() },
  };
  expect((await desk.propose(mapping, token)).json["state"]).toBe("done");
  expect((await desk.propose(dual, token)).json["state"]).toBe("done");
  const open = await desk.propose({ log: single }, token);
  expect(open).toMatchObject({ status: 201, json: { state: "open" } });
  expect(
    coded(
      await ask(desk.house, `POST /v1/logs/${single}/visibility`, {
        token,
        json: { public: true },
      }),
    ),
  ).toEqual([409, "approval-required"]);
});

test("proposals are listed newest first, by their state", async () => {
  const opened = await desk.opened();
  const listed = async (query: string) => {
    const { json } = await ask(desk.house, `GET /v1/proposals?log=${desk.log}${query}`, {
      token: desk.approver,
    });
    return json["proposals"] as { index: string; state: string }[];
  };
  const [newest] = await listed("");
  expect(newest).toMatchObject({ index: opened.index, state: "open", nonce: opened.nonce });
  for (const state of ["open", "approved", "refused", "withdrawn", "expired"]) {
    const found = await listed(`&state=${state}`);
    expect([state, new Set(found.map((each) => each.state))]).toEqual([state, new Set([state])]);
  }
  const before = await listed(`&before=${opened.index}`);
  expect(before.some(({ index }) => index === opened.index)).toBe(false);
  const missing = await desk.show({ index: "0" });
  expect(coded(missing)).toEqual([404, "not-found"]);
});
