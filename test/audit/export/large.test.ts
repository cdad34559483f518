/** A file of 100,000 rows is checked in the memory that one of a hundred takes. */
import { spawnSync } from "node:child_process";
import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { afterAll, expect, test } from "vitest";
import type { Row } from "../../../src/core/export/tables.ts";
import { compiled } from "../../compile.ts";
import { filesOf, vkeyText } from "../archive.ts";
import { openHome, store } from "../command.ts";
import { SALT, TestLog } from "../log.ts";
import { exported } from "./case.ts";

const PROGRAM = compiled(new URL("../../../audit/cli.ts", import.meta.url));
const ENTRIES = 800;
const LINES = 125;
const MONTH = "2026-11-01";
/** Of the heap; all rows of the file as objects would be many times as much. */
const HEAP = "--max-old-space-size=64";

const home = openHome();
afterAll(() => home.remove());

test("100,000 rows are checked in constant memory, and one wrong digit among them is found", async () => {
  const log = new TestLog();
  const rows: Row[] = [];
  for (let at = 0; at < ENTRIES; at += 1) {
    const lines = Array.from({ length: LINES }, (_, line) => ({
      ...{ amount: "60000.000001", entry: "", namespace_id: String(at * LINES + line + 1) },
      ...{ project_id: "", reverses: "", usage_month: MONTH },
    }));
    const index = log.force("adjustment", {
      ...{ approval: "", by: "finance", billing_month: MONTH, credit_run: "", first_line: "0" },
      ...{ lines, reason: "incident", salt: SALT, ticket: "T" },
    });
    for (const { namespace_id } of lines) {
      const figures = ["0.000000", "60000.000001", "60000.000001", "60000.000001", index];
      rows.push([namespace_id, MONTH, "1.00", "0", "hosted", MONTH, "0", "0", ...figures]);
    }
  }
  const archive = join(home.folder, "archive");
  store(archive, filesOf(log));
  const made = await exported(log, { name: "monthly_namespace", rows });
  const at = (name: string): string => join(home.folder, name);
  writeFileSync(at("json"), made.json);
  writeFileSync(at("note"), made.note);
  const manifest = ["--manifest", at("json"), "--note", at("note"), "--vkey", vkeyText(), "--json"];
  // One digit of one row: all others are seen to be right by the same look.
  const text = Buffer.from(made.file).toString("utf8");
  writeFileSync(at("file"), text.replace("\r\n77777,2026-11-01,1.00", "\r\n77777,2026-11-01,1.01"));
  const args = [HEAP, PROGRAM, "check-export", at("file"), archive, ...manifest];
  const { status, stdout } = spawnSync(process.execPath, args, { encoding: "utf8" });
  expect(status).toBe(1);
  expect(JSON.parse(stdout).findings.listed).toEqual([
    { code: "export-file", detail: expect.any(String) },
    { code: "export-row", detail: "row 77777: amount_used 1.01, not 1.00" },
  ]);
});
