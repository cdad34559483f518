/** The real service is asked for everything that the OpenAPI document says it answers. */
import { afterAll, beforeAll, expect, test, vi } from "vitest";
import { z } from "zod";
import { formatVkey } from "../../src/core/note.ts";
import { TYP } from "../../src/core/report.ts";
import { ROUTES, type Route } from "../../src/http/access.ts";
import { OPERATIONS } from "../../src/http/operations.ts";
import { kidOf, NOW } from "../core/history.ts";
import { claimOf, reported, sign } from "../flow/door.ts";
import { testKey } from "../signing.ts";
import { askOfControl } from "./answers-of-control.ts";
import { askOfCredit } from "./answers-of-credit.ts";
import { askOfExports } from "./answers-of-exports.ts";
import { askOfFeed } from "./answers-of-feed.ts";
import { askOfHolds } from "./answers-of-holds.ts";
import { askOfMonths } from "./answers-of-months.ts";
import { askOfOversight } from "./answers-of-oversight.ts";
import { askOfReconciliation } from "./answers-of-reconciliation.ts";
import { bodyOf, mediaTypeOf, routeOf, shapeOf } from "./documented.ts";
import { heartbeatOf } from "./heartbeat.ts";
import {
  type Answered,
  ask,
  cardBody,
  type House,
  newLog,
  openHouse,
  type Request,
  rotationOf,
  SINCE_NOVEMBER,
  sealedSize,
} from "./house.ts";
import { document, operation } from "./openapi.ts";

let house: House;
let token: string;
let log: string;
const answers: [route: Route, answered: Answered][] = [];

async function tell(asked: string, request: Request = {}): Promise<Answered> {
  const [method = "", path = ""] = asked.split(" ");
  const route = routeOf(method, path);
  if (route === undefined) throw new Error(`no route for ${asked}`);
  const answered = await ask(house, asked, { token, ...request });
  answers.push([route, answered]);
  return answered;
}

beforeAll(async () => {
  house = await openHouse();
  ({ log, token } = await newLog(house, "openapi", 1, SINCE_NOVEMBER));
  await keys();
  await money();
  await reports();
  await askOfHolds(tell, { log });
  await quota();
  await askOfOversight(tell, { house, log });
  await askOfControl(tell, { log, now: house.clock.time });
  await askOfCredit(tell, { log });
  await askOfMonths(tell, { log });
  await askOfExports(tell, { log });
  await askOfFeed(tell, { log, size: await sealedSize(house, log) });
  answers.push(...(await askOfReconciliation(tell, { house, log })));
  await logs();
  for (const path of [
    "/livez",
    "/readyz",
    "/openapi.json",
    "/metrics",
    "/v1/logs",
    `/v1/logs/${log}/keys`,
    `/v1/logs/${log}/conflicts`,
    `/v1/logs/${log}/holds`,
    `/v1/usage?log=${log}`,
    `/v1/usage?log=${log}&fresh=true&group=namespace,project,runner,machine_type,tracking,usage_month`,
    `/v1/gitlab/ci_minutes_usage?log=${log}&namespace=7`,
    `/v1/gitlab/ci_dedicated_hosted_runner_usage?log=${log}&grouping=PER_ROOT_NAMESPACE`,
    `/v1/gitlab/ci_dedicated_hosted_runner_usage?log=${log}&year=2026&billing_month=2026-11-01`,
    `/v1/jobs/${log}/1`,
    `/v1/jobs/${log}/7`,
  ]) {
    await tell(`GET ${path}`);
  }
  await tell(`GET /v1/usage?log=${log}&fresh=true`, { headers: { accept: "text/csv" } });
  await unready();
});

afterAll(() => house.close());

/** A key is claimed, rotated and revoked, each as often as an answer differs. */
async function keys(): Promise<void> {
  const line = { effective_from: NOW, machine_type: "small", runner_type: "instance" };
  const runner = { ...line, runner_id: "9", tracking: "hosted", uuid: "another" };
  const json = { log, namespaces: [], runners: [runner] };
  const secret = String((await tell("POST /v1/enrolments", { json })).json["token"]);
  const claim = { token: secret, claim: claimOf(2, log, secret) };
  const rotation = { rotation: rotationOf(2, 3, log, "0"), claim: claimOf(3, log, secret) };
  for (const _ of [201, 200]) await tell("POST /v1/enrolments/claim", { json: claim });
  for (const _ of [201, 200]) await tell("POST /v1/keys/rotate", { json: rotation });
  const end = { log, last_trusted_counter: "0", reason: "over" };
  await tell(`POST /v1/keys/${kidOf(3)}/revoke`, { json: end });
}

async function money(): Promise<void> {
  const body = { unique_id: "second", platform: "dotcom", billing_from: NOW };
  for (const _ of [201, 409]) await tell("POST /v1/logs", { json: body });
  const from = { effective_from: NOW, source: "gitlab" };
  const share = { project_id: "51", class: "gitlab_contribution", ...from };
  const limit = { beyond: "stop", monthly_minutes: "10001", source_version: "1", ...from };
  const later = { ...cardBody(), effective_from: "2027-01-01T00:00:00.000Z" };
  for (const [path, json] of [
    ["rate_cards", later],
    ["rate_cards", cardBody()],
    ["rate_cards", { ...later, runner_factors: { small: "1/0" } }],
    ["project_classes", share],
  ] as const) {
    await tell(`POST /v1/logs/${log}/${path}`, { json });
  }
  for (const source_version of ["1", "1", "0"]) {
    await tell(`PUT /v1/quotas/${log}/7`, { json: { ...limit, source_version } });
    const pack = { namespace_id: "7", pack_id: "1", minutes: "5000", source: "portal" };
    await tell("POST /v1/packs", { json: { log, ...pack, source_version } });
    const account = { account_id: "A-1", source: "portal", source_version };
    for (const path of ["", "/7"]) {
      await tell(`PUT /v1/accounts/${log}${path}`, { json: account });
    }
  }
}

async function reports(): Promise<void> {
  const share = { id: "7", project_id: "51", root_namespace_id: "7" };
  for (const jose of [
    reported(1, log, { counter: "1", job: { id: "1" } }),
    reported(1, log, { counter: "2", job: { id: "1" } }),
    reported(1, log, { counter: "3", job: { id: "1" }, usage: { duration_ms: "1" } }),
    reported(1, log, { counter: "4", job: { id: "4" }, uuid: "nobody's" }),
    reported(1, log, { counter: "5", job: share }),
    reported(99, log),
    sign(1, TYP.report, "{}"),
    "no report",
  ]) {
    await tell("POST /v1/reports", { jose });
  }
  const again = reported(1, log, { counter: "1", job: { id: "1" } });
  await tell("POST /v1/reports", { json: { reports: [again, again, "none"] } });
  await tell("POST /v1/reports", { json: { reports: ["none"] } });
  await tell("POST /v1/reports", { json: { reports: [], more: true } });
  const marks = { clock_offset_ms: "0", files: [], malformed: "0", rejected: "0", spool: "0" };
  const jose = sign(1, TYP.attestation, { ...marks, counter: "5", issued_at: NOW, log });
  await tell("POST /v1/attestations", { jose });
}

/** One job that may start, one that may not, and one that runs; each asked in every way. */
async function quota(): Promise<void> {
  const jobs = ["8", "9"].map((namespace_id) => ({
    job_id: namespace_id,
    namespace_id,
    ask: "start",
  }));
  await tell("POST /v1/decisions", { json: { log, jobs } });
  await tell("POST /v1/decisions", { json: { log, jobs: [] } });
  await tell(`POST /v1/logs/${log}/never_ran`, {
    json: { jobs: [{ job_id: "8", namespace_id: "8" }] },
  });
  const jose = heartbeatOf(1, log, [{ id: "70" }]);
  await tell("POST /v1/heartbeats", { jose });
  await tell("POST /v1/heartbeats", { json: { heartbeats: [jose, "none"] } });
  await tell("POST /v1/heartbeats", { jose: "none" });
  for (const path of ["8", "8/stops", "8/notifications"])
    await tell(`GET /v1/quotas/${log}/${path}`);
}

/** What is served of the log, by everything that is sealed. */
async function logs(): Promise<void> {
  const publish = { json: { public: true } };
  for (const _ of [201, 200]) await tell(`POST /v1/logs/${log}/visibility`, publish);
  const vkey = formatVkey(`minutebook.localhost/${log}`, testKey(34).publicKey);
  const next = { json: { purpose: "checkpoint", state: "added", vkey } };
  for (const _ of [201, 200]) await tell(`POST /v1/logs/${log}/log_keys`, next);
  const size = await sealedSize(house, log);
  const given = await tell("POST /v1/reports", { json: { reports: [reported(1, log)] } });
  const { receipt, results } = given.json;
  await tell("POST /v1/receipts/prove", { json: { receipt, results, since: "1" } });
  await tell("POST /v1/receipts/prove", { json: { receipt, results: [] } });
  for (const path of [
    `/v1/logs/${log}/log_keys`,
    `/logs/${log}/checkpoint`,
    `/logs/${log}/checkpoint/${size}`,
    `/logs/${log}/checkpoint/${size}0`,
    `/logs/${log}/tile/0/000.p/${size}`,
    `/logs/${log}/tile/entries/000.p/${size}`,
    `/logs/${log}/tile/0/000.p/0`,
    `/logs/${log}/tile/0/000`,
    `/v1/logs/${log}/checkpoints`,
    `/v1/logs/${log}/checkpoints?limit=1`,
    `/v1/logs/${log}/proofs?index=1&size=${size}`,
    `/v1/logs/${log}/proofs?index=${size}`,
    `/v1/logs/${log}/consistency?from=1`,
    `/v1/logs/${log}/consistency?from=0`,
  ]) {
    await tell(`GET ${path}`);
  }
}

/** A schema that the process was not tested with. */
async function unready(): Promise<void> {
  const { owner } = house.database;
  await owner`
    delete from migrations where version = (select max(version) from schema_migrations)`;
  await owner`
    delete from schema_migrations where version = (select max(version) from schema_migrations)`;
  const isUnready = async (): Promise<void> => {
    const { status } = await ask(house, "GET /readyz");
    if (status !== 503) throw new Error("still ready");
  };
  await vi.waitFor(isUnready, { timeout: 20_000 });
  await tell("GET /readyz");
}

const SUCCESSES = ROUTES.flatMap((route) =>
  Object.entries(OPERATIONS[route].success).flatMap(([status, content]) =>
    Object.keys(content).map((type) => [route, Number(status), type] as const),
  ),
);

function answersBy(route: Route, status: number, type: string): Answered[] {
  const ofRoute = answers.filter(([answering]) => answering === route);
  return ofRoute
    .map(([, answered]) => answered)
    .filter((answered) => answered.status === status && mediaTypeOf(answered) === type);
}

test.each(SUCCESSES)("%s really answers %d %s, to the last member as documented", (...success) => {
  const found = answersBy(...success);
  expect(found.length).toBeGreaterThan(0);
  for (const answered of found) {
    expect(shapeOf(success[0], answered).safeParse(bodyOf(answered)).error).toBeUndefined();
  }
});

/** The published schema itself, read back; zod looks for definitions in another place. */
function published(schema: object): z.ZodType {
  const $defs = document.components.schemas;
  const text = JSON.stringify({ ...schema, $defs });
  const local = JSON.parse(text.replaceAll("#/components/schemas/", "#/$defs/"));
  return z.fromJSONSchema(local, { registry: z.registry() });
}

test.each(ROUTES)("%s: what it answered fits the schemas that the document publishes", (route) => {
  const ofRoute = answers.filter(([answering]) => answering === route);
  expect(ofRoute.length).toBeGreaterThan(0);
  for (const [, answered] of ofRoute) {
    const response = operation(route).responses[answered.status];
    const media = Object.entries(response?.content ?? {});
    const [, found] = media.find(([type]) => type === mediaTypeOf(answered)) ?? [];
    if (found === undefined) throw new Error(`${answered.status} is not in the document`);
    expect(published(found.schema).safeParse(bodyOf(answered)).error).toBeUndefined();
  }
});

/** The value with one member too many, at each place that can have one. */
function* swollen(value: unknown): Generator<unknown> {
  if (typeof value !== "object" || value === null) return;
  if (!Array.isArray(value)) yield { ...value, surplus: "x" };
  for (const [name, part] of Object.entries(value)) {
    for (const more of swollen(part)) {
      yield Array.isArray(value)
        ? value.map((item, i) => (String(i) === name ? more : item))
        : { ...value, [name]: more };
    }
  }
}

test("no answer could hold a member more, at any depth, and still be as documented", () => {
  for (const [route, answered] of answers) {
    // Its members are paths and names, which are free.
    if (route === "GET /openapi.json" || mediaTypeOf(answered).startsWith("text/")) continue;
    const shape = shapeOf(route, answered);
    for (const more of swollen(bodyOf(answered))) {
      expect(shape.safeParse(more).success, JSON.stringify(more)).toBe(false);
    }
  }
});
