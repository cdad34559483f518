import { mkdtempSync, readdirSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { expect, test } from "vitest";
import { type Source, SourceRegister } from "../../src/agent/sources.ts";

test("the register of files keeps every place, and no more segments than say them", () => {
  const folder = mkdtempSync(join(tmpdir(), "minutebook-sources-"));
  const source: Source = {
    id: 1,
    name: "usage-log-1.json",
    head: { bytes: 1, sha256: "" },
    offset: 0,
    size: 0,
    malformed: 0,
    unrouted: { count: 0, from: 0 },
    enrolments: 1,
  };
  for (let run = 0; run < 5; run++) {
    const register = new SourceRegister(folder, 600);
    for (let i = 0; i < 20; i++) register.update({ ...source, offset: run * 20 + i });
    register.close();
  }
  const register = new SourceRegister(folder, 600);
  expect(register.all()).toEqual([{ ...source, offset: 99 }]);
  expect(readdirSync(folder)).toHaveLength(1);
  register.close();
  rmSync(folder, { recursive: true });
});
