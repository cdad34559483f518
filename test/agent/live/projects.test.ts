import { appendFileSync, mkdtempSync, rmSync, truncateSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, expect, test } from "vitest";
import { ProjectMap } from "../../../src/agent/live/projects.ts";
import { UNIQUE_ID, usageLine } from "../records.ts";

const FILE = "usage-log-2026-11-28-23-59-59.123.json";

let root: string;

beforeEach(() => {
  root = mkdtempSync(join(tmpdir(), "minutebook-projects-"));
});

afterEach(() => rmSync(root, { recursive: true }));

function lineOf(project: string, id = 50010): string {
  const line = usageLine().replace(
    "https://gitlab.example/x",
    `https://gitlab.example/${project}/-/jobs/1`,
  );
  return `${line.replace('"project":{"id":50010', `"project":{"id":${id}`)}\n`;
}

function open(): ProjectMap {
  return new ProjectMap(join(root, "live"), root);
}

test("what a usage log says of a project is known, also after a restart without that log", () => {
  writeFileSync(join(root, FILE), lineOf("g/p"));
  open().learn();
  rmSync(join(root, FILE));
  const map = open();
  map.learn();
  expect(map.get("https://gitlab.example/g/p")).toEqual({
    unique_id: UNIQUE_ID,
    project_id: "50010",
    root_namespace_id: "1001",
    system_id: "s_1818892f902b",
  });
  expect(map.get("https://gitlab.example/g")).toBeUndefined();
});

test("lines that come later are learnt, torn ones once they are whole, and the newest word counts", () => {
  const map = open();
  const line = lineOf("g/p");
  writeFileSync(join(root, FILE), line.slice(0, 40));
  map.learn();
  expect(map.get("https://gitlab.example/g/p")).toBeUndefined();
  appendFileSync(join(root, FILE), line.slice(40));
  map.learn();
  expect(map.get("https://gitlab.example/g/p")?.project_id).toBe("50010");
  appendFileSync(join(root, FILE), lineOf("g/p", 7));
  map.learn();
  expect(map.get("https://gitlab.example/g/p")?.project_id).toBe("7");
});

test("a file that was replaced by a shorter one is read from its start", () => {
  const map = open();
  writeFileSync(join(root, FILE), lineOf("g/p") + lineOf("g/q"));
  map.learn();
  truncateSync(join(root, FILE));
  appendFileSync(join(root, FILE), lineOf("g/r"));
  map.learn();
  expect(map.get("https://gitlab.example/g/r")).toBeDefined();
});

test("malformed lines and those of an old GitLab teach nothing", () => {
  const old = lineOf("g/old").replace('"root_namespace":{"id":1001}', '"root_namespace":{"id":0}');
  writeFileSync(join(root, FILE), `{"job":\n\xff\n${old}${lineOf("g/p")}`);
  const map = open();
  map.learn();
  expect(map.get("https://gitlab.example/g/old")).toBeUndefined();
  expect(map.get("https://gitlab.example/g/p")).toBeDefined();
});

test("the map is bounded: whoever ran no job for longest is forgotten", () => {
  const map = open();
  const line = lineOf("g/P");
  const lines = (from: number, to: number): string =>
    Array.from({ length: to - from }, (_, i) => line.replace("/P/", `/${from + i}/`)).join("");
  writeFileSync(join(root, FILE), lines(0, 10_000));
  map.learn();
  appendFileSync(join(root, FILE), lines(0, 1) + lines(10_000, 10_001));
  map.learn();
  expect(map.get("https://gitlab.example/g/0")).toBeDefined();
  expect(map.get("https://gitlab.example/g/1")).toBeUndefined();
  expect(map.get("https://gitlab.example/g/10000")).toBeDefined();
});

test("a folder that cannot be read is said", () => {
  const map = new ProjectMap(join(root, "live"), join(root, "nowhere"));
  expect(() => map.learn()).toThrow("nowhere cannot be read (ENOENT).");
});
