import { readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import fc from "fast-check";
import { afterAll, afterEach, beforeAll, beforeEach, expect, test } from "vitest";
import { sha256, verifyNow } from "../../audit/native.ts";
import { EntryTree } from "../../audit/proof/entry-tree.ts";
import { prove } from "../../audit/proof/prove.ts";
import { memoryPiles } from "../../audit/tally/memory.ts";
import { encodeBundle } from "../../src/core/bundle.ts";
import { inclusionProof, leafNodes } from "../../src/core/proof.ts";
import { encodeHex } from "../../src/core/text.ts";
import { bundlePath, tilePath } from "../../src/core/tile.ts";
import { parseTlogProof } from "../../src/core/tlog-proof.ts";
import { checkpointOf, type Files, filesOf, memorySource, vkey, vkeyText } from "./archive.ts";
import { command, openHome, store } from "./command.ts";
import { longLog, smallLog } from "./honest.ts";
import { card, LOG_ID, line, OTHER_LOG_ID, TestLog } from "./log.ts";
import { type LogServer, serveFiles } from "./server.ts";

const home = openHome();
afterAll(() => home.remove());
const log = longLog(600);
const FILES = filesOf(log, [7, 300, 600]);
const VKEY = ["--vkey", vkeyText()];
/** Of the usage entry of job 1 in every log of smallLog. */
const USAGE = 4;

let folders = 0;
let folder = "";
let out = "";
beforeAll(() => store(join(home.folder, "honest"), FILES));
beforeEach(() => {
  folder = join(home.folder, String(folders++));
  out = `${folder}.tlog-proof`;
});
const servers: LogServer[] = [];
afterEach(async () => {
  for (const server of servers.splice(0)) await server.close();
});

async function proveIn(files: Files, ...args: string[]): Promise<{ exit: number; out: string }> {
  store(folder, files);
  return await command("prove", folder, ...VKEY, "--out", out, ...args);
}

test("a build is proven by its job from a folder, and the file carries its entry", async () => {
  const proved = await proveIn(FILES, "--job", "1");
  expect(proved).toMatchObject({ exit: 0, err: "", out: expect.stringContaining("PROVEN") });
  const proof = parseTlogProof(readFileSync(out, "utf8"));
  expect(proof?.index).toBe(BigInt(USAGE));
  expect(proof?.extra).toEqual(log.entries[USAGE]);
  expect(proof?.checkpoint).toBe(new TextDecoder().decode(FILES.get("checkpoint/600")));
});

test("any entry is proven by its index, under the checkpoint that is asked for", async () => {
  const proved = await proveIn(FILES, "--index", "256", "--size", "300");
  expect(proved.exit).toBe(0);
  const proof = parseTlogProof(readFileSync(out, "utf8"));
  expect(proof?.extra).toEqual(log.entries[256]);
  const read = leafNodes(log.leaves.slice(0, 300), sha256);
  expect(proof?.hashes).toEqual(inclusionProof(256n, 300n, read, sha256));
});

test("the same proof is made over HTTP", async () => {
  const server = await serveFiles(FILES);
  servers.push(server);
  const there = await command("prove", server.url, ...VKEY, "--job", "1", "--out", out);
  expect(there.exit).toBe(0);
  const remote = readFileSync(out, "utf8");
  await proveIn(FILES, "--job", "1");
  expect(readFileSync(out, "utf8")).toBe(remote);
});

test("whatever entry of a log of whatever size, tiles and entries give the oracle's proof", async () => {
  const place = fc
    .integer({ min: 1, max: 600 })
    .chain((size) =>
      fc.record({ size: fc.constant(size), index: fc.integer({ min: 0, max: size - 1 }) }),
    );
  await fc.assert(
    fc.asyncProperty(place, async ({ size, index }) => {
      const short = Object.assign(Object.create(log), {
        entries: log.entries.slice(0, size),
        leaves: log.leaves.slice(0, size),
      });
      const { text } = await prove(memorySource(filesOf(short, [size])), {
        vkeys: [vkey()],
        verify: verifyNow,
        hash: sha256,
        openPiles: memoryPiles,
        wanted: { index: BigInt(index) },
        size: undefined,
      });
      const read = leafNodes(short.leaves, sha256);
      const expected = inclusionProof(BigInt(index), BigInt(size), read, sha256);
      expect(parseTlogProof(text)?.hashes.map(encodeHex)).toEqual(expected.map(encodeHex));
    }),
    { numRuns: 40 },
  );
});

test("a tree of entries has no node that it was not told to keep", () => {
  const tree = new EntryTree(sha256);
  tree.add(log.leaves.slice(0, 256), false);
  expect(() => tree.read({ level: 0, index: 3n })).toThrow(/not kept/);
  expect(() => tree.read({ level: 9, index: 0n })).toThrow(/not kept/);
  expect(tree.read({ level: 8, index: 0n })).toHaveLength(32);
});

test("another entry that was altered makes tiles and entries part, and nothing is written", async () => {
  const files = new Map(FILES);
  const entries = log.entries.slice(256, 512);
  entries[9] = log.entries[0] ?? new Uint8Array();
  files.set(bundlePath(1n), encodeBundle(entries));
  const proved = await proveIn(files, "--job", "1");
  expect(proved).toMatchObject({ exit: 1, out: expect.stringContaining("proof-differs") });
  expect(() => readFileSync(out)).toThrow();
});

test("an entry that is not what the root covers is no proof", async () => {
  const files = new Map(FILES);
  const entries = log.entries.slice(0, 256);
  entries[20] = log.entries[21] ?? new Uint8Array();
  files.set(bundlePath(0n), encodeBundle(entries));
  const proved = await proveIn(files, "--index", "20");
  expect(proved).toMatchObject({ exit: 1, out: expect.stringContaining("entry-altered") });
});

test.each([
  ["tile-missing", (files: Files) => files.delete(tilePath(0, 0n))],
  ["tile-hash", (files: Files) => files.set(tilePath(0, 0n), new Uint8Array(8_192))],
  ["tile-width", (files: Files) => files.set(tilePath(0, 0n), new Uint8Array(8_000))],
  ["bundle-missing", (files: Files) => files.delete(bundlePath(1n))],
  ["bundle-width", (files: Files) => files.set(bundlePath(1n), new Uint8Array(3))],
  [
    "checkpoint-root",
    (f: Files) => f.set("checkpoint/600", checkpointOf(log, 600, new Uint8Array(32))),
  ],
  ["checkpoint-size", (f: Files) => f.set("checkpoint/600", checkpointOf(log, 300))],
  ["checkpoint-malformed", (f: Files) => f.set("checkpoint/600", new Uint8Array(9))],
] as const)("%s is named, and nothing is written", async (code, harm) => {
  const files = new Map(FILES);
  harm(files);
  const proved = await proveIn(files, "--job", "1");
  expect(proved).toMatchObject({ exit: 1, out: expect.stringContaining(code) });
  expect(() => readFileSync(out)).toThrow();
});

test("a job that was reported in both trackings is proven in the one that is named", async () => {
  const both = new TestLog();
  both.write("rate_card", card());
  both.write("rate_card", card({ tracking: "self_managed" }));
  const hosted = both.enrol(2, [line("runner-a")]);
  const own = line("runner-c", { runner_type: "group", tracking: "self_managed" });
  const other = both.enrol(3, [own], ["5"]);
  const first = both.submit(hosted, { job: "9" });
  const second = both.submit(other, { job: "9", uuid: "runner-c", namespace: "5" });
  const ambiguous = await proveIn(filesOf(both), "--job", "9");
  expect(ambiguous).toMatchObject({
    exit: 2,
    err: expect.stringContaining(`${first} and ${second}`),
  });
  for (const [tracking, index] of [
    ["hosted", first],
    ["self_managed", second],
  ] as const) {
    expect((await proveIn(filesOf(both), "--job", "9", "--tracking", tracking)).exit).toBe(0);
    expect(parseTlogProof(readFileSync(out, "utf8"))?.index).toBe(BigInt(index));
  }
});

test("what is not there, not asked for clearly, or not trusted cannot be looked at", async () => {
  for (const args of [
    [],
    ["--job", "1", "--index", "1"],
    ["--job", "77"],
    ["--index", "600"],
    ["--index", "1", "--size", "1"],
    ["--index", "1", "--size", "299"],
    ["--index", "-1"],
  ]) {
    expect([args, (await proveIn(FILES, ...args)).exit]).toEqual([args, 2]);
  }
  const foreign = ["--vkey", vkeyText(OTHER_LOG_ID), "--index", "1", "--out", out];
  expect((await command("prove", folder, ...foreign)).exit).toBe(2);
  store(folder, filesOf(smallLog(OTHER_LOG_ID)), OTHER_LOG_ID);
  expect((await proveIn(FILES, "--index", "1")).exit).toBe(2);
  const named = ["prove", folder, LOG_ID, ...VKEY, "--index", "1", "--out", out];
  expect((await command(...named)).exit).toBe(0);
  const nowhere = ["prove", folder, LOG_ID, ...VKEY, "--index", "1", "--out", join(out, "x")];
  expect((await command(...nowhere)).exit).toBe(2);
});

test("a proof that was there before is replaced only by one that holds", async () => {
  writeFileSync(out, "before");
  await proveIn(new Map([...FILES, [bundlePath(1n), new Uint8Array(3)]]), "--job", "1");
  expect(readFileSync(out, "utf8")).toBe("before");
  await proveIn(FILES, "--job", "1");
  expect(readFileSync(out, "utf8")).toMatch(/^c2sp\.org\/tlog-proof@v1\nextra /);
});
