import { afterAll, beforeAll, expect, test } from "vitest";
import { ROUTES } from "../../src/http/access.ts";
import { OPERATIONS } from "../../src/http/operations.ts";
import { ask, everybody, type House, newLog, openHouse } from "./house.ts";

let house: House;
let log: string;
let token: string;

beforeAll(async () => {
  house = await openHouse();
  ({ log } = await newLog(house, "queries", 1));
  token = await everybody();
});
afterAll(() => house.close());

/** The route's path with something in each place. */
function pathOf(route: string): string {
  return route
    .replace(":log", log)
    .replace(":path", "0/000")
    .replaceAll(/:[a-z]+/g, "7");
}

test.each(ROUTES)("%s refuses a member of the query that it does not have", async (route) => {
  const isPost = !route.startsWith("GET");
  const request = { token, ...(isPost && { json: {} }) };
  const known = OPERATIONS[route].query === undefined ? "" : "&after=0";
  for (const query of ["?unknown=1", `?unknown${known}`]) {
    const { status, json } = await ask(house, pathOf(route) + query, request);
    expect([status, json["code"]]).toEqual([400, "invalid-request"]);
    if (OPERATIONS[route].query === undefined) expect(json["members"]).toEqual(["unknown"]);
  }
});

test("who may not see a namespace learns nothing by a query", async () => {
  const paths = [`/v1/quotas/${log}/7`, `/v1/quotas/${"f".repeat(32)}/7`];
  const [there, missing] = await Promise.all(
    paths.map((path) => ask(house, `GET ${path}?x=1`, { token })),
  );
  expect([there?.status, there?.text]).toEqual([400, missing?.text]);
});
