/** That the second person is one, whom the service can hear, and who has seen what happens. */
import { afterAll, beforeAll, expect, test } from "vitest";
import type { Role } from "../../src/flow/access/grant.ts";
import { coded, FourEyes } from "./four-eyes.ts";
import { ask } from "./house.ts";

let desk: FourEyes;
beforeAll(async () => {
  desk = await FourEyes.open();
});
afterAll(() => desk.house.close());

test("who decides about money is no system, whatever else their token says", async () => {
  await desk.systems(["gitlab"]);
  const { namespace_id: _, ...limit } = desk.limit({ source: "gitlab" });
  const { log } = desk;
  const paid = { account_id: "a", source: "gitlab", source_version: "1" };
  const bought = { minutes: "1", namespace_id: "7", pack_id: "p", source: "gitlab" };
  const said = { class: "community", effective_from: "2027-01-01T00:00:00.000Z", project_id: "5" };
  const asked = [
    [`PUT /v1/quotas/${log}/7`, limit],
    ["POST /v1/packs", { log, ...bought, source_version: "1" }],
    [`PUT /v1/accounts/${log}/7`, paid],
    [`PUT /v1/accounts/${log}`, paid],
    [`POST /v1/logs/${log}/project_classes`, { ...said, source: "gitlab" }],
  ] as const;
  for (const role of ["finance", "approver", "operator"] as const) {
    const token = await desk.issuer.bearer("8", ["platform", role]);
    for (const [route, json] of asked) {
      const answer = await ask(desk.house, route, { token, json });
      expect(coded(answer)).toEqual([409, "approval-required"]);
    }
  }
  const token = await desk.issuer.bearer("9", ["platform", "auditor"]);
  for (const [route, json] of asked) {
    expect((await ask(desk.house, route, { token, json })).status).toBe(201);
  }
  await desk.systems([]);
});

test("who once decided about money is no system by a token that says less", async () => {
  await desk.systems(["gitlab"]);
  const asked = async (roles: readonly Role[]) => {
    const token = await desk.issuer.bearer("10", roles);
    const { namespace_id: _, ...json } = desk.limit({ source: "gitlab" });
    return coded(await ask(desk.house, `PUT /v1/quotas/${desk.log}/71`, { token, json }));
  };
  const entries = async () => (await desk.entries()).length;
  const before = await entries();
  expect(await asked(["platform", "finance"])).toEqual([409, "approval-required"]);
  // Twice: what the register last heard of them is the lesser token.
  for (const _ of [1, 2]) expect(await asked(["platform"])).toEqual([409, "approval-required"]);
  // In one turn: the register hears of both at once.
  await Promise.all([asked(["platform", "approver"]), asked(["platform"])]);
  const [known] = await desk.house.database.reader<{ roles: string }[]>`
    select roles from principals where log = ${desk.log} and subject = '10'`;
  expect([known?.roles, await entries()]).toEqual(["approver,finance,platform", before]);
  await desk.systems([]);
});

test("an approver whom this service cannot verify is none", async () => {
  const grants = await desk.grants();
  const away = grants.map((grant) => {
    return grant.role === "approver" ? { ...grant, issuer: "https://nobody.example" } : grant;
  });
  const answer = await desk.propose({ action: "role_mapping", content: { grants: away } });
  expect(coded(answer)).toEqual([409, "approver-needed"]);
});

test.each([
  ["email", "finance"],
  ["name", "Anna Example"],
  ["preferred_username", "anna"],
  ["groups", "anna@example.com"],
])("a mapping by %s, here %s, comes onto no log", async (claim, value) => {
  const [standing, size] = [await desk.grants(), (await desk.entries()).length];
  const named = { claim, issuer: desk.issuer.name, namespaces: "*", role: "auditor", value };
  const content = { grants: [...standing, named] };
  expect(coded(await desk.propose({ action: "role_mapping", content }))).toEqual([
    400,
    "invalid-request",
  ]);
  expect((await desk.entries()).length).toBe(size);
});

test("what would take another thing's place than the approver was shown is not approved", async () => {
  const grants = await desk.grants();
  const without = (role: string) => ({ grants: grants.filter((grant) => grant.role !== role) });
  const shown = await desk.opened({ action: "role_mapping", content: without("auditor") });
  const [limit, same] = [
    await desk.opened({ content: desk.limit({ namespace_id: "70" }) }),
    await desk.opened({ content: desk.limit({ namespace_id: "70" }) }),
  ];
  await desk.decided("role_mapping", without("viewer"));
  expect(coded(await desk.approve(shown))).toEqual([409, "proposal-outdated"]);
  expect(await desk.state(shown)).toBe("open");
  expect(await desk.grants()).toEqual(without("viewer").grants);
  expect((await desk.approve(limit)).status).toBe(201);
  expect(coded(await desk.approve(same))).toEqual([409, "proposal-outdated"]);
  await desk.decided("role_mapping", { grants });
});

test("what a month lacks is looked for while others write: the log's head is not waited for", async () => {
  const { log, house } = desk;
  const closing = (month: string) => desk.propose({ action: "month_closing", content: { month } });
  await house.database.superuser.begin(async (tx) => {
    await tx`select from heads where log = ${log} for update`;
    expect(coded(await closing("2031-01-01"))).toEqual([409, "month-not-ready"]);
    const now = house.clock.time;
    house.clock.time = Date.parse("2026-12-01T00:00:00.000Z");
    await desk.signIn();
    expect(coded(await closing("2026-11-01"))).toEqual([409, "month-not-ready"]);
    house.clock.time = now;
  });
});
