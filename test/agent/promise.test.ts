/** A log is held to what it said of each report, not to some entry that stands somewhere. */
import { afterEach, beforeEach, expect, test } from "vitest";
import { isAlarming } from "../../src/agent/receipts.ts";
import { leafHash } from "../../src/core/hash.ts";
import { encodeBase64 } from "../../src/core/text.ts";
import type { Host } from "./host.ts";
import type { Proved, TestLog } from "./log.ts";
import { usageLine } from "./records.ts";
import type { FakeService, Result } from "./service.ts";
import { closeStage, openStage } from "./stage.ts";

const HOUR_MS = 3_600_000;

let host: Host;
let service: FakeService;
let ledger: TestLog;

beforeEach(async () => {
  ({ host, service, ledger } = await openStage());
});

afterEach(() => closeStage({ host, service }));

/** Every answer is changed so, and its receipt is over what was answered. */
function answer(change: (result: Result) => Result): void {
  service.distort = (results) => results.map(change);
  service.distortReceipt = (_, results) => ledger.receipt(results.map(change), service.now());
}

const reasons = (): string[] => host.evidence().map(({ reason }) => reason);

test("every outcome of an honest log is proven", async () => {
  const line = usageLine({ id: "77", duration: "1" });
  const conflict = usageLine({ id: "77", duration: "2" });
  host.write(`${line}\n${conflict}\n${line}\n${usageLine()}\n`);
  host.write(`${line}\n`, "usage-log-copy.json");
  await host.import();
  ledger.seal();
  expect(await host.check()).toMatchObject({
    promises: { proven: 1, broken: 0 },
    reports: { signed: 5, proven: 5 },
    evidence: [],
  });
});

test.each(["accepted", "duplicate", "conflict", "over-cap"])(
  "%s: an entry that is not of the report breaks the promise, and its reports are sent again",
  async (code) => {
    const elsewhere = ledger.append(Buffer.from("another entry"));
    answer(({ counter = "", digest }) => ({ code, counter, digest, ...elsewhere }));
    await host.send(2);
    ledger.seal();
    await host.check();
    expect(reasons()).toEqual(["other-entry"]);
    expect(service.batches).toEqual([2, 2]);
  },
);

test.each<["usage" | "conflict" | "hold", code: string]>([
  ["hold", "accepted"],
  ["conflict", "accepted"],
  ["usage", "conflict"],
  ["usage", "over-cap"],
  ["conflict", "over-cap"],
  ["hold", "future"],
  ["hold", "duplicate"],
  ["conflict", "duplicate"],
])("a %s of the report itself is not what %s promises", async (kind, code) => {
  service.kindOf = () => kind;
  answer((result) => ({ ...result, code }));
  await host.send(1);
  ledger.seal();
  await host.check();
  expect(reasons()).toEqual(["other-entry"]);
});

test("a hold of the report, under the code that was said, keeps the promise", async () => {
  service.kindOf = () => "hold";
  answer((result) => ({ ...result, code: "over-cap" }));
  await host.send(2);
  ledger.seal();
  expect(await host.check()).toMatchObject({ reports: { proven: 2 }, evidence: [] });
});

test("a duplicate is not proven by the usage of another job", async () => {
  const [other] = [await otherReport()];
  answer(({ counter = "", digest }) => ({ code: "duplicate", counter, digest, ...other }));
  await host.send(1);
  ledger.seal();
  await host.check();
  expect(reasons()).toContain("other-entry");
});

test.each<[string, (result: Result) => Result]>([
  ["accepted, without a place", ({ code, counter = "", digest }) => ({ code, counter, digest })],
  ["accepted, without a leaf", ({ leaf: _, ...result }) => result],
  ["a code that nobody knows", ({ counter = "", digest }) => ({ code: "gone", counter, digest })],
  ["a refusal that has a place", (result) => ({ ...result, code: "schema" })],
])("%s: is no answer, is asked again, and is evidence when it persists", async (_, change) => {
  answer(change);
  await host.send(2);
  ledger.seal();
  expect(await host.check()).toMatchObject({ promises: { proven: 0 }, reports: { proven: 0 } });
  host.ahead = 25 * HOUR_MS;
  const account = await host.check();
  expect(isAlarming(account)).toBe(true);
  expect(new Set(reasons())).toEqual(new Set(["no-answer"]));
  expect(service.batches.length).toBeGreaterThan(1);
  answer((result) => result);
  host.ahead = 60 * HOUR_MS;
  await host.check();
  await host.check();
  expect(await host.check()).toMatchObject({ reports: { proven: 2 } });
});

test("what the service leaves open of one report does not hold up the proof of the others", async () => {
  const leave = ([first, ...others]: Result[]): Result[] => [
    { code: "gone", digest: first?.digest ?? "" },
    ...others,
  ];
  service.distort = leave;
  service.distortReceipt = (_, results) => ledger.receipt(leave(results), service.now());
  await host.send(3);
  ledger.seal();
  expect(await host.check()).toMatchObject({ reports: { proven: 2 } });
  expect(service.batches).toEqual([3, 1]);
});

test("a promise of nothing, as all was refused, is not counted as one that was kept", async () => {
  answer(({ digest }) => ({ code: "schema", digest }));
  await host.send(2);
  expect(await host.check()).toMatchObject({ promises: { proven: 0, pending: 0 }, evidence: [] });
  expect(service.batches).toEqual([2]);
});

test("entries that are not shown leave a promise pending, and after a day that is a problem", async () => {
  await host.send(2);
  ledger.seal();
  service.distortProof = (proved) => ({ ...proved, proofs: proved.proofs.map(unshown) });
  expect(await host.check()).toMatchObject({ promises: { pending: 1, proven: 0 } });
  host.ahead = 25 * HOUR_MS;
  const account = await host.check();
  expect(account).toMatchObject({
    problem: expect.stringContaining("does not show them"),
    evidence: [],
  });
  expect(isAlarming(account)).toBe(true);
});

test("bytes that are not of the promised leaf are none", async () => {
  await host.send(2);
  ledger.seal();
  service.distortProof = ({ proofs, ...proved }) => ({
    ...proved,
    proofs: proofs.map((proof, i) => ({ ...proof, entry: proofs[1 - i]?.entry })),
  });
  expect(await host.check()).toMatchObject({ promises: { pending: 1, proven: 0, broken: 0 } });
  host.ahead = 25 * HOUR_MS;
  await host.check();
  expect(reasons()).toEqual(["withheld"]);
});

test("one wrong leaf is one file of evidence, and its reports are sent less and less often", async () => {
  await host.send(20);
  ledger.entries[1] = Uint8Array.of(1);
  ledger.seal();
  for (let minute = 0; minute < 12 * 60; minute += 20) {
    host.ahead = minute * 60_000;
    service.now = () => Date.now() + host.ahead;
    await host.check();
  }
  expect(reasons()).toEqual(["other-leaf"]);
  expect(service.batches.length).toBeGreaterThan(3);
  expect(service.batches.length).toBeLessThan(8);
});

/** What another report of this host was answered. */
async function otherReport(): Promise<{ index: string; leaf: string }> {
  await host.send(1);
  const bytes = ledger.entries[0] ?? new Uint8Array();
  return { index: "0", leaf: encodeBase64(leafHash(bytes)) };
}

function unshown({ hashes, index }: Proved["proofs"][number]): object {
  return { hashes, index };
}
