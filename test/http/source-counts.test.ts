/** A source says how many events of a day it sent; the log says how many it has. */
import { afterAll, beforeAll, expect, test } from "vitest";
import { entriesOf, ofKind } from "../flow/door.ts";
import { type Answered, ask, everybody, type House, newLogOn, openHouse } from "./house.ts";

const DAY = "2026-11-20";

let house: House;
let token: string;
let log: string;
let version = 0;

beforeAll(async () => {
  house = await openHouse();
  token = await everybody();
  log = await newLogOn(house, token, "counted");
  for (const source of ["gitlab", "gitlab", "portal"]) await limit(source);
  house.clock.time += 86_400_000;
  await limit("gitlab");
});

afterAll(() => house.close());

async function limit(source: string): Promise<void> {
  version += 1;
  const source_version = String(version);
  const json = { monthly_minutes: "400", beyond: "stop", source, source_version };
  const { status } = await ask(house, `PUT /v1/quotas/${log}/${version}`, { token, json });
  expect(status).toBe(201);
}

async function stated(count: string, change: object = {}): Promise<Answered> {
  const json = { day: DAY, kind: "quota", source: "gitlab", stated: count, ...change };
  return await ask(house, `POST /v1/logs/${log}/source_counts`, { token, json });
}

const entries = () => entriesOf(house.database.reader, log);

test("events are counted of their day, their kind and their source", async () => {
  expect(await stated("2")).toMatchObject({ status: 201, json: { stated: "2", counted: "2" } });
  expect((await stated("1", { source: "portal" })).json["counted"]).toBe("1");
  expect((await stated("0", { kind: "pack" })).json["counted"]).toBe("0");
  expect((await stated("0", { source: "nobody" })).json["counted"]).toBe("0");
  expect(ofKind(await entries(), "break")).toEqual([]);
});

test("what was stated already is answered by the entry that stands", async () => {
  const again = await stated("2");
  expect(again.status).toBe(200);
  expect((await stated("2")).json["index"]).toBe(again.json["index"]);
});

test("a difference is a break, once, and a later statement that agrees ends it", async () => {
  for (const status of [201, 200]) expect((await stated("3")).status).toBe(status);
  const [found, ...more] = ofKind(await entries(), "break");
  expect([found?.body.code, found?.body.month, more]).toEqual(["source-count", "2026-11-01", []]);
  expect(found?.body.detail).toBe("quota of 2026-11-20: 3 sent, 2 here");
  const corrected = await stated("2");
  expect(corrected.status).toBe(201);
  const [end] = ofKind(await entries(), "break_resolved");
  expect(end?.body).toMatchObject({
    break: String(found?.index),
    evidence: corrected.json["index"],
    outcome: "healed",
  });
});

test("a difference that comes again is open again, and one that is stated otherwise is another", async () => {
  const open = async () => {
    const { json } = await ask(house, `GET /v1/logs/${log}/breaks?state=open`, { token });
    return (json["breaks"] as { detail: string }[]).map(({ detail }) => detail);
  };
  const said = (count: string) => [`quota of ${DAY}: ${count} sent, 2 here`];
  for (const count of ["3", "4", "3"]) {
    for (const status of [201, 200]) expect((await stated(count)).status).toBe(status);
    expect(await open()).toEqual(said(count));
  }
  const index = ofKind(await entries(), "break").at(-1)?.index;
  const why = { reason: "known", ticket: "T-1" };
  const content = { break: String(index), evidence: "", outcome: "accepted", ...why };
  const json = { log, action: "break_resolved", content, ...why };
  expect((await ask(house, "POST /v1/proposals", { token, json })).status).toBe(201);
  expect((await stated("3")).status).toBe(200);
  expect(await open()).toEqual([]);
  await stated("500");
  expect(await open()).toEqual(said("500"));
  await stated("2");
  expect(await open()).toEqual([]);
});

test("a day that is not over cannot be counted", async () => {
  const today = await stated("1", { day: "2026-11-21" });
  expect([today.status, today.json["members"]]).toEqual([400, ["day"]]);
});
