import { rmSync } from "node:fs";
import { afterAll, beforeAll, expect, test } from "vitest";
import { readKeys } from "../../src/agent/trust.ts";
import { instantText } from "../../src/core/unit.ts";
import { Host } from "../agent/host.ts";
import { RUNNER as UUID, usageLine } from "../agent/records.ts";
import { RUNNER } from "../core/history.ts";
import { entriesOf, ofKind } from "../flow/door.ts";
import { ask, newLogOn } from "../http/house.ts";
import { openSite, type Serving, type Site, serve } from "./process.ts";

let site: Site;
let serving: Serving;

beforeAll(async () => {
  site = await openSite();
  serving = await serve(site.environment);
});

afterAll(async () => {
  await serving.end("SIGTERM");
  await site.remove();
});

const UNIQUE_ID = "an instance whose agent trusts nobody";

function lines(count: number): string {
  const finishedAt = instantText(Date.now() - 60_000);
  const startedAt = instantText(Date.now() - 87_000);
  const one = () => usageLine({ uniqueId: UNIQUE_ID, startedAt, finishedAt });
  return Array.from({ length: count }, () => `${one()}\n`).join("");
}

test("an agent proves every report that a real service took, under keys that it had from elsewhere", async () => {
  const { database, token } = site;
  const log = await newLogOn(serving, token, UNIQUE_ID);
  const json = { log, namespaces: [], runners: [{ ...RUNNER, uuid: UUID }] };
  const enrolled = await ask(serving, "POST /v1/enrolments", { token, json });
  const listed = (await ask(serving, "GET /v1/logs", { token })).json["logs"];
  const own = (listed as Record<string, string>[]).find((each) => each["log"] === log);
  const keys = readKeys(log, `${own?.["vkey"]}\n${own?.["receipt_vkey"]}`);
  const host = new Host();
  await host.claim(serving.url, String(enrolled.json["token"]), log, keys);
  host.write(lines(30));
  expect(await host.import({ batch: 7 })).toMatchObject({ total: { accepted: 30 } });
  await expect
    .poll(() => host.check(log), { timeout: 30_000, interval: 500 })
    .toMatchObject({
      divergence: "",
      promises: { proven: 5, pending: 0, broken: 0, unverified: 0, missing: 0, forged: 0 },
      reports: { signed: 30, answered: 30, proven: 30 },
      evidence: [],
    });
  host.write(lines(3));
  await host.import();
  await expect
    .poll(() => host.check(log), { timeout: 30_000, interval: 500 })
    .toMatchObject({
      reports: { proven: 33 },
    });
  expect(host.notices).toEqual([]);
  expect(ofKind(await entriesOf(database.reader, log), "usage")).toHaveLength(33);
  rmSync(host.root, { recursive: true });
});
