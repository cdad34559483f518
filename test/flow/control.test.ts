/** Entries by persons and by the service itself: they pass the same door, queue and lock. */
import { afterAll, beforeAll, expect, test } from "vitest";
import { announce } from "../../src/flow/log/announce.ts";
import { NewLog } from "../../src/flow/log/create.ts";
import { card, NewCard } from "../../src/flow/rate/card.ts";
import { classify } from "../../src/flow/rate/classify.ts";
import { limit } from "../../src/flow/rate/limit.ts";
import { readHead } from "../../src/store/heads.ts";
import { CARD, LONG_AGO, NOW } from "../core/history.ts";
import {
  closeHouse,
  codes,
  type Door,
  type House,
  newAgent,
  newLog,
  ofKind,
  openHouse,
  reported,
} from "./door.ts";
import { readBack } from "./replay.ts";

let house: House;
let door: Door;

beforeAll(async () => {
  house = await openHouse();
  door = house.open();
});

afterAll(() => closeHouse(house));

const SOON = "2026-11-20T12:00:01.000Z";
const LATER = { finished_at: "2026-11-20T12:01:00.000Z" };

test("a log's defaults are those of the design: skew 300 s, cap 31 days", () => {
  const input = NewLog.parse({ unique_id: "x", platform: "dotcom", billing_from: NOW });
  expect(input).toMatchObject({ skew_ms: "300000", duration_cap_ms: String(31 * 86_400_000) });
});

test("cards, classes and limits decide what comes after them, and who wrote them is said", async () => {
  const log = await newLog(door, "rates", { card: "none" });
  await newAgent(door, log, 1);
  expect(codes(await door.submit(reported(1, log, { counter: "1" })))).toEqual(["no-rate"]);
  const by = { log, by: "finance-7" };
  const { approval: _, by: __, salt: ___, ...rates } = CARD;
  await card(door, by, rates);
  await door.submit(reported(1, log, { counter: "2", job: { id: "2" } }));
  const gitlab = { class: "gitlab_contribution", effective_from: LONG_AGO, source: "" };
  await classify(door, by, { ...gitlab, project_id: "50" });
  const quota = { beyond: "stop", cap: "", grace_minutes: "1000" } as const;
  const versioned = { source: "gitlab", source_version: "1", effective_from: LONG_AGO };
  await limit(
    door,
    { ...by, namespace_id: "7" },
    { ...quota, ...versioned, monthly_minutes: "3000" },
  );
  await door.submit(reported(1, log, { counter: "3", job: { id: "3" } }));
  const entries = await readBack(house, log);
  const factors = ofKind(entries, "usage").map(({ body }) => [body.class, body.factor, body.limit]);
  expect(factors).toEqual([
    ["standard", "1/1", ""],
    ["gitlab_contribution", "1/100", "7"],
  ]);
  for (const kind of ["rate_card", "project_class", "quota"] as const) {
    expect(ofKind(entries, kind)[0]?.body).toMatchObject({ by: "finance-7", approval: "" });
  }
});

test("what admission refuses is not written", async () => {
  const log = await newLog(door, "refused");
  const { approval: _, by: __, salt: ___, ...rates } = CARD;
  const by = { log, by: "finance" };
  const past = card(door, by, { ...rates, effective_from: NOW });
  await expect(past).rejects.toMatchObject({ code: "starts-in-the-past" });
  const wrong = card(door, by, { ...rates, effective_from: SOON, runner_factors: { x: "1/0" } });
  await expect(wrong).rejects.toMatchObject({ code: "invalid-factor" });
  expect(NewCard.safeParse({ ...rates, by: "somebody else" }).success).toBe(false);
  expect(ofKind(await readBack(house, log), "rate_card")).toHaveLength(1);
});

test("the head names the newest control entry, and entries that decide nothing leave it", async () => {
  const log = await newLog(door, "control index");
  const controlIndex = async () => (await readHead(house.database.reader, log))?.controlIndex;
  expect(await controlIndex()).toBe(1n);
  await newAgent(door, log, 1);
  expect(await controlIndex()).toBe(3n);
  await announce(door, log, { version: "1.0.0", schema_sha256: HASH });
  await door.submit(reported(1, log));
  expect(await controlIndex()).toBe(3n);
});

test("a card of another process is obeyed by the very next report", async () => {
  const other = house.open();
  const log = await newLog(door, "other's card");
  await newAgent(door, log, 1);
  await door.submit(reported(1, log, { counter: "1", job: { id: "1" } }));
  const { approval: _, by: __, salt: ___, ...rates } = CARD;
  const dearer = { ...rates, effective_from: SOON, runner_factors: { small: "7" } };
  const { index } = await card(other, { log, by: "finance" }, dearer);
  await door.submit(reported(1, log, { counter: "2", job: { id: "2" }, usage: LATER }));
  const [, second] = ofKind(await readBack(house, log), "usage");
  expect(second?.body).toMatchObject({ card: String(index), factor: "7/1" });
});

test("usage of a month that is closed is posted to the month after, and says which it belongs to", async () => {
  const log = await newLog(door, "months");
  await newAgent(door, log, 1);
  const body = { approval: "", by: "finance", month: "2026-10-01", salt: SALT };
  const { index } = await door.appender.control(log, "month_closing", () => body);
  const october = { finished_at: "2026-10-31T23:59:59.999Z" };
  await door.submit(reported(1, log, { counter: "1", job: { id: "1" }, usage: october }));
  const withdrawn = { approval: "", by: "finance", closing: String(index), salt: SALT };
  await door.appender.control(log, "month_closing_withdrawn", () => withdrawn);
  await door.submit(reported(1, log, { counter: "2", job: { id: "2" }, usage: october }));
  const usages = ofKind(await readBack(house, log), "usage").map(({ body }) => body);
  expect(usages.map(({ usage_month, billing_month }) => [usage_month, billing_month])).toEqual([
    ["2026-10-01", "2026-11-01"],
    ["2026-10-01", "2026-10-01"],
  ]);
});

test("the service says its version once, and an older one beside a newer one stays silent", async () => {
  const log = await newLog(door, "versions");
  const say = async (version: string, schema_sha256 = HASH) =>
    (await announce(door, log, { version, schema_sha256 })).written;
  const said = [await say("1.9.0"), await say("1.9.0"), await say("1.10.0"), await say("1.9.0")];
  expect(said).toEqual([true, false, true, false]);
  expect(await say("1.10.0", SECOND_HASH)).toBe(true);
  const services = ofKind(await readBack(house, log), "service");
  expect(services.map(({ body }) => body.version)).toEqual(["1.9.0", "1.10.0", "1.10.0"]);
});

const SALT = "AAAAAAAAAAAAAAAAAAAAAA==";
const HASH = "AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA=";
const SECOND_HASH = "AQAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA=";
