import { mkdtempSync, readdirSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, expect, test } from "vitest";
import { buildModule } from "./page.ts";

const folder = mkdtempSync(join(tmpdir(), "audit-module-"));
afterAll(() => rmSync(folder, { recursive: true }));
let text = "";
beforeAll(async () => {
  await buildModule(folder);
  text = readFileSync(join(folder, "minutebook-audit.js"), "utf8");
});

test("what verifies is one ES module with these exports and no others", async () => {
  expect(readdirSync(folder)).toEqual(["minutebook-audit.js"]);
  const module: object = await import(/* @vite-ignore */ join(folder, "minutebook-audit.js"));
  expect(Object.keys(module).sort()).toEqual(["checkProof", "openCheckpoint", "verifyLog"]);
});

test("no dependency is left outside of it, and no Node API is in it", () => {
  expect(text).not.toMatch(/^\s*(?:import|export)\b[^;]*\bfrom\b/m);
  expect(text).not.toMatch(/\bimport\s*\(/);
  expect(text).not.toMatch(/\brequire\s*\(/);
  expect(text).not.toMatch(/["']node:/);
  expect(text).not.toMatch(/\b(?:Buffer|process|__dirname)\s*[.[]/);
});
