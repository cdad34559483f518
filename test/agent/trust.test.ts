/** The log's keys: where an agent has them from, and what it refuses for them. */
import { rmSync } from "node:fs";
import { afterEach, beforeEach, expect, test } from "vitest";
import { readKeys } from "../../src/agent/trust.ts";
import { testKey } from "../signing.ts";
import { Host } from "./host.ts";
import { TestLog } from "./log.ts";
import { FakeService, LOG } from "./service.ts";

let host: Host;
let service: FakeService;
let ledger: TestLog;
let url: string;

beforeEach(async () => {
  host = new Host();
  service = new FakeService();
  ledger = new TestLog(LOG);
  service.ledger = ledger;
  url = await service.start();
});

afterEach(async () => {
  await service.stop();
  rmSync(host.root, { recursive: true });
});

const pinned = () => readKeys(LOG, `${ledger.vkey}\n${ledger.receiptVkey}\n`);
const trusted = () => host.withState((state) => state.trust(LOG));

test("a log's keys come with the claim, and are kept", async () => {
  await host.claim(url);
  expect(await trusted()).toEqual({
    log: LOG,
    origin: ledger.origin,
    checkpoint_vkeys: [ledger.vkey],
    receipt_vkeys: [ledger.receiptVkey],
  });
});

test.each<[string, () => void]>([
  ["another checkpoint key", () => (ledger.checkpointKeys = [testKey(73)])],
  ["another receipt key", () => (ledger.receiptKey = testKey(73))],
  ["another log's name", () => (service.ledger = otherLog())],
  ["another origin", () => (service.ledger = new TestLog(LOG, `else.example/${LOG}`))],
])(
  "keys that were pinned refuse a service that shows %s, and nothing is enrolled",
  async (_, change) => {
    const keys = pinned();
    change();
    await expect(host.claim(url, "token", LOG, keys)).rejects.toMatchObject({
      code: "untrusted",
    });
    await host.withState(({ settings }) => {
      expect([settings.enrolments, settings.trust]).toEqual([[], []]);
    });
  },
);

test("keys that were pinned hold where the service shows none yet", async () => {
  service.ledger = undefined;
  await host.claim(url, "token", LOG, pinned());
  expect(await trusted()).toEqual(pinned());
});

test("keys that are known from before refuse a second claim that shows others", async () => {
  await host.claim(url);
  ledger.checkpointKeys = [testKey(73)];
  await expect(host.claim(url, "second")).rejects.toMatchObject({ code: "untrusted" });
  const keys = pinned();
  await expect(host.claim(url, "third", LOG, keys)).rejects.toMatchObject({ code: "untrusted" });
});

test("a log's keys follow the log through a rotation that both keys sign, and the old one alone is refused then", async () => {
  await host.claim(url);
  const [old = testKey(71), next] = [ledger.checkpointKeys[0], testKey(74)];
  ledger.appendKey("checkpoint", "added", ledger.vkeyOf(next));
  ledger.checkpointKeys = [old, next];
  await host.send(1);
  ledger.seal();
  await host.check();
  ledger.appendKey("checkpoint", "retired", ledger.vkeyOf(old));
  ledger.seal();
  await host.check();
  expect((await trusted())?.checkpoint_vkeys).toEqual([ledger.vkeyOf(next)]);
  ledger.checkpointKeys = [old];
  expect(await host.check()).toMatchObject({
    problem: expect.stringContaining("no trusted key"),
  });
  ledger.checkpointKeys = [next];
  expect(await host.check()).not.toHaveProperty("problem");
});

test("a key that was retired is not believed again when its first entry is shown once more", async () => {
  await host.claim(url);
  const [old = testKey(71), second, third] = [ledger.checkpointKeys[0], testKey(81), testKey(82)];
  ledger.checkpointKeys = [old, second, third];
  await host.send(1);
  for (const key of [second, third]) ledger.appendKey("checkpoint", "added", ledger.vkeyOf(key));
  for (const key of [old, second]) ledger.appendKey("checkpoint", "retired", ledger.vkeyOf(key));
  ledger.seal();
  await host.check();
  expect((await trusted())?.checkpoint_vkeys).toEqual([ledger.vkeyOf(third)]);
  ledger.checkpointKeys = [third];
  await host.send(1);
  ledger.seal();
  service.distortProof = (proved) => ({
    ...proved,
    keys: proved.keys.filter(({ index }) => index === "1"),
  });
  await host.check();
  expect((await trusted())?.checkpoint_vkeys).toEqual([ledger.vkeyOf(third)]);
  ledger.checkpointKeys = [second];
  await host.send(1);
  ledger.seal();
  expect(await host.check()).toMatchObject({ problem: expect.stringContaining("no trusted key") });
});

test.each([
  ["no key", "hello"],
  ["another log's key", () => otherLog().vkey],
  ["only the receipts' key", () => ledger.receiptVkey],
  ["two origins", () => `${ledger.vkey}\n${new TestLog(LOG, `x.example/${LOG}`).vkey}`],
  ["a key, and a line that is none", () => `${ledger.vkey}\nhello`],
])("a log's keys are not to be had from %s", (_, text) => {
  expect(() => readKeys(LOG, typeof text === "string" ? text : text())).toThrow(
    /not the vkeys of log/,
  );
});

test("a log's keys are picked from a file with the keys of many logs", () => {
  const other = otherLog();
  const text = [other.vkey, ledger.vkey, "", other.receiptVkey, ledger.receiptVkey].join("\n");
  expect(readKeys(LOG, text)).toEqual(pinned());
});

function otherLog(): TestLog {
  return new TestLog("f".repeat(32));
}
