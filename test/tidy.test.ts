/**
 * What the linter cannot see: which folder really imports which (paths resolved), and that core
 * asks no clock and rolls no dice. A rule lives here so that review never has to repeat it.
 */
import { readdirSync, readFileSync } from "node:fs";
import { dirname, join, normalize } from "node:path";
import { expect, test } from "vitest";
import { BODY } from "../src/core/entry.ts";

/** Folder to the folders it may import, itself included. Order is the way of a request, inwards. */
const MAY_IMPORT: Record<string, readonly string[]> = {
  "src/core": ["src/core"],
  "src/store": ["src/store", "src/core"],
  "src/format": ["src/format", "src/core"],
  "src/flow": ["src/flow", "src/store", "src/format", "src/core"],
  "src/http": ["src/http", "src/flow", "src/core"],
  "src/web": ["src/web", "src/flow", "src/core"],
  "src/agent": ["src/agent", "src/core"],
  audit: ["audit", "src/core"],
};

const IMPURE = /Date\.now\(|new Date\(\)|Math\.random|performance\./;

const files = ["src", "audit"].flatMap((root) =>
  readdirSync(root, { recursive: true, encoding: "utf8" })
    .filter((name) => /\.tsx?$/.test(name))
    .map((name) => join(root, name)),
);

/** Folder to the packages and built-ins it may import; a folder that is not named here may import any. */
const MAY_USE: Record<string, RegExp> = {
  "src/core": /^(?:zod|@noble\/.*)$/,
  "src/store": /^(?:postgres|ioredis|rate-limiter-flexible|@aws-sdk\/client-s3|node:.*)$/,
  "src/format": /^(?:csv-parse|csv-stringify.*|hyparquet|hyparquet-writer|node:.*)$/,
  "src/flow": /^(?:jose|lossless-json|sodium-native|zod|node:.*)$/,
  "src/http": /^(?:hono|hono\/.*|@hono\/.*|zod|node:.*)$/,
  "src/agent": /^(?:jose|lossless-json|cli-progress|commander|pino|zod|node:.*)$/,
  audit: /^(?:jose|commander|cli-progress|csv-parse|hyparquet|zod|@noble\/.*|node:.*)$/,
};

const tests = readdirSync("test", { recursive: true, encoding: "utf8" })
  .filter((name) => name.endsWith(".ts"))
  .map((name) => ({ name, text: readFileSync(join("test", name), "utf8") }));

const WAIT = /\b(?:vi\.wait(?:Until|For)|expect\s*\.poll)\(/g;
/** At the end of such a call: a number, options that name one, or a constant. */
const PATIENT =
  /(?:,\s*(?:\d{2,}_000|[A-Z_]{4,}),?|\btimeout: (?:\d{2,}_000|[A-Z_]+)[^}]*\},?)\s*\)$/;

/** The call that begins there, to its closing bracket. */
function callAt(text: string, from: number): string {
  let end = text.indexOf("(", from) + 1;
  for (let open = 1; open > 0 && end < text.length; end += 1) {
    if (text[end] === "(") open += 1;
    if (text[end] === ")") open -= 1;
  }
  return text.slice(from, end);
}

const folderOf = (file: string): string | undefined =>
  Object.keys(MAY_IMPORT).find((folder) => file.startsWith(`${folder}/`));

test.each(files)("%s imports only what its folder may", (file) => {
  const allowed = MAY_IMPORT[folderOf(file) ?? ""];
  if (allowed === undefined) return;
  for (const [, path] of readFileSync(file, "utf8").matchAll(/from "(\.[^"]+)"/g)) {
    const target = normalize(join(dirname(file), path ?? ""));
    expect(allowed, `${file} -> ${target}`).toContain(folderOf(target));
  }
});

test.each(files)("%s uses only the packages that its folder may", (file) => {
  const allowed = MAY_USE[folderOf(file) ?? ""];
  if (allowed === undefined) return;
  for (const [, name] of readFileSync(file, "utf8").matchAll(/from "([^."][^"]*)"/g)) {
    expect(name, file).toMatch(allowed);
  }
});

test("whoever says a wrong value to a command is told what it expects", () => {
  const said = files.flatMap((file) => [
    ...readFileSync(file, "utf8").matchAll(/new InvalidArgumentError\(\s*(.{9})/g),
  ]);
  expect(said.length).toBeGreaterThan(10);
  expect(said.filter(([, text]) => !/^["`]Expected$/.test(text ?? ""))).toEqual([]);
});

test("each kind of entry, and nothing else, stands in the design's table of kinds", () => {
  const [, section = ""] = readFileSync("docs/design.md", "utf8").split("\n## Entry kinds\n");
  const [table = ""] = section.split("\n## ");
  const cells = [...table.matchAll(/^\| (`.*?) \|/gm)].flatMap(([, cell = ""]) => cell.split(", "));
  expect(cells.sort()).toEqual(
    Object.keys(BODY)
      .map((kind) => `\`${kind}\``)
      .sort(),
  );
});

test("core reads no clock and no random numbers", () => {
  const impure = files.filter(
    (f) => f.startsWith("src/core/") && IMPURE.test(readFileSync(f, "utf8")),
  );
  expect(impure).toEqual([]);
});

test("what a test waits for has ten seconds or more: by default it has one, which a busy machine may need for nothing", () => {
  const calls = tests.flatMap(({ name, text }) =>
    [...text.matchAll(WAIT)].map(({ index }) => ({ name, call: callAt(text, index) })),
  );
  expect(calls.length).toBeGreaterThan(100);
  expect(calls.filter(({ call }) => !PATIENT.test(call))).toEqual([]);
});

test("no test has less time than the others", () => {
  const hurried = tests.filter(({ text }) =>
    /^(?:\}, [1-5]?\d_000\);| {2}[1-5]?\d_000,)$/m.test(text),
  );
  expect(hurried.map(({ name }) => name)).toEqual([]);
});
