import { afterAll, beforeAll, expect, test } from "vitest";
import { decodeEntry } from "../../src/core/entry.ts";
import { leafHash } from "../../src/core/hash.ts";
import { decodeBase64, encodeBase64 } from "../../src/core/text.ts";
import { kidOf } from "../core/history.ts";
import { reported } from "../flow/door.ts";
import { type Answered, ask, type House, newAgent, newLog, openHouse } from "./house.ts";

let house: House;
let log: string;
let token: string;

const THIRD = { duration_ms: "100001", started_at: "2026-11-20T11:58:19.999Z" };

beforeAll(async () => {
  house = await openHouse();
  ({ log, token } = await newLog(house, "reader", 1));
  const limit = {
    beyond: "stop",
    effective_from: "2026-01-01T00:00:00.000Z",
    monthly_minutes: "10001",
    source: "gitlab",
    source_version: "1",
  };
  await ask(house, `PUT /v1/quotas/${log}/7`, { token, json: limit });
  const contribution = { ...CLASS, project_id: "52", class: "gitlab_contribution" };
  for (const json of [CLASS, contribution]) {
    await ask(house, `POST /v1/logs/${log}/project_classes`, { token, json });
  }
  await newAgent(house, log, 2, { uuid: "own", tracking: "self_managed", runner_id: "701" });
  const own = { tracking: "self_managed", runner_factors: { "*": "1" }, project_factors: {} };
  const card = { effective_from: CLASS.effective_from, not_billable: [], source: "", ...own };
  await ask(house, `POST /v1/logs/${log}/rate_cards`, { token, json: card });
  const reports = [
    reported(1, log, { counter: "1", job: { id: "1" } }),
    reported(1, log, { counter: "2", job: { id: "2", project_id: "51" }, usage: THIRD }),
    reported(1, log, { counter: "3", job: { id: "3", project_id: "52", root_namespace_id: "7" } }),
    reported(1, log, { counter: "4", job: { id: "1" }, usage: { duration_ms: "1" } }),
    reported(1, log, { counter: "5", job: { id: "5" }, uuid: "nobody's" }),
    reported(1, log, { counter: "6", job: { id: "6" }, usage: { failure_reason: FAULT } }),
  ];
  await ask(house, "POST /v1/reports", { json: { reports } });
  const jose = reported(2, log, { counter: "1", job: { id: "1" }, uuid: "own" });
  await ask(house, "POST /v1/reports", { jose });
});

afterAll(() => house.close());

const FAULT = "runner_system_failure";
const CLASS = {
  project_id: "51",
  class: "open_source",
  effective_from: "2026-01-01T00:00:00.000Z",
  source: "gitlab",
};

const get = (path: string, headers: Record<string, string> = {}): Promise<Answered> =>
  ask(house, `GET ${path}`, { token, headers });

async function usages(job: string): Promise<Record<string, unknown>[]> {
  const { json } = await get(`/v1/jobs/${log}/${job}`);
  return json["usages"] as Record<string, unknown>[];
}

test("a build is explained in full arithmetic: duration × factor = charge", async () => {
  const [usage] = await usages("2");
  // The service's own entries may come in between.
  const [card] = await house.database.auditor<{ index: bigint }[]>`
    select index from entries where log = ${log} and kind = 'rate_card' order by index limit 1`;
  expect(usage?.["rating"]).toEqual({
    duration_ms: "100001",
    machine_type: "small",
    class: "open_source",
    card: { index: String(card?.index), runner_factor: "1", project_factor: "0.5" },
    billable: true,
    not_billable: "",
    factor: "1/2",
    compute_ms: "50000.500000",
    compute_minutes: "0.8333",
    arithmetic: "100001 ms × 1/2 = 50000.500000 compute-ms = 0.8333 compute minutes",
  });
  expect(usage).toMatchObject({ kid: kidOf(1), tracking: "hosted", clock_anomaly: false });
});

test("a factor that is a share of the namespace's minutes names the limit that it was read from", async () => {
  const [usage] = await usages("3");
  expect(usage?.["rating"]).toMatchObject({
    class: "gitlab_contribution",
    card: { project_factor: "monthly_minutes/300000" },
    limit: { monthly_minutes: "10001" },
    factor: "10001/300000",
    compute_ms: "2000.200000",
  });
});

test("machine types and classes that are called like members of every object have the card's factors only", async () => {
  const { log: odd } = await newLog(house, "inherited", 3);
  const runner = { uuid: "odd", tracking: "self_managed", machine_type: "toString" } as const;
  await newAgent(house, odd, 4, runner);
  const { effective_from } = CLASS;
  const factors = { runner_factors: { "*": "2" }, project_factors: {}, not_billable: [] };
  const card = { tracking: "self_managed", effective_from, source: "", ...factors };
  await ask(house, `POST /v1/logs/${odd}/rate_cards`, { token, json: card });
  const json = { ...CLASS, project_id: "50", class: "__proto__" };
  await ask(house, `POST /v1/logs/${odd}/project_classes`, { token, json });
  const jose = reported(4, odd, { counter: "1", job: { id: "1" }, uuid: "odd" });
  expect((await ask(house, "POST /v1/reports", { jose })).status).toBe(201);
  const explained = (await get(`/v1/jobs/${odd}/1`)).json["usages"] as Record<string, unknown>[];
  expect(explained[0]?.["rating"]).toMatchObject({
    machine_type: "toString",
    class: "__proto__",
    card: { index: expect.any(String), runner_factor: "2" },
    factor: "2/1",
  });
  expect(explained[0]?.["rating"]).not.toHaveProperty("card.project_factor");
});

test("a build that failed for the vendor's reason costs nothing and says why", async () => {
  const [usage] = await usages("6");
  expect(usage?.["rating"]).toMatchObject({
    billable: false,
    not_billable: "failure_reason",
    factor: "0/1",
    compute_ms: "0.000000",
  });
});

test("the entry that is shown is the bytes that were hashed, with the signed report in it", async () => {
  const [usage] = await usages("1");
  const bytes = decodeBase64(String(usage?.["entry"])) ?? new Uint8Array();
  expect(encodeBase64(leafHash(bytes))).toBe(usage?.["leaf"]);
  const entry = decodeEntry(bytes);
  expect(entry).toMatchObject({ kind: "usage", body: { jws: usage?.["jws"] } });
});

test("a job that hosted and own runners reported is shown once for each, or for the one that is asked", async () => {
  expect((await usages("1")).map((usage) => usage["tracking"])).toEqual(["hosted", "self_managed"]);
  const own = await get(`/v1/jobs/${log}/1?tracking=self_managed`);
  expect(own.json["usages"]).toMatchObject([
    { tracking: "self_managed", rating: { billable: false, not_billable: "self_managed" } },
  ]);
});

test("a wall clock that differs from the duration is flagged and billed by duration all the same", async () => {
  const usage = { started_at: "2026-11-20T09:00:00.000Z" };
  await ask(house, "POST /v1/reports", {
    jose: reported(1, log, { counter: "7", job: { id: "7" }, usage }),
  });
  expect(await usages("7")).toMatchObject([
    { clock_anomaly: true, rating: { compute_ms: "60000.000000" } },
  ]);
});

test("conflicts and holds are listed with the report and what it meets", async () => {
  const { json: conflicts } = await get(`/v1/logs/${log}/conflicts`);
  const [standing] = await usages("1");
  expect(conflicts["conflicts"]).toMatchObject([
    { stands: standing?.["index"], kid: kidOf(1), report: { counter: "4", job: { id: "1" } } },
  ]);
  const { json: holds } = await get(`/v1/logs/${log}/holds`);
  expect(holds["holds"]).toMatchObject([{ code: "outside-enrolment", report: { counter: "5" } }]);
  const [hold] = holds["holds"] as { index: string }[];
  const { json: rest } = await get(`/v1/logs/${log}/holds?after=${hold?.index}`);
  expect(rest["holds"]).toEqual([]);
});

test("keys are listed with what they may report and where they end", async () => {
  const json = { log, last_trusted_counter: "1", reason: "leaked" };
  await ask(house, `POST /v1/keys/${kidOf(2)}/revoke`, { token, json });
  const { json: shown } = await get(`/v1/logs/${log}/keys`);
  expect(shown["keys"]).toMatchObject([
    { kid: kidOf(1), revoked: false, namespaces: [] },
    { kid: kidOf(2), revoked: true, trusted_up_to: "1", runners: ["own"] },
  ]);
});

test("every answer about a log says as of which entry it is, and how much is sealed", async () => {
  await expect
    .poll(async () => (await get(`/v1/usage?log=${log}`)).json["as_of"], { timeout: 20_000 })
    .toSatisfy((asOf) => Number(asOf) > 0);
  for (const path of [`logs/${log}/keys`, `logs/${log}/conflicts`, `logs/${log}/holds`]) {
    const { json } = await get(`/v1/${path}`);
    expect(json["as_of"]).toMatch(/^[1-9][0-9]*$/);
    expect(Number(json["sealed"])).toBeLessThanOrEqual(Number(json["as_of"]));
  }
  const { json } = await get(`/v1/usage?log=${log}`);
  expect(json).toMatchObject({ sealed: true, refreshed_at: expect.any(String) });
  expect(json["age_ms"]).toMatch(/^[0-9]+$/);
});

test("usage is given by month, group and filter, in exact decimals, with totals", async () => {
  const query = `log=${log}&month=2026-11-01&group=tracking,project&tracking=hosted&fresh=true`;
  const { json } = await get(`/v1/usage?${query}`);
  expect(json["sealed"]).toBe(false);
  expect(json["rows"]).toMatchObject([
    { project: "50", jobs: "3", compute_ms: "120000.000000", billable_compute_ms: "120000.000000" },
    { project: "51", jobs: "1", compute_ms: "50000.500000" },
    { project: "52", jobs: "1", compute_ms: "2000.200000" },
  ]);
  expect(json["totals"]).toMatchObject({ jobs: "5", compute_ms: "172000.700000" });
  const none = await get(`/v1/usage?log=${log}&from=2026-12-01&fresh=true`);
  expect(none.json["rows"]).toEqual([]);
});

test("usage as CSV holds the same figures, and each line says as of what", async () => {
  const path = `/v1/usage?log=${log}&group=project&fresh=true`;
  const { json } = await get(path);
  const csv = await get(path, { accept: "text/csv" });
  expect(csv.headers.get("content-type")).toBe("text/csv; charset=utf-8");
  const [header, ...lines] = csv.text.trimEnd().split("\r\n");
  expect(header).toMatch(/^log,as_of,sealed,/);
  expect(lines).toHaveLength((json["rows"] as object[]).length);
  for (const line of lines) expect(line).toMatch(new RegExp(`^${log},${json["as_of"]},false,`));
});

test("usage as CSV that has no lines still says as of what, in its headers", async () => {
  const none = `/v1/usage?log=${log}&from=2026-12-01`;
  const { as_of: size } = (await get(`${none}&fresh=true`)).json;
  const folded = async () => (await get(none)).json["as_of"];
  await expect.poll(folded, { timeout: 20_000 }).toBe(size);
  const said = ["log", "as-of", "sealed", "refreshed-at"];
  for (const path of [none, `${none}&fresh=true`]) {
    const { json } = await get(path);
    const csv = await get(path, { accept: "application/json;q=0.5, text/csv" });
    expect(csv.text.trimEnd().split("\r\n")).toHaveLength(1);
    const { log: of, as_of, sealed: isSealed, refreshed_at = null } = json;
    const headers = said.map((name) => csv.headers.get(`minutebook-${name}`));
    expect(headers).toEqual([of, as_of, String(isSealed), refreshed_at]);
  }
});

test.each([
  "",
  "log=x",
  `log=${"0".repeat(32)}&log=${"1".repeat(32)}`,
  "month=2026-11",
  "month=2026-11-01&from=2026-11-01",
  "group=namespace,colour",
  "namespace=-1",
  "namespace=9223372036854775808",
  "fresh=yes",
  "more=1",
])("usage refuses a query that is not as documented (%s)", async (query) => {
  const path = query.startsWith("log") || query === "" ? query : `log=${log}&${query}`;
  const answer = await get(`/v1/usage?${path}`);
  expect([answer.status, answer.json["code"]]).toEqual([400, "invalid-request"]);
});

test.each([
  "jobs/LOG/0x1",
  "jobs/LOG/9223372036854775808",
  "jobs/LOG/999",
  "jobs/../1",
  "logs/LOG/colours",
])("what cannot be there is missing like anything else (%s)", async (path) => {
  const answer = await get(`/v1/${path.replace("LOG", log)}`);
  expect([answer.status, answer.json["code"]]).toEqual([404, "not-found"]);
});
