import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, afterEach, expect, test, vi } from "vitest";
import { findChromium, launchChromium } from "../chromium.ts";

const folder = mkdtempSync(join(tmpdir(), "chromium-"));
afterAll(() => rmSync(folder, { recursive: true }));
afterEach(() => vi.unstubAllEnvs());

function program(name: string, script: string): string {
  const path = join(folder, name);
  writeFileSync(path, `#!/bin/sh\n${script}\n`, { mode: 0o755 });
  return path;
}

test("a program that only says where else to look is no Chromium", async () => {
  // What Ubuntu installs as chromium-browser where there is no snap.
  const pointer = program("pointer", "echo 'requires the chromium snap to be installed'; exit 1");
  vi.stubEnv("CHROMIUM", pointer);
  expect(findChromium()).toBeUndefined();
  await expect(launchChromium()).rejects.toThrow(/test\/prepare\.ts/);
  vi.stubEnv("CHROMIUM", program("other", "echo 'Another Browser 1.0'"));
  expect(findChromium()).toBeUndefined();
});

test("the one that is named is taken, by its path or by its name on the path", () => {
  const path = program("own-chromium", "echo 'Chromium 150.0'");
  vi.stubEnv("CHROMIUM", path);
  expect(findChromium()).toBe(path);
  vi.stubEnv("PATH", `${folder}:${process.env["PATH"]}`);
  vi.stubEnv("CHROMIUM", "own-chromium");
  expect(findChromium()).toBe(path);
});
