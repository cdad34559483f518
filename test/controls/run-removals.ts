/**
 * `npm run controls [-- CONTROL…]`: takes each control of removals.ts out of a copy of this repository, and runs
 * the test that shows it. One process of vitest runs all of them: each of its own would compile, start PostgreSQL
 * and migrate again.
 */
import { execFile, execFileSync } from "node:child_process";
import { cpSync, mkdtempSync, readFileSync, rmSync, symlinkSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { setTimeout as delay } from "node:timers/promises";
import { parseArgs, promisify } from "node:util";
import { createVitest, type Reporter, type Vitest } from "vitest/node";
import type { Removal } from "./removal.ts";
import { REMOVALS } from "./removals.ts";

const HELP = `usage: npm run controls [-- CONTROL…]

Takes controls of docs/controls.md out of a copy of this repository, and runs the test that shows each: it has to
pass with the control, and to fail without it. Without a CONTROL all that are taken out here, in a quarter of an hour.

  npm run controls
  npm run controls -- KM-2 CM-3

Status 0 where each came out so, 1 where one did not, 2 for a wrong call, 130 where it was interrupted.
`;

const ROOT = join(import.meta.dirname, "../..");
/** A test that hangs is ended by vitest after one; what is cut may end in a loop that nothing interrupts. */
const MINUTES_MAX = 30;
/** As a shell has it. */
const INTERRUPTED = 130;

interface Running {
  vitest: Vitest;
  /** Folder. */
  copy: string;
  signal: AbortSignal;
}

const controls = new Set(REMOVALS.map(({ control }) => control));
const { values, positionals } = asked();
const unknown = positionals.filter((control) => !controls.has(control));
if (values.help) process.stdout.write(HELP);
else if (unknown.length > 0)
  wrong(`no control ${unknown.join(", ")}; there are ${[...controls].join(", ")}`);
else process.exitCode = await takeOut(REMOVALS.filter(isAsked));

function asked() {
  try {
    return parseArgs({
      allowPositionals: true,
      options: { help: { type: "boolean", short: "h", default: false } },
    });
  } catch (error) {
    wrong(error instanceof Error ? error.message : String(error));
    process.exit();
  }
}

function wrong(reason: string): void {
  process.stderr.write(`${reason}\n\n${HELP}`);
  process.exitCode = 2;
}

function isAsked({ control }: Removal): boolean {
  return positionals.length === 0 || positionals.includes(control);
}

/** @returns the status to end with */
async function takeOut(removals: readonly Removal[]): Promise<number> {
  const interrupt = new AbortController();
  const { signal } = interrupt;
  const copy = copyOf(ROOT);
  // Some tests read files from where they are run.
  process.chdir(copy);
  try {
    // Vitest's own reporters would tell of tests that fail as they should.
    const reporter: Reporter = { onTestModuleEnd: (file) => progress(file.relativeModuleId) };
    // One file at a time: what runs beside another may take longer than it has.
    const options = {
      root: copy,
      watch: false,
      silent: true,
      maxWorkers: 1,
      reporters: [reporter],
    };
    const vitest = await createVitest("test", options);
    for (const name of ["SIGINT", "SIGTERM"]) {
      // Vitest's own listeners end the process before anything is put away.
      process.removeAllListeners(name).on(name, () => interrupt.abort());
    }
    try {
      return await judge({ vitest, copy, signal }, removals);
    } finally {
      await vitest.close();
    }
  } catch (error) {
    if (!signal.aborted) throw error;
    return INTERRUPTED;
  } finally {
    process.chdir(ROOT);
    rmSync(copy, { recursive: true, force: true });
  }
}

function progress(file: string): void {
  process.stderr.write(`     ran ${file}\n`);
}

async function judge(running: Running, removals: readonly Removal[]): Promise<number> {
  const whole = await tests(running, removals);
  let failed = 0;
  for (const [i, removal] of removals.entries()) {
    const fault = faultWith(whole(removal)) ?? (await faultWithout(running, removal));
    if (fault !== undefined) failed += 1;
    const said = fault === undefined ? "ok   " : "NOT  ";
    const { control, what } = removal;
    process.stdout.write(`${said}${i + 1}/${removals.length} ${control} ${what}${fault ?? ""}\n`);
  }
  process.stdout.write(`${removals.length - failed} passed, ${failed} failed\n`);
  return failed === 0 ? 0 : 1;
}

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

interface Tally {
  passed: number;
  failed: number;
}

/** Runs the tests of all of them at once; none is counted of a file that did not come to its tests. */
async function tests(
  { vitest, copy, signal }: Running,
  removals: readonly Removal[],
): Promise<(removal: Removal) => Tally> {
  // What some of them start are programs, which are compiled. Its end is waited for: it writes into the copy.
  await promisify(execFile)("node_modules/.bin/tsc", ["-b", "--noCheck"], { cwd: copy });
  signal.throwIfAborted();
  const titles = removals.map(({ title }) => title.replaceAll(/[\\^$.*+?()[\]{}|]/g, "\\$&"));
  vitest.setGlobalTestNamePattern(new RegExp(titles.join("|")));
  const files = new Set(removals.map(({ test }) => test));
  const found = await vitest.globTestSpecifications([...files]);
  const { testModules } = await inTime(vitest.runTestSpecifications(found), signal);
  const ran = testModules.flatMap((module) => [...module.children.allTests()]);
  return ({ test, title }) => {
    const states = ran
      .filter(({ module, name }) => module.moduleId === join(copy, test) && name.includes(title))
      .map((each) => each.result().state);
    const count = (state: string) => states.filter((each) => each === state).length;
    return { passed: count("passed"), failed: count("failed") };
  };
}

/** @throws Error where it does not end, or is interrupted */
async function inTime<T>(run: Promise<T>, signal: AbortSignal): Promise<T> {
  const over = new AbortController();
  const either = AbortSignal.any([signal, over.signal]);
  const late = delay(MINUTES_MAX * 60_000, undefined, { signal: either }).then(() => {
    throw new Error(`controls: no end in ${MINUTES_MAX} minutes`);
  });
  return await Promise.race([run, late]).finally(() => over.abort());
}

function faultWith({ passed, failed }: Tally): string | undefined {
  if (failed > 0) return `: ${failed} failed with it`;
  return passed === 0 ? ": the test did not run with it" : undefined;
}

async function faultWithout(running: Running, removal: Removal): Promise<string | undefined> {
  const path = join(running.copy, removal.file);
  const source = readFileSync(path, "utf8");
  const write = (text: string): void => {
    writeFileSync(path, text);
    running.vitest.invalidateFile(path);
  };
  write(source.replace(removal.text, () => removal.instead));
  try {
    const cut = await tests(running, [removal]);
    const { passed, failed } = cut(removal);
    if (failed > 0) return undefined;
    return passed > 0 ? `: ${passed} passed without it` : ": the test did not run without it";
  } finally {
    write(source);
  }
}
