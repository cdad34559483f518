/** What verifies runs in a browser too: neither Node nor a package of Node's is below it. */
import { existsSync, readdirSync, readFileSync } from "node:fs";
import { dirname, join, relative } from "node:path";
import { expect, test } from "vitest";
import { sha256, verifyNow } from "../../audit/native.ts";
import { selfTest } from "../../audit/self-test/self-test.ts";
import { verifyByPoints } from "../../src/core/ed25519.ts";
import { sha256 as pureSha256 } from "../../src/core/hash.ts";

const ROOT = join(import.meta.dirname, "../..");

/** Only these may know Node: where files, threads and terminals are. */
const OF_NODE = [
  "audit/cli.ts",
  "audit/command/",
  "audit/durable.ts",
  "audit/exclusive.ts",
  "audit/export/file/",
  "audit/extract/folder.ts",
  "audit/folder.ts",
  "audit/given.ts",
  "audit/native.ts",
  "audit/signing-key.ts",
  "audit/spill.ts",
  "audit/start-thread.ts",
  "audit/thread.ts",
  "audit/threads.ts",
  "audit/version.ts",
  "audit/watch/state.ts",
  "audit/witness/",
];
const PORTABLE = /^(?:zod|jose|@noble\/.*)$/;

const files = readdirSync(join(ROOT, "audit"), { recursive: true, encoding: "utf8" })
  .filter((name) => name.endsWith(".ts"))
  .map((name) => `audit/${name}`)
  .filter((name) => !OF_NODE.some((known) => name.startsWith(known)));

/** The file and all that it imports as values, in whatever number of steps. */
function closure(entry: string, seen = new Set<string>()): Set<string> {
  if (seen.has(entry)) return seen;
  seen.add(entry);
  for (const name of importsOf(entry)) {
    if (name.startsWith(".")) closure(relative(ROOT, join(ROOT, dirname(entry), name)), seen);
  }
  return seen;
}

function importsOf(file: string): string[] {
  const text = readFileSync(join(ROOT, file), "utf8").replace(/import type [^;]*;/g, "");
  return [...text.matchAll(/(?:from|import) "([^"]+)"/g)].map(([, name]) => name ?? "");
}

test("the list of what knows Node names only what is there", () => {
  expect(OF_NODE.filter((name) => !existsSync(join(ROOT, name)))).toEqual([]);
  expect(files).toContain("audit/verify.ts");
  expect(files).toContain("audit/http/source.ts");
});

test.each(files)("%s reaches neither Node nor a package of it", (file) => {
  for (const reached of closure(file)) {
    expect(
      OF_NODE.some((known) => reached.startsWith(known)),
      reached,
    ).toBe(false);
    for (const name of importsOf(reached)) {
      if (!name.startsWith(".")) expect(name, reached).toMatch(PORTABLE);
    }
    expect(readFileSync(join(ROOT, reached), "utf8"), reached).not.toMatch(
      /\b(?:Buffer|process)\./,
    );
  }
});

test("the known answers are the same with Node's hashes and signatures and with portable ones", async () => {
  for (const tools of [
    { hash: sha256, verify: verifyNow },
    { hash: pureSha256, verify: verifyByPoints },
  ]) {
    const tests = await selfTest(tools);
    expect(tests.filter(({ passed }) => !passed)).toEqual([]);
  }
});

test("a build that answers wrongly fails the self-test where it is wrong", async () => {
  const failed = async (tools: Parameters<typeof selfTest>[0]): Promise<string[]> =>
    (await selfTest(tools)).filter(({ passed }) => !passed).map(({ name }) => name);
  const honest = { hash: sha256, verify: verifyNow };
  expect(await failed({ ...honest, verify: () => true })).toEqual(["ed25519-bad"]);
  const deaf = await failed({ ...honest, verify: () => false });
  expect(deaf).toEqual([
    "ed25519-good",
    "golden-log",
    "tampered-twin",
    "golden-approval",
    "forged-approval",
  ]);
  const constant = await failed({ ...honest, hash: () => new Uint8Array(32) });
  expect(constant).toContain("rfc6962-roots");
});
