import { expect, test } from "vitest";
import { clockAnomaly, fact, Report } from "../../src/core/report.ts";
import { equal } from "../../src/core/text.ts";
import { instantText } from "../../src/core/unit.ts";
import { NOW, report } from "./history.ts";

test("a report of the documented shape is read as it is", () => {
  expect(Report.parse(report())).toEqual(report());
});

test.each([
  ["an unknown member", { ...report(), extra: "" }],
  ["an unknown member inside", { ...report(), job: { ...report().job, ref: "main" } }],
  ["a missing member", { ...report(), id: undefined }],
  ["a counter of 0", report({ counter: "0" })],
  ["a negative duration", report({ usage: { duration_ms: "-1" } })],
  ["a duration that is no integer", report({ usage: { duration_ms: "1.5" } })],
  ["a duration beyond 2^63−1", report({ usage: { duration_ms: "9223372036854775808" } })],
  ["an instant finer than milliseconds", report({ usage: { finished_at: `${NOW}0` } })],
  ["an empty uuid", report({ uuid: "" })],
  ["a NUL in a text", { ...report(), id: "a\u0000" }],
  ["a lone surrogate in a text", { ...report(), id: "\udc00" }],
])("T33, T13: a report with %s is refused by its schema", (_, candidate) => {
  expect(Report.safeParse(candidate).success).toBe(false);
});

test("a job number beyond 2^53 keeps its last digit", () => {
  const job = { id: "9007199254740993" };
  expect(Report.parse(report({ job })).job.id).toBe("9007199254740993");
});

test("the fact is what was measured: who signed, when, and under which counter is not in it", () => {
  const first = report();
  const again: Report = {
    ...report({ counter: "9" }),
    id: "another record",
    issued_at: "2030-01-01T00:00:00.000Z",
    runner: { executor: "shell", machine_id: "m", system_id: "s_2", uuid: first.runner.uuid },
  };
  expect(equal(fact(first), fact(again))).toBe(true);
});

test.each([
  ["duration", report({ usage: { duration_ms: "60001" } })],
  ["finish", report({ usage: { finished_at: "2026-11-20T12:00:00.001Z" } })],
  ["start", report({ usage: { started_at: "2026-11-20T11:59:00.001Z" } })],
  ["status", report({ usage: { status: "failed" } })],
  ["reason", report({ usage: { failure_reason: "script_failure" } })],
  ["project", report({ job: { project_id: "51" } })],
  ["namespace", report({ job: { root_namespace_id: "8" } })],
  ["pipeline", report({ job: { pipeline_id: "3" } })],
  ["runner", report({ uuid: "another" })],
])("T10: another %s is another fact", (_, other) => {
  expect(equal(fact(report()), fact(other))).toBe(false);
});

const START = Date.parse("2026-11-20T11:59:00.000Z");

test.each([
  ["at the tolerance of 2 s", 60_000, 62_000, false],
  ["beyond it", 60_000, 62_001, true],
  ["short by 2 s", 60_000, 58_000, false],
  ["shorter", 60_000, 57_999, true],
  ["at 0.5 % of a long build", 1_000_000, 1_005_000, false],
  ["beyond 0.5 %", 1_000_000, 1_005_001, true],
  ["backwards", 60_000, -1, true],
])("T13, G27: a clock %s is an anomaly or not, and never a refusal", (_, ms, span, anomaly) => {
  const usage = {
    ...report().usage,
    duration_ms: String(ms),
    started_at: instantText(START),
    finished_at: instantText(START + span),
  };
  expect(clockAnomaly(usage)).toBe(anomaly);
  expect(Report.safeParse(report({ usage })).success).toBe(true);
});
