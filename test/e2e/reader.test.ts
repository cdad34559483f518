import { afterAll, beforeAll, expect, test } from "vitest";
import { reported } from "../flow/door.ts";
import { ask, newAgent, newLogOn } from "../http/house.ts";
import { openSite, type Site, serve } from "./process.ts";

let site: Site;

beforeAll(async () => {
  site = await openSite();
});

afterAll(() => site.remove());

const TERMINATIONS = 40;

test("a reader's sessions that are ended under load cost answers of 503, and never the process", async () => {
  const { database, environment, token } = site;
  const serving = await serve(environment);
  const log = await newLogOn(serving, token, "ended sessions");
  await newAgent(serving, log, 1, {}, token);
  await ask(serving, "POST /v1/reports", { jose: reported(1, log, { job: { id: "1" } }) });
  const paths = [
    `logs/${log}/holds`,
    `logs/${log}/conflicts`,
    `jobs/${log}/1`,
    `usage?log=${log}`,
    `logs/${log}/keys`,
    "logs",
  ];

  const statuses: number[] = [];
  let loading = true;
  const lanes = [...paths, ...paths].map(async (path) => {
    while (loading) statuses.push((await ask(serving, `GET /v1/${path}`, { token })).status);
  });
  const load = Promise.all(lanes);
  for (let i = 0; i < TERMINATIONS; i++) {
    const before = statuses.length;
    await Promise.race([
      load,
      expect.poll(() => statuses.length, { timeout: 20_000 }).toBeGreaterThan(before),
    ]);
    await database.superuser`
      select pg_terminate_backend(pid)
      from pg_stat_activity
      where datname = current_database() and application_name = 'minutebook-reader'
    `;
  }
  loading = false;
  await load;
  expect(new Set([...statuses, 200, 503])).toEqual(new Set([200, 503]));

  for (const path of paths) {
    const status = async () => (await ask(serving, `GET /v1/${path}`, { token })).status;
    await expect.poll(status, { timeout: 20_000 }).toBe(200);
  }
  expect(await serving.end("SIGTERM")).toBe(0);
});
