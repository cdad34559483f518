import { mkdtempSync, readdirSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, expect, test } from "vitest";
import { Register } from "../../../src/agent/relay/register.ts";

const MINUTE = 60_000;
const GIVEN = {
  id: "42",
  uniqueId: "instance",
  runner: "runner",
  projectId: "1",
  rootNamespaceId: "2",
  timeoutMs: "3600000",
  token: undefined,
};

let folder: string;
let now: number;
const notices: string[] = [];

beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), "minutebook-register-"));
  now = 1_000;
  notices.length = 0;
});

afterEach(() => rmSync(folder, { recursive: true, force: true }));

function open(boot = "boot"): Register {
  const onNotice = (sentence: string): number => notices.push(sentence);
  return new Register({ folder, boot, clock: () => now, onNotice });
}

function begun(register: Register, id = "42"): void {
  register.give({ ...GIVEN, id }, "s_1");
  register.begin(id);
}

function elapsed(register: Register): string[] {
  return register.running().known.map(({ job }) => job.elapsed_ms);
}

test("a relay that was killed knows its jobs, and how long they have run, when it starts again", () => {
  begun(open());
  now += 5 * MINUTE;
  const register = open();
  expect(elapsed(register)).toEqual([String(5 * MINUTE)]);
  expect(register.get("42")).toMatchObject({ told: false, begun: 1_000 });
});

test("a job that was given and not begun, and one that was told, are so after a restart too", () => {
  const register = open();
  register.give(GIVEN, "s_1");
  begun(register, "43");
  const told = register.get("43");
  if (told === undefined) throw new Error("no job");
  told.told = true;
  register.keep("43", told);
  const again = open();
  expect(again.get("42")).toMatchObject({ begun: undefined });
  expect(again.get("43")).toMatchObject({ told: true });
  expect(again.running().known.map(({ job }) => job.id)).toEqual(["43"]);
});

test("jobs do not outlive the host: after another start of it they are forgotten", () => {
  begun(open());
  expect(open("another boot").running().known).toEqual([]);
  begun(open(""));
  now = 500; // where no start has a name, a clock that is behind tells it
  expect(open("").running().known).toEqual([]);
  expect(readdirSync(folder)).toEqual([]);
});

test("a job whose runner is silent freezes, and goes on with all its time once the runner speaks", () => {
  const register = open();
  begun(register);
  now += 6 * MINUTE;
  expect(register.running()).toEqual({ known: [], unknown: 0 });
  const job = register.get("42");
  if (job === undefined) throw new Error("no job");
  register.heard(job);
  expect(elapsed(register)).toEqual([String(6 * MINUTE)]);
});

test("a job of which nobody spoke for two hours is forgotten", () => {
  const register = open();
  begun(register);
  now += 121 * MINUTE;
  register.running();
  expect(register.get("42")).toBeUndefined();
  expect(readdirSync(folder)).toEqual([]);
});

test("a job that nobody announced is counted while it runs, and never on disk", () => {
  const register = open();
  register.begin("42");
  expect(register.running()).toEqual({ known: [], unknown: 1 });
  expect(readdirSync(folder)).toEqual([]);
  register.end("42");
  expect(register.running().unknown).toBe(0);
});

test("there are never more than 10,000: the oldest makes way", () => {
  const register = open();
  for (let id = 1; id <= 10_001; id++) register.begin(String(id));
  expect(register.running().unknown).toBe(10_000);
  expect(register.get("1")).toBeUndefined();
});

test("what a crash or somebody else left in the folder is removed", () => {
  writeFileSync(join(folder, "7.json"), '{"v":"1"');
  writeFileSync(join(folder, "8.json.tmp"), "");
  writeFileSync(join(folder, "9.json"), "{}");
  expect(open().running()).toEqual({ known: [], unknown: 0 });
  expect(readdirSync(folder)).toEqual([]);
});

test("a disk that takes nothing is said, and the job goes on", () => {
  const register = open();
  rmSync(folder, { recursive: true });
  begun(register);
  expect(elapsed(register)).toEqual(["0"]);
  expect(notices[0]).toMatch(
    /42\.json cannot be written \(ENOENT\): a restart will forget this job\./,
  );
});
