/** What a log is under: who may approve, what is billed, and which systems act by themselves. */
import { beforeAll, expect, test } from "vitest";
import type { Body } from "../../../src/core/entry.ts";
import { auditFiles, filesOf, said } from "../archive.ts";
import { APPROVERS, Deciding, type SigningKey, signingKey } from "../deciding.ts";
import { card, LONG_AGO, line, SALT, TestLog } from "../log.ts";

let key: SigningKey;
beforeAll(async () => {
  key = await signingKey("ES256", "key");
});

async function codes({ log }: Deciding): Promise<string[]> {
  return said(await auditFiles(filesOf(log))).codes;
}

const MODE = { billing_from: LONG_AGO, by: "p_first", control: "dual" as const, sources: [] };

test.each<[string, Partial<Body<"mode">>]>([
  ["mode-control", { control: "single" }],
  ["mode-billing-from", { billing_from: "2027-01-01T00:00:00.000Z" }],
  ["mode-sources", { sources: ["minutebook/credit_run"] }],
])("%s: a mode with %j is found, whoever approved it", async (code, change) => {
  const two = new Deciding(key);
  const body = { ...MODE, approval: "", salt: SALT, ...change };
  two.log.write("mode", { ...body, approval: await two.decide("mode", body) });
  expect(await codes(two)).toEqual([code]);
});

test("a role mapping that leaves nobody to approve, or bounds a role that sees all, is found", async () => {
  const [approver] = APPROVERS;
  const bound = { ...APPROVERS[1], namespaces: ["1"] };
  for (const [grants, code] of [
    [[], "approver-needed"],
    [[approver, bound], "role-bound"],
  ]) {
    const two = new Deciding(key);
    const body = { approval: "", by: "p_first", grants, salt: SALT } as Body<"role_mapping">;
    two.log.write("role_mapping", { ...body, approval: await two.decide("role_mapping", body) });
    expect(await codes(two)).toEqual([code]);
  }
});

test("only the first role mapping needs nobody's approval", async () => {
  const two = new Deciding(key);
  const body = { approval: "", by: "operator", grants: APPROVERS, salt: SALT };
  two.log.write("role_mapping", body);
  expect(await codes(two)).toEqual(["approval-required"]);
});

test("usage is rated by the newest mode before it", async () => {
  const log = new TestLog(undefined, { billing_from: "2027-01-01T00:00:00.000Z" });
  log.write("rate_card", card());
  const agent = log.enrol(2, [line("runner-a")]);
  log.submit(agent, { job: "1" });
  const body = { ...MODE, approval: "", control: "single" as const, salt: SALT };
  log.write("mode", { ...body, billing_from: "2026-12-01T00:00:00.000Z" });
  log.at = "2026-12-02T00:00:00.000Z";
  log.submit(agent, { job: "2" });
  const { findings, months } = await auditFiles(filesOf(log));
  expect(findings.listed).toEqual([]);
  expect(months.map(({ billable }) => billable > 0n)).toEqual([false, true]);
});
