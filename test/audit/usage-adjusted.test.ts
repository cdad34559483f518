/** Figures of the service are net: what adjustments add is in them, where it belongs. */
import { expect, test } from "vitest";
import { readUsageFile } from "../../audit/tally/usage.ts";
import type { Body } from "../../src/core/entry.ts";
import { auditFiles, filesOf } from "./archive.ts";
import { card, line, SALT, TestLog } from "./log.ts";

const MONTH = "2026-11-01";
const WHY = { approval: "", by: "finance", reason: "incident", salt: SALT, ticket: "CASE-1" };

/** Two builds of a minute each, and one that cost nothing; ten seconds and five are taken back. */
function adjusted(): TestLog {
  const log = new TestLog();
  log.write("rate_card", card());
  const agent = log.enrol(2, [line("runner-a")]);
  const entry = log.submit(agent);
  log.submit(agent, { project: "20" });
  log.submit(agent, { reason: "runner_system_failure" });
  const named = { namespace_id: "1", reverses: "", usage_month: MONTH };
  const body: Body<"adjustment"> = {
    ...{ ...WHY, billing_month: MONTH, credit_run: "", first_line: "0" },
    lines: [
      { ...named, amount: "-10000.000000", entry, project_id: "10" },
      { ...named, amount: "-5000.000000", entry: "", project_id: "" },
    ],
  };
  log.write("adjustment", body);
  return log;
}

const FIGURES = {
  ...{ jobs: "3", duration_ms: "180000", gross_compute_ms: "120000.000000" },
  ...{ adjustment_compute_ms: "-15000.000000", compute_ms: "105000.000000" },
  ...{ billable_compute_ms: "105000.000000", compute_minutes: "1.7500", amount_used: "1.75" },
  shared_runners_duration: "180",
};

test("figures of the service take adjustments in, by runner and machine as by month", async () => {
  const log = adjusted();
  const answer = { log: log.id, as_of: String(log.size), query: {}, totals: FIGURES };
  const machine = { billing_month: MONTH, machine_type: "small", runner: "7" };
  const charged = {
    ...FIGURES,
    ...{ adjustment_compute_ms: "-10000.000000", compute_ms: "110000.000000" },
    ...{ billable_compute_ms: "110000.000000", compute_minutes: "1.8333", amount_used: "1.83" },
  };
  const month = {
    ...{ billing_month: MONTH, machine_type: "", runner: "0", jobs: "0", duration_ms: "0" },
    ...{ gross_compute_ms: "0.000000", adjustment_compute_ms: "-5000.000000" },
    ...{ compute_ms: "-5000.000000", billable_compute_ms: "-5000.000000" },
    ...{ compute_minutes: "-0.0833", amount_used: "-0.08", shared_runners_duration: "0" },
  };
  for (const [group, rows] of [
    [["billing_month"], [{ billing_month: MONTH, ...FIGURES }]],
    [
      ["billing_month", "runner", "machine_type"],
      [{ ...machine, ...charged }, month],
    ],
  ]) {
    const file = readUsageFile("usage.json", JSON.stringify({ ...answer, group, rows }));
    const usage = file === undefined ? [] : [file];
    expect(usage).toHaveLength(1);
    const { findings } = await auditFiles(filesOf(log), { usage });
    expect(findings.listed).toEqual([]);
  }
  const before = {
    ...answer,
    group: ["billing_month"],
    rows: [{ billing_month: MONTH, ...charged }],
  };
  const file = readUsageFile("usage.json", JSON.stringify(before));
  const { findings } = await auditFiles(filesOf(log), { usage: file === undefined ? [] : [file] });
  expect([...findings.byCode.keys()]).toEqual(["usage-row", "usage-totals"]);
});
