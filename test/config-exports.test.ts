import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, expect, test } from "vitest";
import { readConfig } from "../src/config.ts";
import { ConfigError } from "../src/config-error.ts";
import { LOG } from "./core/history.ts";

const folder = mkdtempSync(join(tmpdir(), "minutebook-schedule-"));
afterAll(() => rmSync(folder, { recursive: true }));

function scheduled(rules: unknown) {
  const EXPORTS_FILE = join(folder, "exports.json");
  writeFileSync(EXPORTS_FILE, JSON.stringify(rules));
  return readConfig({ EXPORTS_FILE }).exports.rules;
}

const RULE = { name: "portal", format: "parquet", every: "month_closed", logs: "*" };

test("exports are kept where and as long as it is said", () => {
  const { exports } = readConfig({ EXPORT_URL: "s3://finance/x", EXPORT_DAYS: "400" });
  expect(exports).toMatchObject({ url: "s3://finance/x", keptMs: 34_560_000_000, rules: [] });
});

test("a schedule is the rules of its file", () => {
  const rules = [
    { ...RULE, to: "s3://finance/minutebook", credit_minutes: "100" },
    { name: "entries", format: "csv", every: "day", logs: [LOG] },
  ];
  expect(scheduled(rules)).toEqual(rules);
});

test.each([
  ["another interval", [{ ...RULE, every: "hour" }]],
  ["a month, which the schedule itself says", [{ ...RULE, month: "2026-10-01" }]],
  ["a member that the file does not have", [{ ...RULE, name: "entries", credit_minutes: "100" }]],
  ["no log", [{ ...RULE, logs: [] }]],
  ["an unknown member", [{ ...RULE, more: true }]],
  ["no credit at all", [{ ...RULE, credit_minutes: "0" }]],
  ["a version of FOCUS that is not known", [{ ...RULE, name: "focus", focus_version: "9.9" }]],
  ["a price list of its own", [{ ...RULE, name: "focus", prices_sha256: `${"A".repeat(43)}=` }]],
  ["a place of another kind", [{ ...RULE, to: "ftp://x/y" }]],
  ["a folder of another machine", [{ ...RULE, to: "file://elsewhere/exports" }]],
  ["a bucket that keeps what is there", [{ ...RULE, to: "s3://bkt?lock=compliance&lock_days=3" }]],
  ["a bucket's parameter that there is not", [{ ...RULE, to: "s3://bkt?regoin=eu" }]],
  ["no list", RULE],
])("a schedule with %s is refused by its file's name", (_, rules) => {
  expect(() => scheduled(rules)).toThrow(ConfigError);
  expect(() => scheduled(rules)).toThrow("exports.json: ");
});
