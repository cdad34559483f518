/** What the service writes of two persons' decisions, judged by the auditor who knows it only by its entries. */
import { afterAll, beforeAll, expect, test } from "vitest";
import { exitOf } from "../../audit/print.ts";
import { encodeEntry } from "../../src/core/entry.ts";
import { leafHash } from "../../src/core/hash.ts";
import { auditFiles, filesOf, vkey } from "../audit/archive.ts";
import { TestLog } from "../audit/log.ts";
import { FourEyes } from "./four-eyes.ts";
import { ask } from "./house.ts";
import { IdIssuer } from "./id-issuer.ts";

const [ISSUER, ...OTHERS] = (["RS256", "ES256", "ES384", "EdDSA"] as const).map(
  (alg) => new IdIssuer(`https://${alg.toLowerCase()}.example`, alg),
);

let desk: FourEyes;
beforeAll(async () => {
  desk = await FourEyes.open(ISSUER, OTHERS);
});
afterAll(() => desk.house.close());

test("all that two persons decide at the service, by whichever algorithm, is proven from the log alone", async () => {
  for (const issuer of [ISSUER, ...OTHERS]) {
    const token = await issuer?.bearer("2", ["approver"]);
    if (issuer === undefined || token === undefined) throw new Error("no issuer");
    const answer = await desk.approve(await desk.opened(), { issuer, token });
    expect([answer.status, answer.text]).toEqual([201, expect.any(String)]);
  }
  await desk.systems(["plan"]);
  const account = {
    ...{ account_id: "A-1", namespace_id: "", source: "by hand", source_version: "1" },
    subscription_id: "S-1",
  };
  const accounted = await desk.approve(await desk.opened({ action: "account", content: account }));
  expect([accounted.status, accounted.text]).toEqual([201, expect.any(String)]);
  for (const [end, token] of [
    ["refusal", desk.approver],
    ["withdrawal", desk.proposer],
  ] as const) {
    const path = desk.path(await desk.opened());
    const ended = await ask(desk.house, `POST ${path}/${end}`, { token, json: { reason: "no" } });
    expect([end, ended.status]).toEqual([end, 201]);
  }
  const log = new TestLog(desk.log);
  const entries = (await desk.entries()).map(encodeEntry);
  log.entries.splice(0, 1, ...entries);
  log.leaves.splice(0, 1, ...entries.map((bytes) => leafHash(bytes)));
  const result = await auditFiles(filesOf(log), { log: desk.log, vkeys: [vkey(desk.log)] });
  expect([result.findings.listed, result.open.listed]).toEqual([[], []]);
  expect(exitOf(result)).toBe(0);
  expect(result.decisions.count).toBe(OTHERS.length + 1 + 4);
  expect(result.issuerKeys).toHaveLength(OTHERS.length + 1);
});
