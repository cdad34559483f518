import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { mkdtempSync, readdirSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, expect, test } from "vitest";
import { lockFolder } from "../../src/agent/lock.ts";
import { compiled } from "../compile.ts";

const root = mkdtempSync(join(tmpdir(), "minutebook-lock-"));
const HOLD = `
  const { lockFolder } = await import(process.argv[1]);
  try {
    lockFolder(process.argv[2]);
    process.stdout.write("held");
    setInterval(() => undefined, 1000);
  } catch (error) {
    process.stdout.write(error.code);
  }
`;
const MODULE = compiled(new URL("../../src/agent/lock.ts", import.meta.url));

afterAll(() => {
  rmSync(root, { recursive: true });
});

function newFolder(): string {
  return mkdtempSync(join(root, "state-"));
}

/** A process that tries to hold the folder, and what it said about that. */
async function contender(folder: string): Promise<{ child: ChildProcess; said: string }> {
  const args = ["--input-type=module", "--eval", HOLD, MODULE, folder];
  const child = spawn(process.execPath, args, { stdio: ["ignore", "pipe", "inherit"] });
  const [said] = await once(child.stdout, "data");
  return { child, said: String(said) };
}

async function kill(child: ChildProcess): Promise<void> {
  if (child.exitCode !== null) return;
  child.kill("SIGKILL");
  await once(child, "exit");
}

test("a second agent on one state folder is told so, and gets it when the first has let go", () => {
  const folder = newFolder();
  const unlock = lockFolder(folder);
  expect(() => lockFolder(folder)).toThrow(/Another agent \(process \d+\) is using/);
  unlock();
  lockFolder(folder)();
});

test("a killed agent holds nothing", async () => {
  const folder = newFolder();
  const { child, said } = await contender(folder);
  expect(said).toBe("held");
  expect(() => lockFolder(folder)).toThrow(`process ${child.pid}`);
  await kill(child);
  lockFolder(folder)();
});

test("a process id that came again for another program holds nothing", () => {
  const folder = newFolder();
  writeFileSync(join(folder, "agent.lock.7"), JSON.stringify({ pid: process.pid, started: "1" }));
  lockFolder(folder);
  expect(readdirSync(folder)).toEqual(["agent.lock.8"]);
});

test("of six that take over from a dead agent at once, one holds the folder", async () => {
  const folder = newFolder();
  writeFileSync(join(folder, "agent.lock.1"), JSON.stringify({ pid: 1, started: "dead" }));
  const all = await Promise.all(Array.from({ length: 6 }, () => contender(folder)));
  expect(all.map(({ said }) => said).sort()).toEqual([
    "held",
    ...Array.from({ length: 5 }, () => "in-use"),
  ]);
  await Promise.all(all.map(({ child }) => kill(child)));
});

test("a lock that is no lock is named, not taken", () => {
  const folder = newFolder();
  writeFileSync(join(folder, "agent.lock.1"), "4711\n");
  expect(() => lockFolder(folder)).toThrow(/is not a lock of this agent/);
});
