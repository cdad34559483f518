/** What is decided while the database is away, and what was read of it grows old. */
import { afterAll, beforeAll, expect, test } from "vitest";
import { type Decision, decide, type Quotaing } from "../../../src/flow/quota/decide.ts";
import { type Ledger, openLedger } from "../../../src/flow/quota/ledger.ts";
import { LiveBudget } from "../../../src/flow/quota/live-budget.ts";
import { Seen } from "../../../src/flow/quota/seen.ts";
import { openLive } from "../../../src/flow/quota/standing.ts";
import { openStops } from "../../../src/flow/quota/stops.ts";
import { limit, NewLimit } from "../../../src/flow/rate/limit.ts";
import { connect, type Sql } from "../../../src/store/connect.ts";
import { openLiveProcess } from "../../../src/store/live-process.ts";
import { NOW } from "../../core/history.ts";
import {
  closeHouse,
  type Door,
  type House,
  newAgent,
  newLog,
  openHouse,
  reported,
} from "../door.ts";

const POLICIES = ["open", "closed", "plan"] as const;
type Policy = (typeof POLICIES)[number];

interface Desk {
  quotaing: Quotaing;
  ledger: Ledger;
  /** What the ledger reads from. */
  sql: Sql;
}

let house: House;
let door: Door;
let log: string;
const clock = { time: Date.parse(NOW), now: () => clock.time };
const desks = new Map<Policy, Desk>();

/** Namespaces: ten minutes of which two are used, none left, paying for more, no limit, never asked about. */
const [FREE, OVER, PAYING, UNLIMITED, UNHEARD] = ["1", "2", "3", "4", "5"] as const;

beforeAll(async () => {
  house = await openHouse();
  door = house.open();
  log = await newLog(door, "decide");
  await newAgent(door, log, 1);
  await limited(FREE, { monthly_minutes: "10" });
  await limited(OVER, { monthly_minutes: "1", grace_minutes: "0" });
  await limited(PAYING, { monthly_minutes: "1", beyond: "bill" });
  for (const [i, root_namespace_id] of [FREE, OVER, PAYING].entries()) {
    const usage = { duration_ms: "120000" };
    const job = { id: `${i}`, root_namespace_id };
    await door.submit(reported(1, log, { counter: `${i + 1}`, job, usage }));
  }
  for (const policy of POLICIES) desks.set(policy, open(policy));
});
afterAll(async () => {
  for (const { ledger, sql } of desks.values()) {
    await ledger.close();
    await sql.end();
  }
  await closeHouse(house);
});

async function limited(namespace_id: string, more: object): Promise<void> {
  const said = { beyond: "stop", source: "test", source_version: "1", ...more };
  await limit(door, { log, namespace_id, by: "p_test" }, NewLimit.parse(said));
}

function open(policy: Policy): Desk {
  const sql = connect(house.database.urls.writer, { max: 2 });
  const ledger = openLedger({ sql, clock, failed: () => undefined, pollMs: 3_600_000 });
  const live = openLive({ process: openLiveProcess(), clock, failed: () => undefined });
  const stops = openStops({ sql: house.database.writer, clock });
  const { appender } = door;
  const said = { policy, startFloorMs: 60_000n, seen: new Seen(), budget: new LiveBudget() };
  return { quotaing: { appender, clock, ledger, live, stops, ...said }, ledger, sql };
}

function deskOf(policy: Policy): Desk {
  const desk = desks.get(policy);
  if (desk === undefined) throw new Error("no such desk");
  return desk;
}

async function asked(
  { quotaing }: Desk,
  ask: "start" | "go_on",
  maxAgeMs = 5_000,
): Promise<Decision[]> {
  const questions = [FREE, OVER, PAYING, UNLIMITED].map((namespace_id) => ({
    job_id: "9",
    namespace_id,
    ask,
  }));
  return await decide(quotaing, { log, by: "p_test", maxAgeMs }, questions);
}

const told = (decisions: readonly Decision[]) =>
  decisions.map(({ allowed, reason }) => `${allowed ? "yes" : "no"}, ${reason}`);

test.each(POLICIES)("policy %s has no say while all is known", async (policy) => {
  const desk = deskOf(policy);
  const starts = ["yes, within", "no, beyond", "yes, within", "yes, unlimited"];
  expect(told(await asked(desk, "start"))).toEqual(starts);
  expect(told(await asked(desk, "go_on"))).toEqual(starts);
});

test.each([
  ["open", ["yes, policy", "yes, policy", "yes, policy", "yes, unlimited"]],
  ["closed", ["no, policy", "no, policy", "no, policy", "yes, unlimited"]],
  ["plan", ["no, policy", "no, policy", "yes, policy", "yes, unlimited"]],
] as const)(
  "policy %s says who may start by figures too old to count, and nobody who runs is stopped by them",
  async (policy, starts) => {
    const desk = deskOf(policy);
    await desk.sql.end();
    // Within the age bound they count as before.
    expect(told(await asked(desk, "go_on"))[1]).toBe("no, beyond");
    const before = clock.time;
    clock.time += 5_001;
    expect(told(await asked(desk, "start"))).toEqual(starts);
    const running = await asked(desk, "go_on");
    expect(running.map(({ job_status }) => job_status)).toEqual(new Array(4).fill("running"));
    expect(running.map(({ age_ms }) => age_ms)).toEqual(new Array(4).fill("5001"));
    // The caller bounds the age.
    expect(told(await asked(desk, "go_on", 10_000))[1]).toBe("no, beyond");
    clock.time = before;
  },
);

test.each([
  ["open", true],
  ["closed", false],
  ["plan", false],
] as const)(
  "policy %s decides for a namespace of which nothing is known, and its neighbours are answered",
  async (policy, allowed) => {
    const { quotaing } = deskOf(policy);
    const questions = [
      { job_id: "1", namespace_id: UNHEARD, ask: "start" },
      { job_id: "2", namespace_id: UNHEARD, ask: "go_on" },
      { job_id: "3", namespace_id: UNLIMITED, ask: "start" },
    ] as const;
    const given = await decide(quotaing, { log, by: "p_test", maxAgeMs: 5_000 }, questions);
    const [start, running, neighbour] = given;
    const named = { job_id: "1", namespace_id: UNHEARD };
    const job_status = allowed ? "running" : "failed";
    expect(start).toEqual({ ...named, allowed, job_status, reason: "policy" });
    expect(running).toMatchObject({ allowed: true, reason: "policy" });
    expect(neighbour).toMatchObject({ allowed: true, reason: "unlimited" });
  },
);
