/**
 * What the linter cannot see: which folder really imports which (paths resolved), and that core
 * asks no clock and rolls no dice. A rule lives here so that review never has to repeat it.
 */
import { readdirSync, readFileSync } from "node:fs";
import { dirname, join, normalize } from "node:path";
import { expect, test } from "vitest";

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

test("core reads no clock and no random numbers", () => {
  const impure = files.filter(
    (f) => f.startsWith("src/core/") && IMPURE.test(readFileSync(f, "utf8")),
  );
  expect(impure).toEqual([]);
});
