import { afterAll, beforeAll, expect, test } from "vitest";
import { ROLES } from "../../src/core/control.ts";
import type { Role } from "../../src/flow/access/grant.ts";
import { ACCESS, ROUTES, type Route } from "../../src/http/access.ts";
import { kidOf } from "../core/history.ts";
import { reported } from "../flow/door.ts";
import { ask, everybody, type House, newLog, openHouse, sealedSize, tokenOf } from "./house.ts";

let house: House;
let mine: string;
let other: string;
/** Of the newest checkpoint of the log, when nothing is written any more. */
let sizes: Record<string, string>;

beforeAll(async () => {
  house = await openHouse();
  mine = (await newLog(house, "mine", 1)).log;
  other = (await newLog(house, "other", 2)).log;
  for (const [seed, log] of [
    [1, mine],
    [2, other],
  ] as const) {
    const { status } = await ask(house, "POST /v1/reports", { jose: reported(seed, log) });
    if (status !== 201) throw new Error(`a report was answered ${status}`);
  }
  sizes = {
    [mine]: await sealedSize(house, mine),
    [other]: await sealedSize(house, other),
  };
});

afterAll(() => house.close());

/** The route with a path that names things that are there. */
function concrete(route: Route, log = mine): string {
  const size = sizes[log] ?? "1";
  const path = route
    .replace(":log", log)
    .replace(":id", "1")
    .replace(":kid", kidOf(1))
    .replace(":namespace", "7")
    .replace(":size", size)
    .replace(":path", `0/000.p/${size}`);
  return `${path}${QUERIES[route]?.replace("LOG", log) ?? ""}`;
}

const QUERIES: Partial<Record<Route, string>> = {
  "GET /v1/usage": "?log=LOG",
  "GET /v1/logs/:log/proofs": "?index=0",
  "GET /v1/logs/:log/consistency": "?from=1",
};

/** Of a request whose body says nothing, from somebody who may: it was looked at. */
function looked(route: Route): number {
  return route.startsWith("GET") ? 200 : 415;
}

const isOpen = (route: Route) =>
  ACCESS[route].some((audience) => audience === "runner" || audience === "anyone");

test.each(ROUTES)("%s is answered to exactly the roles of the table", async (route) => {
  for (const role of ROLES) {
    const answer = await ask(house, concrete(route), { token: await tokenOf([role]) });
    const allowed = isOpen(route) || (ACCESS[route] as readonly string[]).includes(role);
    expect([role, answer.status]).toEqual([role, allowed ? looked(route) : 404]);
  }
});

const isPublished = (route: Route) => ACCESS[route].includes("public");

test.each(ROUTES.filter((route) => !isPublished(route)))(
  "%s asks whoever has no token for one, unless it is open",
  async (route) => {
    const answer = await ask(house, concrete(route));
    expect(answer.status).toBe(isOpen(route) ? looked(route) : 401);
    const code = isOpen(route) ? answer.json["code"] : "unauthenticated";
    expect(answer.json["code"]).toBe(code);
  },
);

test.each(ROUTES.filter(isPublished))(
  "%s is missing for whoever has no token, and a token that does not hold is said to be so",
  async (route) => {
    const answer = await ask(house, concrete(route));
    const missing = await ask(house, concrete(route, "f".repeat(32)));
    expect([answer.status, answer.text]).toEqual([404, missing.text]);
    const refused = await ask(house, concrete(route), { token: "expired" });
    expect([refused.status, refused.json["code"]]).toEqual([401, "unauthenticated"]);
  },
);

test("every role has a route", () => {
  const used = new Set<string>(ROUTES.flatMap((route) => [...ACCESS[route]]));
  expect(ROLES.filter((role) => !used.has(role))).toEqual([]);
});

test("a role that is forbidden and a path that is missing are answered by the same bytes", async () => {
  const token = await tokenOf(["platform"]);
  const forbidden = await ask(house, `GET /v1/logs/${mine}/keys`, { token });
  const missing = await ask(house, "GET /v1/nothing", { token });
  expect(forbidden.text).toBe(missing.text);
  expect(forbidden.status).toBe(missing.status);
});

const OF_A_LOG = ROUTES.filter((route) => route.includes(":log") || route === "GET /v1/usage");

test.each(OF_A_LOG)(
  "another tenant's log is 404 at %s, exactly like a missing one",
  async (route) => {
    const roles = ACCESS[route].filter((audience): audience is Role =>
      ROLES.includes(audience as Role),
    );
    const token = await tokenOf(roles, { logs: [mine] });
    const missing = await ask(house, concrete(route, "f".repeat(32)), { token });
    const foreign = await ask(house, concrete(route, other), { token });
    const own = await ask(house, concrete(route), { token });
    expect(foreign.status).toBe(404);
    expect(foreign.text).toBe(missing.text);
    expect(own.status).toBe(looked(route));
  },
);

test("bodies that name another tenant's log are 404, and nobody but all logs' operator makes one", async () => {
  const token = await tokenOf(["operator"], { logs: [mine] });
  const enrolment = { log: other, namespaces: [], runners: [] };
  const revocation = { log: other, last_trusted_counter: "0", reason: "r" };
  const create = {
    unique_id: "third",
    platform: "dotcom",
    billing_from: "2026-01-01T00:00:00.000Z",
  };
  const revoke = `POST /v1/keys/${kidOf(2)}/revoke`;
  expect((await ask(house, revoke, { token, json: revocation })).status).toBe(404);
  expect((await ask(house, "POST /v1/logs", { token, json: create })).status).toBe(404);
  const runners = [{ ...RUNNER_LINE }];
  const enrol = await ask(house, "POST /v1/enrolments", { token, json: { ...enrolment, runners } });
  expect(enrol.status).toBe(404);
});

const RUNNER_LINE = {
  effective_from: "2026-01-01T00:00:00.000Z",
  machine_type: "small",
  runner_id: "1",
  runner_type: "instance",
  tracking: "hosted",
  uuid: "another",
};

test("a list of logs holds the caller's own and no other", async () => {
  const token = await tokenOf(["operator"], { logs: [mine] });
  const { json } = await ask(house, "GET /v1/logs", { token });
  expect(json["logs"]).toMatchObject([{ log: mine }]);
  const { json: all } = await ask(house, "GET /v1/logs", { token: await everybody() });
  expect(all["logs"]).toHaveLength(2);
});

test("a viewer sees the usage and the builds of their namespaces only", async () => {
  const seen = await tokenOf(["viewer"], { logs: [mine], namespaces: ["7"] });
  const blind = await tokenOf(["viewer"], { logs: [mine], namespaces: ["8"] });
  const usage = concrete("GET /v1/usage").concat("&fresh=true&group=namespace");
  const job = concrete("GET /v1/jobs/:log/:id");
  expect((await ask(house, usage, { token: seen })).json["rows"]).toHaveLength(1);
  expect((await ask(house, usage, { token: blind })).json["rows"]).toHaveLength(0);
  expect((await ask(house, `${usage}&namespace=7`, { token: blind })).json["rows"]).toHaveLength(0);
  expect((await ask(house, job, { token: seen })).status).toBe(200);
  const hidden = await ask(house, job, { token: blind });
  const missing = await ask(house, job.replace(/1$/, "999"), { token: seen });
  expect(hidden.status).toBe(404);
  expect(hidden.text).toBe(missing.text);
});
