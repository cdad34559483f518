import { afterAll, beforeAll, expect, test } from "vitest";
import { ROLES } from "../../src/core/control.ts";
import type { Role } from "../../src/flow/access/grant.ts";
import { ACCESS, ROUTES, type Route } from "../../src/http/access.ts";
import { OPERATIONS } from "../../src/http/operations.ts";
import { kidOf } from "../core/history.ts";
import { reported } from "../flow/door.ts";
import {
  ask,
  closedMonth,
  everybody,
  type House,
  newLog,
  openHouse,
  SINCE_NOVEMBER,
  sealedSize,
  tokenOf,
} from "./house.ts";
import { madeExport } from "./made-export.ts";
import { PROPOSAL, RUN } from "./standing.ts";

/** Of which nothing was used, so that nothing is needed to close it. */
const MONTH = "2026-10-01";

let house: House;
let mine: string;
let other: string;
/** Of the newest checkpoint of the log, when nothing is written any more. */
let sizes: Record<string, string>;

beforeAll(async () => {
  house = await openHouse();
  mine = (await newLog(house, "mine", 1, SINCE_NOVEMBER)).log;
  other = (await newLog(house, "other", 2, SINCE_NOVEMBER)).log;
  for (const [seed, log] of [
    [1, mine],
    [2, other],
  ] as const) {
    const { status } = await ask(house, "POST /v1/reports", { jose: reported(seed, log) });
    if (status !== 201) throw new Error(`a report was answered ${status}`);
    const { index } = await house.appender.control(log, "proposal", () => PROPOSAL);
    proposals[log] = String(index);
    const run = await house.appender.control(log, "credit_run", () => RUN);
    runs[log] = String(run.index);
    await closedMonth(house, log, MONTH);
    exports[log] = (await madeExport(house, log)).id;
  }
  sizes = {
    [mine]: await sealedSize(house, mine),
    [other]: await sealedSize(house, other),
  };
});

afterAll(() => house.close());

/** Of each log's only proposal, and of its only credit run. */
const proposals: Record<string, string> = {};
const runs: Record<string, string> = {};
/** Made of each. */
const exports: Record<string, string> = {};

/** The route with a path that names things that are there. */
function concrete(route: Route, log = mine): string {
  const size = sizes[log] ?? "1";
  const path = route
    .replace(":log", log)
    .replace(":id", "1")
    .replace(":export", exports[log] ?? "0".repeat(32))
    .replace("credit_runs/:index", `credit_runs/${runs[log] ?? "1"}`)
    .replace(":index", proposals[log] ?? "1")
    .replace(":kid", kidOf(1))
    .replace(":kind", "project")
    .replace(":month", MONTH)
    .replace(":namespace", "7")
    .replace(":size", size)
    .replace(":path", `0/000.p/${size}`);
  return `${path}${QUERIES[route]?.replace("LOG", log) ?? ""}`;
}

const QUERIES: Partial<Record<Route, string>> = {
  "GET /v1/usage": "?log=LOG",
  "GET /v1/gitlab/ci_minutes_usage": "?log=LOG&namespace=7",
  "GET /v1/gitlab/ci_dedicated_hosted_runner_usage": "?log=LOG",
  "GET /v1/proposals": "?log=LOG",
  "GET /v1/exports": "?log=LOG",
  "GET /v1/feed": "?log=LOG",
  "GET /v1/principals": "?log=LOG",
  "GET /v1/access/:log": "?day=2026-11-20",
  "GET /v1/logs/:log/proofs": "?index=0",
  "GET /v1/logs/:log/consistency": "?from=1",
  "GET /v1/logs/:log/completeness": "?day=2026-11-20",
};

/** What stands as it was asked for, and is said so again. */
const DONE: readonly Route[] = [
  "POST /v1/months/:log/:month/finish",
  "POST /v1/logs/:log/credit_runs/:index/apply",
  "DELETE /v1/names/:log/:kind/:id",
];

/** Of a request whose body says nothing, from somebody who may: it was looked at. */
function looked(route: Route): number {
  if (route.startsWith("GET") || DONE.includes(route)) return 200;
  return OPERATIONS[route].body === undefined ? 409 : 415;
}

const isOpen = (route: Route) =>
  ACCESS[route].some((audience) => audience === "runner" || audience === "anyone");

const isNamed = (route: Route) =>
  route.includes(":log") || QUERIES[route]?.includes("LOG") === true;

/** What is not written down of whoever has a token: all that is not is in this list. */
const UNRECORDED: readonly Route[] = [
  "GET /metrics",
  "POST /v1/decisions",
  "GET /logs/:log/checkpoint",
  "GET /logs/:log/checkpoint/:size",
  "GET /logs/:log/tile/:path", // bundles of entries are (test/http/access-log.test.ts)
  "GET /v1/logs/:log/checkpoints",
  "GET /v1/logs/:log/consistency",
  "GET /v1/logs/:log/proofs",
];

/** The newest row of the access log, by which it was asked. */
async function recorded(): Promise<Record<string, unknown> | undefined> {
  const [row] = await house.database.reader`
    select method || ' ' || route as route, roles, status, code from access_log
    where log in ('', ${mine})
    order by at desc, number desc limit 1`;
  return row;
}

test.each(ROUTES)(
  "%s is answered to exactly the roles of the table, on their own log",
  async (route) => {
    for (const role of ROLES) {
      const token = await tokenOf([role], isNamed(route) ? { logs: [mine] } : {});
      const answer = await ask(house, concrete(route), { token });
      const allowed = isOpen(route) || (ACCESS[route] as readonly string[]).includes(role);
      expect([role, answer.status]).toEqual([role, allowed ? looked(route) : 404]);
      if (!isOpen(route) && !UNRECORDED.includes(route)) {
        const why = { status: answer.status, code: answer.json["code"] ?? null };
        const row = { route, roles: allowed ? role : "", ...why };
        expect(await recorded(), "it is written down before it is answered").toEqual(row);
      }
      if (isOpen(route) || !isNamed(route)) continue;
      const foreign = await ask(house, concrete(route, other), { token });
      expect([role, foreign.status, foreign.json["code"]]).toEqual([role, 404, "not-found"]);
    }
  },
);

const rolesOf = (route: Route): Role[] =>
  ACCESS[route].filter((audience): audience is Role => ROLES.includes(audience as Role));

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

const OF_A_LOG = ROUTES.filter((route) => isNamed(route) && !isOpen(route));

test.each(OF_A_LOG)(
  "another tenant's log is 404 at %s, exactly like a missing one",
  async (route) => {
    const token = await tokenOf(rolesOf(route), { logs: [mine] });
    const missing = await ask(house, concrete(route, "f".repeat(32)), { token });
    const foreign = await ask(house, concrete(route, other), { token });
    const own = await ask(house, concrete(route), { token });
    expect(foreign.status).toBe(404);
    expect(foreign.text).toBe(missing.text);
    expect(own.status).toBe(looked(route));
  },
);

/** What names its log in the body. */
const BODIES: Partial<Record<Route, object>> = {
  "POST /v1/enrolments": { namespaces: [], runners: [] },
  "POST /v1/keys/:kid/revoke": { last_trusted_counter: "0", reason: "r" },
  "POST /v1/packs": {
    ...{ minutes: "1", namespace_id: "7", pack_id: "1", source: "s", source_version: "1" },
  },
  "POST /v1/decisions": { jobs: [{ job_id: "1", namespace_id: "7", ask: "start" }] },
  "POST /v1/exports": { name: "entries", format: "csv" },
  "POST /v1/feed/ack": { consumer: "portal", months: [], up_to: "1" },
  "POST /v1/proposals": {
    ...{ action: "visibility", content: { public: true }, reason: "r", ticket: "1" },
  },
  "POST /v1/principals/:id/bar": { reason: "r" },
  "POST /v1/principals/:id/unbar": { reason: "r" },
};
/** What is about no single log. */
const LOGLESS: readonly Route[] = ["GET /metrics", "GET /v1/logs", "POST /v1/logs"];

test("every route that is not open says where its log is: in path, query or body, or that it has none", () => {
  const unsaid = ROUTES.filter((route) => !isOpen(route) && !isNamed(route));
  expect(unsaid.toSorted()).toEqual([...Object.keys(BODIES), ...LOGLESS].sort());
});

test.each(Object.keys(BODIES) as Route[])(
  "a body that names another tenant's log is 404 at %s, exactly like one that names a missing one",
  async (route) => {
    for (const role of rolesOf(route)) {
      const token = await tokenOf([role], { logs: [mine] });
      const runners = [{ ...RUNNER_LINE }];
      const body = (log: string) =>
        route === "POST /v1/enrolments"
          ? { ...BODIES[route], log, runners }
          : { ...BODIES[route], log };
      const foreign = await ask(house, concrete(route), { token, json: body(other) });
      const missing = await ask(house, concrete(route), { token, json: body("f".repeat(32)) });
      expect([role, foreign.status, foreign.text]).toEqual([role, 404, missing.text]);
    }
  },
);

test("nobody but all logs' operator makes one", async () => {
  const token = await tokenOf(["operator"], { logs: [mine] });
  const create = {
    unique_id: "third",
    platform: "dotcom",
    billing_from: "2026-01-01T00:00:00.000Z",
  };
  expect((await ask(house, "POST /v1/logs", { token, json: create })).status).toBe(404);
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
