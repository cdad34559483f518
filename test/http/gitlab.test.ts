/** Usage as GitLab's own pages ask for it: GitLab's names, types and roundings, and our figures. */
import { afterAll, beforeAll, expect, test, vi } from "vitest";
import { minutebook } from "../command/terminal.ts";
import { reported } from "../flow/door.ts";
import {
  type Answered,
  ask,
  type House,
  newAgent,
  newLog,
  openHouse,
  sealedSize,
  tokenOf,
} from "./house.ts";

let house: House;
let log: string;
let token: string;

const usage = (duration_ms: string, finished_at: string) => {
  const started = new Date(Date.parse(finished_at) - Number(duration_ms)).toISOString();
  return { duration_ms, finished_at, started_at: started };
};
const NOVEMBER = "2026-11-10T12:00:00.000Z";
const OCTOBER = "2026-10-10T12:00:00.000Z";

beforeAll(async () => {
  house = await openHouse();
  ({ log, token } = await newLog(house, "shapes", 1));
  await newAgent(house, log, 2, { uuid: "own", tracking: "self_managed", runner_id: "701" });
  const own = { tracking: "self_managed", runner_factors: { "*": "1" }, project_factors: {} };
  const from = { effective_from: "2026-01-01T00:00:00.000Z", not_billable: [], source: "" };
  const json = { ...own, ...from };
  await ask(house, `POST /v1/logs/${log}/rate_cards`, { token, json });
  const builds = [
    ["7", "50", usage("119999", NOVEMBER)],
    ["7", "51", usage("59701", NOVEMBER)],
    ["8", "60", usage("3600000", NOVEMBER)],
    ["7", "50", usage("600000", OCTOBER)],
  ] as const;
  const reports = builds.map(([root_namespace_id, project_id, ran], at) => {
    const job = { id: String(at + 1), project_id, root_namespace_id };
    return reported(1, log, { counter: String(at + 1), job, usage: ran });
  });
  await ask(house, "POST /v1/reports", { json: { reports } });
  const jose = reported(2, log, { counter: "1", job: { id: "9" }, uuid: "own" });
  await ask(house, "POST /v1/reports", { jose });
  const names = [
    { kind: "namespace", id: "7", name: "Seven" },
    { kind: "project", id: "50", name: "fifty" },
  ];
  await ask(house, `PUT /v1/names/${log}`, { token, json: { names } });
  const size = await sealedSize(house, log);
  const folded = async () => {
    return (await ask(house, `GET /v1/usage?log=${log}`, { token })).json["as_of"] === size;
  };
  await vi.waitUntil(folded, { timeout: 20_000 });
});
afterAll(() => house.close());

const get = (path: string, as = token): Promise<Answered> =>
  ask(house, `GET /v1/gitlab/${path}`, { token: as });

test("ciMinutesUsage: months newest first with their projects, whole minutes towards zero of two decimals, whole seconds", async () => {
  const { json } = await get(`ci_minutes_usage?log=${log}&namespace=7`);
  const project = (id: string, name: string | null) => ({ id: `gid://gitlab/Project/${id}`, name });
  expect(json["data"]).toEqual({
    ciMinutesUsage: {
      nodes: [
        {
          ...{ month: "November", monthIso8601: "2026-11-01" },
          ...{ minutes: 3, sharedRunnersDuration: 179 },
          projects: {
            nodes: [
              // 1.99998 minutes are 2.00, and 0.995 are 1.00: two decimals first, as the column has them.
              {
                name: "fifty",
                minutes: 2,
                sharedRunnersDuration: 119,
                project: project("50", "fifty"),
              },
              { name: null, minutes: 1, sharedRunnersDuration: 59, project: project("51", null) },
            ],
          },
        },
        {
          ...{ month: "October", monthIso8601: "2026-10-01" },
          ...{ minutes: 10, sharedRunnersDuration: 600 },
          projects: {
            nodes: [
              {
                name: "fifty",
                minutes: 10,
                sharedRunnersDuration: 600,
                project: project("50", "fifty"),
              },
            ],
          },
        },
      ],
    },
  });
  const { json: used } = await ask(house, `GET /v1/usage?log=${log}`, { token });
  const { as_of, refreshed_at, sealed } = used;
  expect(json["extensions"]).toMatchObject({ log, as_of, refreshed_at, sealed });
  const one = await get(`ci_minutes_usage?log=${log}&namespace=7&date=2026-10-01`);
  expect(one.json).toMatchObject({
    data: { ciMinutesUsage: { nodes: [{ monthIso8601: "2026-10-01" }] } },
  });
});

test("ciDedicatedHostedRunnerUsage: the instance or each root namespace, by month, year and runner, of hosted runners alone", async () => {
  const nodes = async (search: string): Promise<unknown> => {
    const { json } = await get(`ci_dedicated_hosted_runner_usage?log=${log}${search}`);
    const data = json["data"] as { ciDedicatedHostedRunnerUsage: { nodes: unknown } };
    return data.ciDedicatedHostedRunnerUsage.nodes;
  };
  const november = { billingMonth: "November 2026", billingMonthIso8601: "2026-11-01" };
  expect(await nodes("&billing_month=2026-11-01")).toEqual([
    {
      ...november,
      ...{ computeMinutes: 62, durationSeconds: 3_779 },
      ...{ computeMinutesUsage: 62.995, durationMinutes: 62.9833, rootNamespace: null },
    },
  ]);
  expect(await nodes("&billing_month=2026-11-01&grouping=PER_ROOT_NAMESPACE")).toMatchObject([
    {
      ...november,
      computeMinutesUsage: 2.995,
      rootNamespace: { __typename: "Namespace", id: "gid://gitlab/Namespace/7", name: "Seven" },
    },
    { computeMinutes: 60, rootNamespace: { id: "gid://gitlab/Namespace/8", name: null } },
  ]);
  const months = [{ billingMonthIso8601: "2026-11-01" }, { billingMonthIso8601: "2026-10-01" }];
  for (const search of ["", "&year=2026", "&runner_id=700"]) {
    expect(await nodes(search)).toMatchObject(months);
  }
  for (const search of ["&year=2025", "&runner_id=701"]) expect(await nodes(search)).toEqual([]);
});

test("a viewer is told of their own namespaces, and finds others and the whole instance missing", async () => {
  const viewer = await tokenOf(["viewer"], { logs: [log], namespaces: ["7"] });
  const own = await get(`ci_minutes_usage?log=${log}&namespace=7`, viewer);
  expect(own.json["data"]).toEqual(
    (await get(`ci_minutes_usage?log=${log}&namespace=7`)).json["data"],
  );
  const others = [
    `ci_minutes_usage?log=${log}&namespace=8`,
    `ci_dedicated_hosted_runner_usage?log=${log}`,
  ];
  for (const path of others) expect((await get(path, viewer)).status).toBe(404);
});

test("minutebook tieout prints a month figure by figure, and ends with 3 as long as something is not there yet", async () => {
  const environment = { MINUTEBOOK_SERVER: house.url, MINUTEBOOK_TOKEN: token };
  const tieout = (month: string, ...more: string[]) =>
    minutebook(["tieout", "--log", log, "--month", month, ...more], environment);
  const open = await tieout("2026-11");
  expect([open.status, open.stderr]).toEqual([3, ""]);
  expect(open.stdout).toMatch(/^2026-11 is open, as of [0-9]+ entries\.\nfigure/);
  expect(open.stdout).toMatch(
    /\nnet_compute_ms +3839700\.000000 +log, ci_namespace_monthly_usages, ci_project_monthly_usages\n/,
  );
  expect(open.stdout).toMatch(
    /\nNot there yet: month_closed, .*\nSAME, as far as there is anything yet\n$/,
  );
  await house.database.owner`
    update usage_buckets set jobs = jobs + 1 where log = ${log} and project_id = 60`;
  const altered = await tieout("2026-11");
  expect(altered.status).toBe(1);
  expect(altered.stdout).toMatch(/\ndiffering_rows +usage_buckets +1 +log +0\n/);
  const document = JSON.parse((await tieout("2026-10", "--json")).stdout);
  expect(document).toMatchObject({ log, month: "2026-10-01", state: "open", differences: [] });
});

test("of the months that are counted at once none is a third: whoever else reads is not kept waiting", async () => {
  const { superuser } = house.database;
  const tieout = () => ask(house, `GET /v1/months/${log}/2026-11-01/tieout`, { token });
  const counted = await superuser.begin(async (tx) => {
    await tx`lock table usage_buckets in access exclusive mode`;
    const asked = [tieout(), tieout(), tieout()];
    const { status, json } = await Promise.race(asked);
    expect([status, json["code"]]).toEqual([503, "busy"]);
    return { asked };
  });
  const ended = await Promise.all(counted.asked);
  expect(ended.map(({ status }) => status).sort()).toEqual([200, 200, 503]);
  expect((await tieout()).status).toBe(200);
});
