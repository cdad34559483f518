/** A receipt never holds up a delivery, and is never taken silently. */
import { afterEach, beforeEach, expect, test } from "vitest";
import { isAlarming } from "../../src/agent/receipts.ts";
import { testKey } from "../signing.ts";
import type { Host } from "./host.ts";
import { TestLog } from "./log.ts";
import { type FakeService, LOG, type Result } from "./service.ts";
import { closeStage, openStage } from "./stage.ts";

const DAY_MS = 24 * 3_600_000;

let host: Host;
let service: FakeService;
let ledger: TestLog;

beforeEach(async () => {
  ({ host, service, ledger } = await openStage());
});

afterEach(() => closeStage({ host, service }));

test.each<[string, () => unknown]>([
  ["one that is text", () => "thanks"],
  ["one that is no text", () => ({ thanks: 1 })],
  ["one that is null", () => null],
  ["one that is too long", () => "x".repeat(100_000)],
  ["one that was changed", () => changed(ledger.receipt([], Date.now()))],
  ["one for other results", () => ledger.receipt([], Date.now())],
  ["L27: one for another log", () => otherLog().receipt([], Date.now())],
])(
  "a receipt holds up no delivery, and %s is counted as forged, and kept as evidence",
  async (_, forge) => {
    service.distortReceipt = forge;
    await host.send(3);
    expect(host.notices).toEqual([`${LOG}: receipts: 1 forged. See \`agent receipts\`.`]);
    expect(await host.check()).toMatchObject({ promises: { forged: 1, proven: 0 } });
    expect(host.evidence()).toMatchObject([
      { reason: "forged-receipt", promise: { results: [{ index: "0" }, {}, {}] } },
    ]);
  },
);

test("a receipt whose signature was changed is forged", async () => {
  service.distortReceipt = changed;
  await host.send(1);
  expect(await host.check()).toMatchObject({ promises: { forged: 1 } });
});

test("a receipt that is for the same results of a sibling log, by the same key, is forged", async () => {
  service.distortReceipt = (_, results) => otherLog().receipt(results, Date.now());
  await host.send(1);
  expect(await host.check()).toMatchObject({ promises: { forged: 1 } });
});

test("what an answer has besides, of a later service or of a liar, is kept as far as it is text", async () => {
  // Each of these would be written back four times as long, past what a journal's line may be.
  const numbers = `[${Array.from({ length: 800_000 }, () => "1e20").join(",")}]`;
  service.misbehaviours = [
    (_, response) => {
      const end = response.end.bind(response);
      response.end = (text: unknown) => end(String(text).replace('"numbers"', numbers));
      return false;
    },
  ];
  service.distort = (results) =>
    results.map((result) => ({ ...result, later: "text", more: "numbers" }));
  service.distortReceipt = (_, results) => {
    const later = results.map((result) => ({ ...result, later: "text" }));
    return ledger.receipt(later, Date.now());
  };
  await host.send(1);
  ledger.seal();
  expect(await host.check()).toMatchObject({ promises: { proven: 1 } });
});

test("a receipt that is missing is counted, and after an hour asked for again", async () => {
  service.distortReceipt = () => undefined;
  await host.send(3);
  expect(await host.check()).toMatchObject({ promises: { missing: 1 }, evidence: [] });
  expect(service.batches).toEqual([3]);
  service.distortReceipt = (receipt) => receipt;
  host.ahead = DAY_MS / 24;
  await host.send(1);
  ledger.seal();
  expect(service.batches).toEqual([3, 1, 3]);
  expect(await host.check()).toMatchObject({
    promises: { missing: 0, proven: 2 },
    reports: { proven: 4 },
    evidence: [],
  });
});

test.each<[string, string, (results: Result[]) => unknown]>([
  ["no-receipt", "that never gives a receipt", () => undefined],
  [
    "unknown-key",
    "whose receipts are all by a key that the log never names",
    (results) => ledger.receipt(results, Date.now(), testKey(99)),
  ],
])(
  "%s: a service %s is accused after a day, once a day, and asked less and less often",
  async (reason, _, give) => {
    service.distortReceipt = (_receipt, results) => give(results);
    await host.send(3);
    await host.send(1);
    ledger.seal();
    host.ahead = DAY_MS + 1_000;
    const account = await host.check();
    expect(account.evidence).toHaveLength(1);
    expect(isAlarming(account)).toBe(true);
    expect(host.evidence()).toMatchObject([{ reason, promise: { results: [{}, {}, {}] } }]);
    const sent = () => service.batches.length;
    const once = sent();
    for (let day = 2; day < 30; day++) {
      host.ahead = day * (DAY_MS + 1_000);
      await host.check();
    }
    expect(sent() - once).toBeGreaterThan(4);
    expect(sent() - once).toBeLessThan(24);
    expect(host.evidence().length).toBeLessThan(30);
  },
);

test("a receipt by a key that is not known waits until the log names the key", async () => {
  const next = testKey(75);
  ledger.receiptKey = next;
  await host.send(2);
  ledger.seal();
  expect(await host.check()).toMatchObject({ promises: { unverified: 1, proven: 0 } });
  ledger.appendKey("receipt", "added", ledger.receiptVkeyOf(next));
  ledger.seal();
  expect(await host.check()).toMatchObject({ promises: { unverified: 0, proven: 1 } });
  expect(host.evidence()).toEqual([]);
});

test("a key that is named without proof, or for another log, or not by an entry, is not learned", async () => {
  ledger.receiptKey = testKey(75);
  await host.send(2);
  ledger.appendKey("receipt", "added", ledger.receiptVkey);
  ledger.appendKey("receipt", "added", otherLog().receiptVkey);
  ledger.append(Buffer.from(ledger.receiptVkey));
  ledger.seal();
  for (const change of [
    { index: "3" },
    { hashes: [] },
    { entry: Buffer.from("{}").toString("base64") },
  ]) {
    service.distortProof = (proved) => ({
      ...proved,
      keys: proved.keys.map((key) => ({ ...key, ...change })),
    });
    expect(await host.check()).toMatchObject({ promises: { unverified: 1, proven: 0 } });
  }
});

test("a receipt by a key that the log does not name in a day is evidence, once there are good ones", async () => {
  const good = ledger.receiptKey;
  ledger.receiptKey = testKey(75);
  await host.send(2);
  ledger.receiptKey = good;
  host.ahead = 2 * DAY_MS;
  await host.send(1);
  ledger.seal();
  await host.check();
  expect(host.evidence()).toMatchObject([{ reason: "unknown-key" }]);
  expect(await host.check()).toMatchObject({ reports: { proven: 3 } });
});

test("a report that was answered without an entry is promised nothing, and the others are proven", async () => {
  service.distortReceipt = (_, [first, ...others]) => {
    const refused = [{ code: "schema", digest: first?.digest ?? "" }, ...others];
    return ledger.receipt(refused, Date.now());
  };
  service.distort = ([first, ...others]) => [{ code: "schema", digest: first?.digest }, ...others];
  await host.send(3);
  ledger.seal();
  expect(await host.check()).toMatchObject({ promises: { proven: 1 }, reports: { proven: 2 } });
});

function otherLog(): TestLog {
  return new TestLog("f".repeat(32));
}

/** Another last character but one: another signature of the same form. */
function changed(receipt: string): string {
  const at = receipt.length - 2;
  return `${receipt.slice(0, at)}${receipt[at] === "A" ? "B" : "A"}${receipt.slice(at + 1)}`;
}
