/** What a log under two persons begins with. */
import { afterAll, beforeAll, expect, test } from "vitest";
import { configuredRoles } from "../../../src/flow/access/configured.ts";
import type { Issuer } from "../../../src/flow/authenticate.ts";
import { create, NewLog } from "../../../src/flow/log/create.ts";
import { NOW } from "../../core/history.ts";
import { closeHouse, type Door, type House, openHouse } from "../door.ts";

let house: House;
let door: Door;
let said: string;
beforeAll(async () => {
  house = await openHouse();
  door = house.open();
});
afterAll(() => closeHouse(house));

const issuer: Issuer = {
  ...{ issuer: "https://one.example", audience: "minutebook", algorithms: ["ES256"] },
  key: async () => {
    throw new Error("no key is asked for");
  },
  grants: [
    { claim: "groups", value: "money", role: "finance", logs: "*", namespaces: "*" },
    { claim: "groups", value: "acme", role: "viewer", logs: "*", namespaces: ["7"] },
    { claim: "groups", value: "old", role: "auditor", logs: ["a".repeat(32)], namespaces: "*" },
  ],
};

test("what is configured for all logs is what a new log says, and what is for another log is not", () => {
  const of = { claim: "groups", issuer: "https://one.example" };
  expect(configuredRoles([issuer])).toEqual([
    { ...of, namespaces: "*", role: "finance", value: "money" },
    { ...of, namespaces: ["7"], role: "viewer", value: "acme" },
  ]);
});

test("in production a log that one person decides about is made by who says so, and none by silence", async () => {
  const input = NewLog.parse({ unique_id: "said", platform: "dotcom", billing_from: NOW });
  const creating = { ...door, roles: [], mustSayControl: true };
  await expect(create(creating, "p_x", input)).rejects.toMatchObject({
    code: "invalid-request",
    extension: { members: ["control"] },
  });
  said = (await create(creating, "p_x", { ...input, control: "single" })).log;
  expect(said).toHaveLength(32);
});

test("where nobody is configured to approve, no log is made that needs two persons, and nothing is left of it", async () => {
  const roles = configuredRoles([issuer]);
  const input = { unique_id: "dual", platform: "dotcom", billing_from: NOW };
  const make = (control: "single" | "dual") =>
    create({ ...door, roles }, "p_x", NewLog.parse({ ...input, control }));
  await expect(make("dual")).rejects.toMatchObject({ code: "approver-needed" });
  const { log } = await make("single");
  const kinds = await house.database.reader`select log, kind from entries where log <> ${said}`;
  expect(kinds).toEqual([{ log, kind: "log" }]);
});
