/** The keys of logs, as an operator publishes and changes them at a terminal. */
import { afterAll, beforeAll, expect, test } from "vitest";
import { formatVkey } from "../../src/core/note.ts";
import { type House, newLog, openHouse, sealedSize, tokenOf } from "../http/house.ts";
import { testKey } from "../signing.ts";
import { type Finished, minutebook } from "./terminal.ts";

let house: House;
let logs: string[];
let token: string;

beforeAll(async () => {
  house = await openHouse();
  logs = [(await newLog(house, "one", 1)).log, (await newLog(house, "two", 2)).log];
  token = await tokenOf(["operator"]);
});
afterAll(() => house.close());

function command(...args: string[]): Promise<Finished> {
  return minutebook(args, { MINUTEBOOK_SERVER: house.url, MINUTEBOOK_TOKEN: token });
}

const FIRST = testKey(32);
const NEXT = testKey(34);
const RECEIPT = testKey(33);

function vkeyOf(log: string | undefined, key: typeof FIRST, purpose = ""): string {
  return formatVkey(`minutebook.localhost/${log}${purpose}`, key.publicKey);
}

/** Columns of each line below the header. */
async function published(...args: string[]): Promise<string[][]> {
  const { status, stdout } = await command("vkey", ...args);
  expect(status).toBe(0);
  return stdout
    .trimEnd()
    .split("\n")
    .slice(1)
    .map((line) => line.trim().split(/ {2,}/));
}

test("the keys that verify a log are printed, and those that are to come", async () => {
  const [log] = logs;
  expect(await published(log ?? "")).toEqual([
    ["checkpoint", "current", vkeyOf(log, FIRST)],
    ["checkpoint", "next", vkeyOf(log, NEXT)],
    ["receipt", "current", vkeyOf(log, RECEIPT, "/receipt")],
  ]);
  expect(await published()).toHaveLength(6);
});

test("a rotation of one log, then of all: who has done it already is passed over", async () => {
  const [one = "", two = ""] = logs;
  const early = await command("key", "retire-log-key", one);
  expect([early.status, early.stderr]).toEqual([2, expect.stringMatching(/^no-log-key: /)]);
  const added = await command("key", "add-log-key", one);
  expect([added.status, added.stdout]).toEqual([
    0,
    expect.stringMatching(/^Log \w+, entry \d+: \S+ signs from the next seal on\.\n$/),
  ]);
  const { stdout } = await command("key", "add-log-key", "--all", "--json");
  expect(JSON.parse(stdout).changed).toEqual([
    { log: two, index: expect.any(String), vkey: vkeyOf(two, NEXT) },
  ]);
  for (const log of logs) await sealedSize(house, log);
  expect((await command("key", "retire-log-key", "--all")).status).toBe(0);
  for (const log of logs) {
    expect(await published(log)).toEqual([
      ["checkpoint", "current", vkeyOf(log, NEXT)],
      ["checkpoint", "retired", vkeyOf(log, FIRST)],
      ["receipt", "current", vkeyOf(log, RECEIPT, "/receipt")],
    ]);
  }
  const again = await command("key", "retire-log-key", "--all");
  expect([again.status, again.stderr]).toEqual([2, expect.stringMatching(/^no-log-key: /)]);
  const last = await command("key", "retire-log-key", one, "--vkey", vkeyOf(one, NEXT));
  expect([last.status, last.stderr]).toEqual([1, expect.stringMatching(/^last-log-key: /)]);
});

test("neither a log nor all, or both, is no order", async () => {
  const [one = ""] = logs;
  for (const args of [[], [one, "--all"], ["--all", "--vkey", "x"]]) {
    const { status, stderr } = await command("key", "add-log-key", ...args);
    expect([status, stderr]).toEqual([2, expect.stringMatching(/^invalid-usage: /)]);
  }
});
