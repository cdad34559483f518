/** What the service lets in of whatever is asked for, judged by the auditor: none is refused by one alone. */
import fc from "fast-check";
import { afterAll, beforeAll, expect, test } from "vitest";
import { exitOf } from "../../audit/print.ts";
import { ACTIONS, type Action } from "../../src/core/control.ts";
import { encodeEntry } from "../../src/core/entry.ts";
import { leafHash } from "../../src/core/hash.ts";
import { expire } from "../../src/flow/control/expire.ts";
import { auditFiles, filesOf, vkey } from "../audit/archive.ts";
import { SALT, TestLog } from "../audit/log.ts";
import { RUNNER } from "../core/history.ts";
import { reported } from "../flow/door.ts";
import { coded, FourEyes } from "./four-eyes.ts";
import { ask } from "./house.ts";

let desk: FourEyes;
beforeAll(async () => {
  desk = await FourEyes.open();
});
afterAll(() => desk.house.close());

async function expectProven(): Promise<void> {
  const log = new TestLog(desk.log);
  const entries = (await desk.entries()).map(encodeEntry);
  log.entries.splice(0, 1, ...entries);
  log.leaves.splice(0, 1, ...entries.map((bytes) => leafHash(bytes)));
  const result = await auditFiles(filesOf(log), { log: desk.log, vkeys: [vkey(desk.log)] });
  expect([exitOf(result), result.findings.listed]).toEqual([0, []]);
}

test("nobody refuses what they proposed themselves, and what is refused all the same is a withdrawal", async () => {
  const token = await desk.issuer.bearer("9", ["finance", "approver"]);
  const path = desk.path(await desk.opened({}, token));
  const said = { token, json: { reason: "mine" } };
  const refused = await ask(desk.house, `POST ${path}/refusal`, said);
  expect(coded(refused)).toEqual([403, "same-person"]);
  expect((await ask(desk.house, `POST ${path}/withdrawal`, said)).status).toBe(201);
  await expectProven();
});

test("a proposal is open until the millisecond at which it expires, and then it is over for all", async () => {
  const opened = await desk.opened({ expires_in_s: 60 });
  const last = await desk.opened({ expires_in_s: 60 });
  desk.house.clock.time += 59_999;
  expect((await desk.approve(last)).status).toBe(201);
  desk.house.clock.time += 1;
  expect(coded(await desk.approve(opened))).toEqual([410, "proposal-expired"]);
  const { clock, appender, database } = desk.house;
  const random = (bytes: number) => new Uint8Array(bytes);
  await expire({ clock, appender, random, sql: database.writer }, (error) => {
    throw error;
  });
  expect((await desk.entries()).at(-1)).toMatchObject({
    at: new Date(clock.time).toISOString(),
    body: { outcome: "expired", proposal: opened.index },
  });
  await expectProven();
});

test("a log that cannot be written keeps no other's proposals waiting to be over", async () => {
  const opened = await desk.opened({ expires_in_s: 60 });
  desk.house.clock.time += 60_000;
  const unwritable = "f".repeat(32);
  const { clock, database, appender } = desk.house;
  await database.superuser`
    insert into proposals (log, index, action, person, expires_at)
    select ${unwritable}, n, 'quota', 'p_1', '2026-01-01' from generate_series(1, 250) as n`;
  const random = (bytes: number) => new Uint8Array(bytes);
  const failed: string[] = [];
  const options = { clock, appender, random, sql: database.writer };
  expect(await expire(options, (_, log) => failed.push(log))).toBe(1);
  expect(failed).toEqual([unwritable]);
  expect(await desk.state(opened)).toBe("expired");
});

test("a log has a thousand open proposals at most", async () => {
  const [before, { database }] = [desk.log, desk.house];
  desk.log = await desk.newLog("flooded");
  await database.superuser`
    insert into proposals (log, index, action, person, expires_at)
    select ${desk.log}, n, 'quota', 'p_1', '2027-01-01' from generate_series(1001, 1999) as n`;
  const last = await desk.opened();
  expect(coded(await desk.propose())).toEqual([409, "proposals-open"]);
  const said = { token: desk.proposer, json: { reason: "mine" } };
  expect((await ask(desk.house, `POST ${desk.path(last)}/withdrawal`, said)).status).toBe(201);
  await desk.opened();
  desk.log = before;
});

test("a review is of days that have come", async () => {
  const token = await desk.issuer.bearer("8", ["operator"]);
  const path = `POST /v1/logs/${desk.log}/access_reviews`;
  // Who asks is known from their first request on.
  await ask(desk.house, `GET /v1/principals?log=${desk.log}`, { token });
  const json = { from: "2026-10-01", to: "2027-03-31", keep: [], remove: [] };
  const { json: asked } = await ask(desk.house, path, { token, json });
  const answer = await ask(desk.house, path, { token, json: { ...json, keep: asked["members"] } });
  expect(answer).toMatchObject({ status: 400, json: { members: ["to"] } });
});

test("a break that is none, or is shown by what does not stand, is refused when its end is proposed", async () => {
  const token = await desk.issuer.bearer("5", ["platform"]);
  const count = { day: "2026-11-18", kind: "quota", source: "plan", stated: "5" };
  await ask(desk.house, `POST /v1/logs/${desk.log}/source_counts`, { token, json: count });
  const opened = (await desk.entries()).find(({ kind }) => kind === "break");
  const usual = { break: String(opened?.index), evidence: "", outcome: "accepted" };
  const propose = async (change: object) => {
    const content = { ...usual, reason: "seen", ticket: "OPS-1", ...change };
    return coded(await desk.propose({ action: "break_resolved", content }));
  };
  expect(await propose({ break: "424242" })).toEqual([404, "not-found"]);
  expect(await propose({ break: "0" })).toEqual([404, "not-found"]);
  expect(await propose({ evidence: "999999" })).toEqual([404, "not-found"]);
  expect(await propose({ outcome: "healed" })).toEqual([400, "invalid-request"]);
  await desk.decided("break_resolved", {
    ...usual,
    reason: "seen",
    ticket: "OPS-1",
    evidence: "0",
  });
  expect(await propose({})).toEqual([409, "already-decided"]);
  await expectProven();
});

test("under dual control no difference is gone by an entry that is about something else, whoever writes it", async () => {
  const { appender } = desk.house;
  const about = { fingerprint: `${"A".repeat(42)}E=`, job_id: "1", runner_id: "700", usage: "" };
  const { index } = await appender.control(desk.log, "break", () => ({
    ...{ ...about, code: "duration", detail: "10 h", difference_ms: "36000000", kid: "" },
    ...{ month: "2026-10-01", namespace_id: "7", salt: SALT, tracking: "hosted" },
  }));
  const healed = appender.control(desk.log, "break_resolved", () => ({
    ...{ approval: "", break: String(index), by: "service", evidence: "0", outcome: "healed" },
    ...{ reason: "came", salt: SALT, ticket: "none" },
  }));
  await expect(healed).rejects.toMatchObject({ code: "invalid-request" });
});

/** Nearly always what can be good. */
const mostly = (good: string, ...bad: string[]): fc.Arbitrary<string> =>
  fc.oneof({ weight: 12, arbitrary: fc.constant(good) }, fc.constantFrom(...bad));
const few = fc.constantFrom("0", "1", "2", "7", "10", "999999");
const none = fc.constantFrom("", "0", "3", "9", "12", "999999");
const text = fc.constantFrom("a", "crm", "minutebook/credit_run");
const month = fc.constantFrom("2026-01-01", "2026-10-01", "2026-11-01", "2026-12-01");
const instant = fc.constantFrom("2026-01-01T00:00:00.000Z", "2027-01-01T00:00:00.000Z");
const amount = fc.constantFrom("-1.000000", "1.000000", "-60000.000000", "0.000000", "5.5");
const source = { source: text, source_version: fc.nat(99).map(String) };
const cause = { reason: text, ticket: text };
const key = { effective_from: instant };
const factors = fc.constantFrom({}, { small: "1" }, { "*": "1/2" }, { small: "1/0" });

/** What is asked for, of nearly the right shape. */
const CONTENT: Readonly<Record<Action, fc.Arbitrary<object>>> = {
  account: fc.record(
    {
      account_id: text,
      namespace_id: fc.constantFrom("", "7"),
      subscription_id: text,
      ...source,
      ...key,
    },
    { requiredKeys: ["account_id", "namespace_id", "subscription_id", "source", "source_version"] },
  ),
  adjustment: fc.record({
    ...{
      reason: fc.constant("late"),
      ticket: fc.constant("OPS-1"),
      billing_month: mostly("2026-11-01", "2026-12-01"),
      credit_run: mostly("", "3"),
    },
    first_line: mostly("0", "1"),
    lines: fc.array(
      fc.record({
        ...{ amount: mostly("-1.000000", "1.000000", "-60001.000000", "0.000000", "5.5") },
        ...{ entry: fc.constantFrom("", "11", "3"), namespace_id: mostly("7", "1") },
        ...{ project_id: mostly("50", "", "9"), reverses: mostly("", "12/0") },
        usage_month: mostly("2026-11-01", "2026-10-01", "2026-12-01"),
      }),
      { minLength: 1, maxLength: 2 },
    ),
  }),
  break_resolved: fc.record({
    ...{ ...cause, break: few, evidence: none },
    outcome: fc.constantFrom("healed", "accepted", "corrected"),
  }),
  conflict_resolved: fc.record({
    ...{ ...cause, conflict: few, outcome: fc.constantFrom("stands", "corrected") },
  }),
  credit_run: fc.record({
    ...{ ...cause, form: fc.constantFrom("credit", "zero_rate"), lines: few, reverses: none },
    lines_sha256: fc.constant("A".repeat(43).concat("=")),
    ...{ selection: fc.constantFrom("{}", '{"x":"y"}'), total: amount },
  }),
  enrolment: fc.record({
    ...{ claim_until: instant, namespaces: fc.constantFrom([], ["7"]) },
    runners: fc.constantFrom([RUNNER], [{ ...RUNNER, uuid: "own", tracking: "self_managed" }], []),
    token_sha256: fc.constantFrom("A".repeat(43).concat("="), "B"),
  }),
  hold_resolved: fc.record({
    ...{ ...cause, hold: few, outcome: fc.constantFrom("released", "rejected") },
  }),
  log_key: fc.record({ purpose: text, state: text, vkey: text }),
  mode: fc.record({
    billing_from: instant,
    control: fc.constantFrom("single", "dual"),
    sources: fc.array(text, { maxLength: 2 }),
  }),
  month_closing: fc.record({ month }),
  month_closing_withdrawn: fc.record({ closing: few }),
  pack: fc.record({
    ...{ expires_in: month, minutes: few, namespace_id: few, pack_id: text, purchased_in: month },
    ...source,
  }),
  project_class: fc.record(
    { class: text, project_id: few, source: text, ...key },
    { requiredKeys: ["class", "project_id", "source"] },
  ),
  quota: fc.record(
    {
      ...{ beyond: fc.constantFrom("stop", "bill"), cap: none, grace_minutes: few },
      ...{ monthly_minutes: few, namespace_id: few, ...source, ...key },
    },
    {
      requiredKeys: [
        ...["beyond", "cap", "grace_minutes", "monthly_minutes", "namespace_id"],
        ...["source", "source_version"],
      ] as ("beyond" | "cap")[],
    },
  ),
  rate_card: fc.record(
    {
      ...{ not_billable: fc.constantFrom([], ["runner_system_failure"]), project_factors: factors },
      ...{ runner_factors: factors, tracking: fc.constantFrom("hosted", "self_managed"), ...key },
      source: text,
    },
    { requiredKeys: ["not_billable", "project_factors", "runner_factors", "source", "tracking"] },
  ),
  role_mapping: fc.constantFrom({ grants: [] }),
  visibility: fc.record({ public: fc.boolean() }),
};

test("whatever of each action is proposed and approved, the auditor finds nothing in what was let in", async () => {
  desk.log = await desk.newLog("whatever");
  await desk.agent(1);
  await desk.decided("rate_card", {
    ...{ not_billable: [], project_factors: {}, runner_factors: { "*": "1" }, tracking: "hosted" },
    source: "gitlab",
    effective_from: "2026-01-01T00:00:00.000Z",
  });
  const jws = reported(1, desk.log);
  expect((await ask(desk.house, "POST /v1/reports", { json: { reports: [jws] } })).status).toBe(
    200,
  );

  const taken = new Map<Action, number>();
  for (const action of ACTIONS) {
    for (const content of fc.sample(CONTENT[action], { numRuns: 16, seed: 11 })) {
      const proposed = await desk.propose({ action, content });
      expect(proposed.status).toBeLessThan(500);
      if (proposed.status !== 201) continue;
      const { index, nonce } = proposed.json;
      const opened = { index: String(index), nonce: String(nonce) };
      const approved = await desk.approve(opened);
      // What could be written when it was asked for can be when it is approved right then.
      expect({ action, content, status: approved.status, text: approved.text }).toMatchObject({
        status: 201,
      });
      taken.set(action, (taken.get(action) ?? 0) + 1);
    }
  }
  await expectProven();
  for (const action of ["account", "adjustment", "pack", "project_class", "quota"] as const) {
    expect([action, taken.get(action) ?? 0]).not.toEqual([action, 0]);
  }
});
