/** Corrections and accounts over HTTP, where a single person decides; two processes of the service. */
import { afterAll, beforeAll, expect, test } from "vitest";
import type { Service } from "../../src/command/service.ts";
import type { AdjustmentLine } from "../../src/core/control.ts";
import { reported } from "../flow/door.ts";
import { type Answered, ask, beside, type House, newLog, openHouse, tokenOf } from "./house.ts";

let house: House;
let other: Service;
let log: string;
let token: string;
/** The entry of job 1, of a minute. */
let entry: string;

beforeAll(async () => {
  house = await openHouse();
  other = await beside(house);
  ({ log, token } = await newLog(house, "adjusted", 51));
  const reports = ["1", "2"].map((id) => reported(51, log, { counter: id, job: { id } }));
  const { json } = await ask(house, "POST /v1/reports", { json: { reports } });
  entry = String((json["results"] as { index: string }[])[0]?.index);
});
afterAll(() => house.close());

const LINE = {
  namespace_id: "7",
  project_id: "50",
  reverses: "",
  usage_month: "2026-11-01",
};

function adjust(at: Pick<Service, "url">, line: Partial<AdjustmentLine>): Promise<Answered> {
  const content = {
    ...{ billing_month: "2026-11-01", credit_run: "", first_line: "0" },
    ...{ lines: [{ ...LINE, entry, ...line }], reason: "goodwill", ticket: "INC-1" },
  };
  const json = { log, action: "adjustment", content, reason: "goodwill", ticket: "INC-1" };
  return ask(at, "POST /v1/proposals", { token, json });
}

async function usedOf(at: Pick<Service, "url">): Promise<unknown> {
  const { json } = await ask(at, `GET /v1/quotas/${log}/7`, { token });
  return (json["used"] as { compute_ms: string }).compute_ms;
}

test("a correction counts when it is answered, and soon in every process: in quota, in usage and on the build", async () => {
  expect(await usedOf(house)).toBe("120000.000000");
  expect(await usedOf(other)).toBe("120000.000000");
  const credit = await adjust(house, { amount: "-45000.000000" });
  expect(credit.status).toBe(201);
  // As it stands on the log: its text.
  expect(JSON.parse(String(credit.json["effect"]))).toMatchObject({
    total: "-45000.000000",
    months: [{ from: "120000.000000", to: "75000.000000" }],
  });
  expect(await usedOf(house)).toBe("75000.000000");
  await expect.poll(() => usedOf(other), { timeout: 20_000 }).toBe("75000.000000");
  const usage = await ask(other, `GET /v1/usage?log=${log}&group=runner,project&fresh=true`, {
    token,
  });
  expect(usage.json["rows"]).toMatchObject([
    {
      ...{ runner: "700", project: "50", jobs: "2", gross_compute_ms: "120000.000000" },
      ...{ adjustment_compute_ms: "-45000.000000", compute_ms: "75000.000000" },
    },
  ]);
  const job = await ask(other, `GET /v1/jobs/${log}/1`, { token });
  expect(job.json["usages"]).toMatchObject([
    {
      adjustments: [{ compute_ms: "-45000.000000", line: "0", billing_month: "2026-11-01" }],
      net_compute_ms: "15000.000000",
    },
  ]);
});

test("what cannot be taken back is refused with the reason", async () => {
  const { json } = await adjust(house, { amount: "-1000.000000" });
  const reverses = `${json["index"]}/0`;
  const answers = [
    await adjust(house, { amount: "-60000.000000" }),
    await adjust(house, { amount: "1000.000000", reverses }),
    await adjust(other, { amount: "1000.000000", reverses }),
    await adjust(other, { amount: "-1.000000", namespace_id: "8", entry: "", project_id: "" }),
    await adjust(other, { amount: "-1.000000", usage_month: "2026-10-01", entry: "" }),
  ].map(({ status, json }) => [status, json["code"]]);
  expect(answers).toEqual([
    [409, "exceeds-original"],
    [201, undefined],
    [409, "already-reversed"],
    [422, "not-billable-usage"],
    [409, "months-in-order"],
  ]);
});

const ACCOUNT = { account_id: "A-1", source: "portal", source_version: "1" };

test("accounts come from the platform, once for each version, for a namespace or for all others", async () => {
  const platform = await tokenOf(["platform"]);
  const put = (path: string, json: object, by = platform) =>
    ask(house, `PUT /v1/accounts/${log}${path}`, { token: by, json });
  const first = await put("/7", ACCOUNT);
  expect(first.status).toBe(201);
  const again = await put("/7", ACCOUNT);
  expect(again).toMatchObject({ status: 200, json: { index: first.json["index"] } });
  const older = await put("/7", { ...ACCOUNT, account_id: "A-2" });
  expect(older).toMatchObject({ status: 409, json: { code: "stale-source-version" } });
  expect((await put("", ACCOUNT)).status).toBe(201);
  expect((await put("/7", ACCOUNT, await tokenOf(["finance"]))).status).toBe(404);
});
