/** Roles that a log says itself, from its beginning under two persons, or from the mapping that was written last. */
import { afterAll, beforeAll, expect, test, vi } from "vitest";
import type { Service } from "../../src/command/service.ts";
import { type MappedRole, ROLES } from "../../src/core/control.ts";
import { decodeEntry } from "../../src/core/entry.ts";
import { CARD, NOW } from "../core/history.ts";
import { ask, beside, everybody, type House, newLogOn, openHouse, tokenOf } from "./house.ts";

let house: House;
let other: Service;
let token: string;

beforeAll(async () => {
  house = await openHouse();
  other = await beside(house);
  token = await everybody();
});
afterAll(() => house.close());

const holds = async (log: string, as: string, at: Pick<Service, "url"> = house) =>
  (await ask(at, `GET /v1/logs/${log}/holds`, { token: as })).status;

const grant = (role: MappedRole["role"]): MappedRole => ({
  ...{ claim: "roles", issuer: "minutebook-local", namespaces: "*" as const, role, value: role },
});

async function map(log: string, ...roles: MappedRole["role"][]): Promise<void> {
  const body = { approval: "", by: "p_x", grants: roles.map(grant), salt: CARD.salt };
  await house.appender.control(log, "role_mapping", () => body);
}

test("a log under two persons begins with the roles that are configured, right behind its first entry", async () => {
  const json = { unique_id: "dual", platform: "dotcom", billing_from: NOW, control: "dual" };
  const made = await ask(house, "POST /v1/logs", { token, json });
  expect([made.status, made.json["index"]]).toEqual([201, "0"]);
  const log = String(made.json["log"]);
  const [second] = await house.database.reader<{ bytes: Uint8Array }[]>`
    select bytes from entries where log = ${log} and index = 1`;
  const entry = decodeEntry(second?.bytes ?? new Uint8Array());
  if (typeof entry === "string" || entry.kind !== "role_mapping") throw new Error("no mapping");
  expect(entry.body.grants).toEqual(ROLES.map(grant));
  expect(entry.body.by).toMatch(/^p_/);
  expect(await holds(log, await tokenOf(["finance"]))).toBe(200);
  expect(await holds(log, await tokenOf(["viewer"]))).toBe(404);
});

test("a mapping takes roles away on its log, and nowhere else, soon after on every process", async () => {
  const log = await newLogOn(house, token, "mapped");
  const elsewhere = await newLogOn(house, token, "not mapped");
  const finance = await tokenOf(["finance"]);
  expect([await holds(log, finance), await holds(log, finance, other)]).toEqual([200, 200]);
  await map(log, "auditor");
  for (const at of [house, other]) {
    const isRefused = async () => (await holds(log, finance, at)) === 404;
    await vi.waitUntil(isRefused, { timeout: 20_000 });
    expect(await holds(log, await tokenOf(["auditor"]), at)).toBe(200);
    expect(await holds(elsewhere, finance, at)).toBe(200);
  }
  const { json } = await ask(house, "GET /v1/logs", { token: finance });
  const seen = (json["logs"] as { log: string }[]).map((shown) => shown.log);
  expect(seen).toContain(elsewhere);
  expect(seen).not.toContain(log);
});

test("a token that is good on some logs only is so on mapped ones too", async () => {
  const log = await newLogOn(house, token, "bounded");
  await map(log, "auditor");
  const bound = await tokenOf(["auditor"], { logs: ["f".repeat(32)] });
  const whole = await tokenOf(["auditor"]);
  const isMapped = async () => (await holds(log, await tokenOf(["finance"]))) === 404;
  await vi.waitUntil(isMapped, { timeout: 20_000 });
  expect([await holds(log, bound), await holds(log, whole)]).toEqual([404, 200]);
});
