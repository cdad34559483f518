import { afterAll, beforeAll, expect, test } from "vitest";
import { reported } from "../flow/door.ts";
import { heartbeatOf } from "../http/heartbeat.ts";
import { ask, type House, newLog, openHouse, tokenOf } from "../http/house.ts";
import { Desk, minutes } from "../http/quota-desk.ts";
import { minutebook } from "./terminal.ts";

let house: House;
let desk: Desk;

beforeAll(async () => {
  house = await openHouse();
  desk = new Desk(house, await newLog(house, "quota", 1));
});
afterAll(() => house.close());

function explain(namespace: string, token: string, ...more: string[]) {
  const given = { MINUTEBOOK_SERVER: house.url, MINUTEBOOK_TOKEN: token };
  return minutebook(["quota", "explain", namespace, "--log", desk.log, ...more], given);
}

test("quota explain prints the arithmetic line by line, from entries by index, to whoever may see it", async () => {
  await desk.limit("7", {
    monthly_minutes: "100",
    grace_minutes: "0",
    effective_from: "2026-01-01T00:00:00.000Z",
  });
  const order = { log: desk.log, namespace_id: "7", minutes: "50", source_version: "1" };
  const pack = { pack_id: "A-1", purchased_in: "2026-10-01", source: "portal" };
  await ask(house, "POST /v1/packs", { ...desk, json: { ...order, ...pack } });
  for (const [count, month] of [
    [120, "10"],
    [40, "11"],
  ] as const) {
    const usage = { duration_ms: minutes(count), finished_at: `2026-${month}-10T00:00:00.000Z` };
    const job = { id: month, root_namespace_id: "7" };
    const jose = reported(1, desk.log, { counter: month, job, usage });
    expect((await ask(house, "POST /v1/reports", { jose })).status).toBe(201);
  }
  // What was read in this millisecond is new enough for whoever asks in it.
  house.clock.time += 1;
  const jobs = [{ id: "900", elapsed_ms: minutes(10), root_namespace_id: "7" }];
  await desk.heard(heartbeatOf(1, desk.log, jobs));
  await desk.start("7", "901");

  const owner = await tokenOf(["viewer"], { logs: [desk.log], namespaces: ["7"] });
  const { stdout, status } = await explain("7", owner);
  const lines = stdout.split("\n").map((line) => line.trim().split(/ {2,}/));
  const { limit, packs, as_of } = JSON.parse((await explain("7", owner, "--json")).stdout);
  expect([status, lines[0]?.[0]]).toEqual([
    0,
    expect.stringContaining(`Namespace 7 of dotcom, 2026-11: as of ${as_of} entries, `),
  ]);
  expect(lines.slice(2).map(([name, figure, exact]) => [name, figure, exact])).toEqual([
    ["+ limit", "100.0000", "6000000.000000"],
    ["+ pack A-1", "30.0000", "1800000.000000"],
    ["drawn for 2026-10-01", "20.0000", "1200000.000000"],
    ["left", "30.0000", "1800000.000000"],
    ["- used", "40.0000", "2400000.000000"],
    ["= available", "90.0000", "5400000.000000"],
    ["job 900", "10.0000", "600000.000000"],
    ["- live", "10.0000", "600000.000000"],
    ["= remaining", "80.0000", "4800000.000000"],
    ["start of job 901", "1.0000", "60000.000000"],
    ["reserved", "1.0000", "60000.000000"],
    ["start", "90.0000", "5400000.000000"],
    ["stop", "90.0000", "5400000.000000"],
    ["starts at once", expect.stringMatching(/^at most 79; /), undefined],
    ["tolerance", "0.0000", "0.000000"],
    ["beyond at most", "1.5000", "90000.000000"],
    ["projected", "76.9231", "4615384.612645"],
    ["", undefined, undefined],
  ]);
  for (const said of [
    `entry ${limit.index}: 100 minutes a month since 2026-01-01T00:00:00.000Z; beyond: stop, grace 0 minutes`,
    `entry ${packs[0].index}: 50 minutes from portal, through 2027-09-01; when the month began`,
    `of 20.0000 over: used 120.0000, limit 100 by entry ${limit.index}`,
    "600000 ms x 1/1, running, heard at 2026-11-20T12:00:00.001Z",
    "(used + live) x 2592000000 ms of the month / 1684800001 ms of it so far",
  ]) {
    expect(stdout).toContain(said);
  }
});

test("quota explain of a namespace without limit says unlimited; of another's, not-found", async () => {
  const { stdout } = await explain("8", desk.token);
  expect(stdout).toContain("no entry sets one: unlimited");
  expect(stdout).toMatch(/^ *stop +never$/m);
  const other = await tokenOf(["viewer"], { logs: [desk.log], namespaces: ["7"] });
  const refused = await explain("8", other);
  expect([refused.status, refused.stdout]).toEqual([1, ""]);
  expect(refused.stderr).toMatch(/^not-found: /);
});
