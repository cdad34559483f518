/** Limits and packs over HTTP: who may set them for whom, and what is said of what does not fit. */
import { afterAll, beforeAll, expect, test } from "vitest";
import { entriesOf, ofKind } from "../flow/door.ts";
import { type Answered, ask, type House, newLog, openHouse, tokenOf } from "./house.ts";

let house: House;
let log: string;
let token: string;

beforeAll(async () => {
  house = await openHouse();
  ({ log, token } = await newLog(house, "finance", 1));
});

afterAll(() => house.close());

const LIMIT = { beyond: "stop", monthly_minutes: "400", source: "gitlab", source_version: "1" };
const PACK = { namespace_id: "7", pack_id: "order-1", minutes: "5000", source: "portal" };

const put = (namespace: string, json: object, as = token): Promise<Answered> =>
  ask(house, `PUT /v1/quotas/${log}/${namespace}`, { token: as, json });
const sell = (json: object, as = token): Promise<Answered> =>
  ask(house, "POST /v1/packs", {
    token: as,
    json: { log, ...PACK, source_version: "1", ...json },
  });

const outcomes = async (answers: Promise<Answered>[]): Promise<unknown[]> =>
  (await Promise.all(answers)).map(({ status, json }) => json["code"] ?? status);

test("a limit has what is left out by default: no cap, 1,000 minutes of grace", async () => {
  expect((await put("70", LIMIT)).status).toBe(201);
  const [limit] = ofKind(await entriesOf(house.database.reader, log), "quota");
  expect(limit?.body).toMatchObject({ namespace_id: "70", cap: "", grace_minutes: "1000" });
  expect(limit?.body.effective_from).toBe(limit?.at);
});

test("the same event again is 200 with the same answer, an older or another one 409", async () => {
  const events = [{ source_version: "5" }, { source_version: "5" }, { source_version: "4" }];
  const other = [
    { source_version: "5", minutes: "1" },
    { source_version: "6", namespace_id: "8" },
  ];
  const limits = [];
  const packs = [];
  for (const event of events) {
    limits.push(await put("7", { ...LIMIT, ...event }));
    packs.push(await sell(event));
  }
  for (const answers of [limits, packs]) {
    expect(answers.map(({ status }) => status)).toEqual([201, 200, 409]);
    expect(answers[1]?.text).toBe(answers[0]?.text);
    expect(answers[2]?.json).toMatchObject({ code: "stale-source-version", stands: "5" });
  }
  expect(await outcomes(other.map((event) => sell(event)))).toEqual([
    "stale-source-version",
    "another-pack",
  ]);
});

test("whoever sets limits of another log finds this one missing", async () => {
  const elsewhere = await tokenOf(["platform", "finance"], { logs: ["0".repeat(32)] });
  const refused = [put("77", LIMIT, elsewhere), sell({ pack_id: "order-77" }, elsewhere)];
  expect(await outcomes(refused)).toEqual(["not-found", "not-found"]);
});

test.each([
  ["a cap where all stops at the limit", "7", { ...LIMIT, cap: "10" }, "invalid-request"],
  ["a limit of no whole minutes", "7", { ...LIMIT, monthly_minutes: "0.5" }, "invalid-request"],
  ["what happens beyond left open", "7", { ...LIMIT, beyond: undefined }, "invalid-request"],
  ["a namespace in the body too", "7", { ...LIMIT, namespace_id: "7" }, "invalid-request"],
  ["a namespace that is no number", "x", LIMIT, "not-found"],
])("a limit is refused: %s", async (_, namespace, json, code) => {
  expect((await put(namespace, json)).json["code"]).toBe(code);
});

test("a pack is refused that expires before it is bought", async () => {
  const said = { pack_id: "odd", purchased_in: "2026-11-01", expires_in: "2026-10-01" };
  expect((await sell(said)).json).toMatchObject({
    code: "invalid-request",
    members: ["expires_in"],
  });
});
