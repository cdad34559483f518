import { readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { afterAll, afterEach, expect, test } from "vitest";
import { EMPTY_ROOT } from "../../src/core/hash.ts";
import { testKey } from "../signing.ts";
import { checkpointOf, type Files, filesOf, signer, vkeyText } from "./archive.ts";
import { command, type Ended, openHome, store } from "./command.ts";
import { longLog } from "./honest.ts";
import { LOG_ID, OTHER_LOG_ID } from "./log.ts";
import { type Lie, serveFiles } from "./server.ts";

const home = openHome();
afterAll(() => home.remove());
const log = longLog(700);
const SHORT = filesOf(log, [300]);
const LONG = filesOf(log, [300, 700]);

/** The same log up to some entry, and from there on another truth, honestly signed. */
function forkAt(index: number, size: number): Files {
  const fork = longLog(index);
  while (fork.size < size) fork.force("conflict", { jws: "another truth", stands: "0" });
  return filesOf(fork, [size]);
}

let folders = 0;
function kept(files: Files, id = LOG_ID): string {
  const folder = join(home.folder, String(folders++));
  store(folder, files, id);
  return join(folder, id);
}

async function diff(a: Files, b: Files): Promise<Ended> {
  return await command("diff", kept(a), kept(b), "--vkey", vkeyText());
}

test("one log that goes on where its copy ends is the same log, whichever comes first", async () => {
  for (const [a, b] of [
    [SHORT, LONG],
    [LONG, SHORT],
    [LONG, LONG],
  ] as const) {
    const { exit, out } = await diff(a, b);
    expect([exit, out]).toEqual([0, expect.stringContaining("SAME")]);
  }
});

test.each([0, 1, 255, 256, 257, 299].map((index) => [Math.max(index, 7)]))(
  "of two truths the first entry that differs is named, and both are evidence: %i",
  async (index) => {
    const { exit, out } = await diff(LONG, forkAt(index, 300));
    expect(exit).toBe(1);
    expect(out).toContain(`entry ${index} is the first that differs`);
    expect(out).toContain("a split view");
    expect(out).toContain("\n700\n");
    expect(out).toContain("\n300\n");
  },
);

test("two roots that were signed for one size are told, though the entries are the same", async () => {
  const other = new Map(LONG).set("checkpoint/700", checkpointOf(log, 700, new Uint8Array(32)));
  const { exit, out } = await diff(LONG, other);
  expect([exit, out]).toEqual([1, expect.stringContaining("do not give the root signed for 700")]);
});

test("two roots that were signed for one size are a split view though no entry is to be had", async () => {
  const fork = forkAt(290, 700);
  for (const path of [...fork.keys()]) if (path.startsWith("tile/")) fork.delete(path);
  const { err, exit, out } = await diff(LONG, fork);
  expect([exit, err]).toEqual([1, expect.stringContaining("has no entry 0")]);
  expect(out).toContain("a split view");
  expect(out.match(/^---- /gm)).toHaveLength(2);
  expect((await diff(LONG, forkAt(290, 700))).out.match(/^---- /gm)).toHaveLength(2);
});

test("a copy without entries is not the same as anything: nothing was compared", async () => {
  const empty = new Map([["checkpoint/0", checkpointOf(log, 0, EMPTY_ROOT)]]);
  for (const [a, b] of [
    [LONG, empty],
    [empty, LONG],
    [empty, empty],
  ] as const) {
    const { exit, out } = await diff(a, b);
    expect([exit, out]).toEqual([2, expect.stringContaining("nothing compared")]);
    expect(out).not.toContain("SAME");
  }
  const odd = new Map([["checkpoint/0", checkpointOf(log, 0, new Uint8Array(32))]]);
  expect((await diff(LONG, odd)).exit).toBe(1);
});

test("a token goes to the server of the first address, and to no other", async () => {
  const heard: [string, string | undefined][] = [];
  const hear =
    (name: string): Lie =>
    (_, __, ask) => {
      heard.push([name, ask.headers.authorization]);
      return false;
    };
  const own = await serveFiles(LONG, { lie: hear("own") });
  const other = await serveFiles(LONG, { lie: hear("other") });
  closing.push(own.close, other.close);
  const token = join(home.folder, "token");
  writeFileSync(token, "secret");
  const trust = ["--vkey", vkeyText(), "--token-file", token];
  expect((await command("diff", own.url, other.url, ...trust)).exit).toBe(0);
  expect(new Set(heard.map((one) => one.join()))).toEqual(new Set(["own,Bearer secret", "other,"]));
  heard.length = 0;
  expect((await command("diff", kept(LONG), other.url, ...trust)).exit).toBe(0);
  expect(new Set(heard.map((one) => one.join()))).toEqual(new Set(["other,Bearer secret"]));
});

test("a copy that somebody altered is no split view", async () => {
  const copy = kept(LONG);
  const path = join(copy, "tile/entries/001");
  const bytes = readFileSync(path);
  bytes[bytes.length - 40] = 0x7e;
  writeFileSync(path, bytes);
  const { exit, out } = await command("diff", kept(LONG), copy, "--vkey", vkeyText());
  expect(exit).toBe(1);
  expect(out).toContain("entry 511 is the first that differs");
  expect(out).toContain(`${copy}: its entries do not give the root`);
  expect(out).not.toContain("split view");
});

test("what lacks entries, is another log's, or nobody trusted signed, is not compared", async () => {
  const gone = new Map(LONG);
  gone.delete("tile/entries/001");
  expect((await diff(LONG, gone)).exit).toBe(2);
  const stranger = checkpointOf(log, 700, undefined, [signer(LOG_ID, testKey(9))]);
  expect((await diff(LONG, new Map(LONG).set("checkpoint/700", stranger))).exit).toBe(2);
  const other = kept(filesOf(longLog(9, OTHER_LOG_ID)), OTHER_LOG_ID);
  expect((await command("diff", kept(LONG), other, "--vkey", vkeyText())).exit).toBe(2);
  expect((await command("diff", kept(LONG), kept(LONG))).exit).toBe(2);
  const bad = checkpointOf(log, 300);
  expect((await diff(LONG, new Map(LONG).set("checkpoint/700", bad))).exit).toBe(1);
});

const closing: (() => Promise<void>)[] = [];
afterEach(async () => {
  for (const close of closing.splice(0)) await close();
});

test("a folder is compared with the log's server", async () => {
  const honest = await serveFiles(LONG);
  const forked = await serveFiles(forkAt(290, 300));
  closing.push(honest.close, forked.close);
  const folder = kept(SHORT);
  expect((await command("diff", folder, honest.url, "--vkey", vkeyText())).exit).toBe(0);
  const { exit, out } = await command("diff", folder, forked.url, "--vkey", vkeyText());
  expect([exit, out]).toEqual([1, expect.stringContaining("entry 290 is the first")]);
});
