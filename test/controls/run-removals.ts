/**
 * `npm run controls [-- CONTROL…]`: takes each control of removals.ts out of a copy of this repository, and runs the
 * test that shows it, once with the control and once without. Status 1 where it does not pass with it, or
 * does not fail without it.
 */
import { execFileSync, spawnSync } from "node:child_process";
import { cpSync, mkdtempSync, readFileSync, rmSync, symlinkSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { REMOVALS, type Removal } from "./removals.ts";

const ROOT = join(import.meta.dirname, "../..");
const MINUTES_MAX = 5;

/** What is under version control, with the packages that are installed. */
function copyOf(root: string): string {
  const copy = mkdtempSync(join(tmpdir(), "minutebook-controls-"));
  const files = execFileSync("git", ["ls-files", "-z"], { cwd: root, encoding: "utf8" });
  for (const file of files.split("\0").filter((name) => name !== "")) {
    cpSync(join(root, file), join(copy, file));
  }
  symlinkSync(join(root, "node_modules"), join(copy, "node_modules"));
  return copy;
}

/** How many tests passed and failed; none of either where it did not come to its tests. */
function outcome(cwd: string, { test, title }: Removal): { passed: number; failed: number } {
  const named = title.replaceAll(/[\\^$.*+?()[\]{}|]/g, "\\$&");
  const args = ["run", test, "-t", named, "--reporter=json", "--silent"];
  const { stdout } = spawnSync("node_modules/.bin/vitest", args, {
    ...{ cwd, encoding: "utf8", timeout: MINUTES_MAX * 60_000 },
    maxBuffer: 256 * 1024 * 1024,
  });
  const [report] = /^\{"numTotalTestSuites".*$/m.exec(stdout) ?? ["{}"];
  const { numFailedTests = 0, numPassedTests = 0 } = JSON.parse(report);
  return { passed: numPassedTests, failed: numFailedTests };
}

function failsWithout(copy: string, removal: Removal): boolean {
  const path = join(copy, removal.file);
  const source = readFileSync(path, "utf8");
  const whole = outcome(copy, removal);
  writeFileSync(
    path,
    source.replace(removal.text, () => removal.instead),
  );
  const cut = outcome(copy, removal);
  writeFileSync(path, source);
  const holds = whole.passed > 0 && whole.failed === 0 && cut.failed > 0;
  const seen = `with it ${whole.passed} passed, ${whole.failed} failed; without it ${cut.failed} failed`;
  process.stdout.write(`${holds ? "ok  " : "NOT "} ${removal.control} ${removal.what}: ${seen}\n`);
  return holds;
}

const asked = process.argv.slice(2);
const removals = REMOVALS.filter(({ control }) => asked.length === 0 || asked.includes(control));
const copy = copyOf(ROOT);
try {
  const failed = removals.filter((removal) => !failsWithout(copy, removal));
  process.stdout.write(`${removals.length - failed.length} passed, ${failed.length} failed\n`);
  if (failed.length > 0 || removals.length === 0) process.exitCode = 1;
} finally {
  rmSync(copy, { recursive: true, force: true });
}
