import { afterAll, beforeAll, expect, test } from "vitest";
import { reported } from "../flow/door.ts";
import { ask, type House, newLog, openHouse } from "./house.ts";

let house: House;
let log: string;
let token: string;

beforeAll(async () => {
  house = await openHouse();
  ({ log, token } = await newLog(house, "health", 1));
});

afterAll(() => house.close());

test("a ready service says that nothing replicates it and nobody anchors it", async () => {
  const { status, json } = await ask(house, "GET /readyz");
  expect(status).toBe(200);
  expect(json).toMatchObject({
    ready: true,
    database: "ok",
    refused: {},
    rollups: "current",
    replication: "missing",
    anchors: { state: "none", logs: expect.any(Number) },
    signer: "available",
    redis: "none",
    seal: { entries: expect.any(String) },
  });
  expect(JSON.stringify(json)).not.toContain(log);
});

test("a schema that the process was not tested with makes it unready, and says so", async () => {
  const { owner } = house.database;
  await owner`
    create table stash as select * from migrations order by version desc limit 1`;
  await owner`delete from migrations where version = (select version from stash)`;
  await owner`delete from schema_migrations where version = (select version from stash)`;
  const code = async () => (await ask(house, "GET /readyz")).json["database"];
  await expect.poll(code, { timeout: 20_000 }).toBe("migration-pending");
  expect((await ask(house, "GET /readyz")).status).toBe(503);
  await owner`insert into migrations select * from stash`;
  await owner`insert into schema_migrations select version from stash`;
  await expect.poll(code, { timeout: 20_000 }).toBe("ok");
});

test("usage that can no longer be refreshed is said, and keeps no report out", async () => {
  const { owner } = house.database;
  const rollups = async () => (await ask(house, "GET /readyz")).json["rollups"];
  await owner`revoke maintain on open_namespace_monthly_usages from minutebook_writer`;
  const taken = await ask(house, "POST /v1/reports", {
    jose: reported(1, log, { counter: "7", job: { id: "7" } }),
  });
  expect(taken.status).toBe(201);
  await expect.poll(rollups, { timeout: 20_000 }).toBe("failing");
  expect((await ask(house, "GET /readyz")).status).toBe(200);
  await owner`grant maintain on open_namespace_monthly_usages to minutebook_writer`;
  await expect.poll(rollups, { timeout: 20_000 }).toBe("current");
});

test("metrics count reports by code, time commits and requests, and say how far sealing is", async () => {
  await ask(house, "POST /v1/reports", { jose: reported(1, log) });
  await ask(house, "POST /v1/reports", { jose: "x" });
  const { text } = await ask(house, "GET /metrics", { token });
  expect(text).toContain('minutebook_reports_total{code="accepted"} 2');
  expect(text).toContain('minutebook_reports_total{code="malformed"} 1');
  expect(text).toContain("minutebook_append_batch_reports_count 2");
  expect(text).toContain(
    'minutebook_http_request_seconds_count{route="POST /v1/reports",status="201"} 2',
  );
  for (const name of [
    "append_commit_seconds_count",
    "seal_lag_seconds",
    "refreshed_timestamp_seconds",
    "verifier_pending",
    "refused_logs",
  ]) {
    expect(text).toContain(`minutebook_${name}`);
  }
});

test("a made-up path is no label of a metric: nobody fills the memory with them", async () => {
  await ask(house, "GET /invented/up/path");
  const { text } = await ask(house, "GET /metrics", { token });
  expect(text).not.toContain("invented");
  expect(text).toContain('route="none",status="404"');
});

test("an unexpected error is a bare 500 with an id that is in the log, and nothing from inside", async () => {
  const { owner } = house.database;
  await owner`alter table seals rename to seals_elsewhere`;
  try {
    const answer = await ask(house, "GET /v1/logs", { token });
    expect(answer.status).toBe(500);
    expect(answer.headers.get("content-type")).toBe("application/problem+json");
    expect(Object.keys(answer.json).sort()).toEqual(["code", "id", "status", "title", "type"]);
    expect(answer.json["code"]).toBe("internal");
    const line = house.logged.find((text) => text.includes(String(answer.json["id"])));
    expect(line).toContain("seals");
    expect(answer.text).not.toContain("seals");
  } finally {
    await owner`alter table seals_elsewhere rename to seals`;
  }
});
