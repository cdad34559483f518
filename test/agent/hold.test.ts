/** What an agent does about a log that keeps its word, and about every way of breaking it. */
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { parseVkey } from "../../src/core/note.ts";
import { readReceipt, verifyReceipt } from "../../src/core/receipt.ts";
import { testKey, verifyByOpenssl } from "../signing.ts";
import type { Host } from "./host.ts";
import { type Proved, TestLog } from "./log.ts";
import { usageLine } from "./records.ts";
import { type FakeService, LOG } from "./service.ts";
import { closeStage, openStage, sendProven } from "./stage.ts";

const HOUR_MS = 3_600_000;
const NOTHING_FOUND = { proven: 0, pending: 0, broken: 0, unverified: 0, missing: 0, forged: 0 };

let host: Host;
let service: FakeService;
let ledger: TestLog;

beforeEach(async () => {
  ({ host, service, ledger } = await openStage());
});

afterEach(() => closeStage({ host, service }));

const lie = (change: (proved: Proved) => Partial<Proved>): void => {
  service.distortProof = (proved) => ({ ...proved, ...change(proved) });
};
const beHonest = (): void => {
  service.distortProof = (proved) => proved;
};

describe("a log that keeps its word", () => {
  test("has a promise pending until a checkpoint covers it, and then proven, once and for all", async () => {
    await host.send(3);
    expect(await host.check()).toMatchObject({ promises: { ...NOTHING_FOUND, pending: 1 } });
    ledger.seal();
    expect(await host.check()).toMatchObject({
      provable: true,
      size: "3",
      promises: { ...NOTHING_FOUND, proven: 1 },
      reports: { signed: 3, answered: 3, proven: 3 },
      evidence: [],
    });
    host.ahead = 48 * HOUR_MS;
    expect(await host.check()).toMatchObject({ promises: { ...NOTHING_FOUND, proven: 1 } });
    expect(service.batches).toEqual([3]);
  });

  test("is held to its receipts by every import, after all is sent", async () => {
    await host.send(2);
    ledger.seal();
    await host.send(2);
    await host.withState((state) => {
      expect(state.spool(LOG).reports).toEqual({ signed: 4, answered: 4, proven: 2 });
    });
    expect(host.notices).toEqual([]);
  });

  test("is not asked again in one run for what its checkpoint did not cover a moment ago", async () => {
    for (const _ of [1, 2, 3]) await host.send(1);
    service.proveRequests.length = 0;
    expect(await host.check()).toMatchObject({ promises: { pending: 3 } });
    expect(service.proveRequests).toHaveLength(1);
  });

  test("L32: answers a report that comes twice by the entry that stands, and that is proof for both", async () => {
    const line = `${usageLine()}\n`;
    host.write(line);
    host.write(line, "usage-log-copy.json");
    await host.import({ batch: 1 });
    ledger.seal();
    expect(await host.check()).toMatchObject({ promises: { proven: 2 }, reports: { proven: 2 } });
    expect(ledger.entries).toHaveLength(1);
  });

  test("is watched also when nothing is to be proven", async () => {
    await sendProven({ host, service, ledger }, 2);
    ledger.append(Uint8Array.of(1));
    ledger.seal();
    expect(await host.check()).toMatchObject({ size: "3", divergence: "" });
  });

  test("may show an older checkpoint for seconds: a reader that lags is no rollback", async () => {
    await sendProven({ host, service, ledger }, 2);
    await host.send(2);
    ledger.seal();
    await host.check();
    let lagging = 3;
    service.distortProof = (proved, { results, since }) =>
      lagging-- > 0 ? ledger.prove(results, since, 2) : proved;
    host.pauses.length = 0;
    expect(await host.check()).toMatchObject({ divergence: "", evidence: [] });
    expect(host.pauses).toEqual([1_000, 2_000, 4_000]);
  });
});

describe("a promise is broken, its evidence kept, and its reports are sent again", () => {
  test("when another leaf stands where the receipt says", async () => {
    await host.send(3);
    ledger.entries[1] = Uint8Array.of(1);
    ledger.seal();
    expect(await host.check()).toMatchObject({
      promises: { proven: 0, broken: 1, pending: 1 },
      evidence: [expect.stringContaining(`${LOG}-other-leaf-`)],
    });
    expect(service.batches).toEqual([3, 3]);
  });

  test("when after 24 hours no checkpoint covers it, and not before", async () => {
    await host.send(3);
    host.ahead = 23 * HOUR_MS;
    expect(await host.check()).toMatchObject({ promises: { broken: 0, pending: 1 } });
    host.ahead = 25 * HOUR_MS;
    expect(await host.check()).toMatchObject({ promises: { broken: 1, pending: 1 } });
    expect(host.evidence()).toMatchObject([{ reason: "overdue" }]);
    ledger.seal();
    expect(await host.check()).toMatchObject({
      promises: { broken: 1, pending: 0, proven: 1 },
      reports: { proven: 3 },
    });
    expect(service.timesOnLog()).toEqual([1, 1, 1]);
  });

  test("when its proof is withheld for 24 hours", async () => {
    await host.send(3);
    ledger.seal();
    lie(({ proofs }) => ({ proofs: proofs.slice(1) }));
    expect(await host.check()).toMatchObject({ promises: { broken: 0, pending: 1 } });
    host.ahead = 25 * HOUR_MS;
    await host.check();
    expect(host.evidence()).toMatchObject([{ reason: "withheld" }]);
  });

  test("when the service refuses to prove it for 24 hours", async () => {
    await host.send(3);
    const refuse = () =>
      service.misbehaviours.push((_, response) => {
        response.writeHead(422).end('{"code":"invalid-receipt"}');
        return true;
      });
    refuse();
    expect(await host.check()).toMatchObject({ promises: { broken: 0, pending: 1 } });
    host.ahead = 25 * HOUR_MS;
    refuse();
    await host.check();
    expect(host.evidence()).toMatchObject([{ reason: "refused" }]);
  });

  test("and whoever has the vkeys can verify the evidence without the agent", async () => {
    await host.send(2);
    ledger.entries[0] = Uint8Array.of(1);
    ledger.seal();
    await host.check();
    const [found] = host.evidence() as unknown as [
      { promise: { receipt: string; results: object[] }; answer: Proved; trust: object },
    ];
    const receipt = readReceipt(found.promise.receipt);
    const key = parseVkey(ledger.receiptVkey);
    if (receipt === undefined || key === undefined) throw new Error("not to be read");
    expect(verifyReceipt(receipt, key, verifyByOpenssl)).toBe(true);
    expect(found.promise.results).toHaveLength(2);
    expect(found.answer.checkpoint).toBe(ledger.checkpoint());
    expect(found.answer.proofs.map(({ index }) => index)).toEqual(["0", "1"]);
    expect(found.trust).toMatchObject({ origin: ledger.origin, checkpoint_vkeys: [ledger.vkey] });
  });
});

describe("nothing is concluded from", () => {
  test.each<[string, () => string]>([
    ["L24: the checkpoint of another log", () => new TestLog(LOG, "other.example/x").checkpoint()],
    ["a checkpoint that another key has signed", () => withKey(73).checkpoint(2)],
    ["L25: a checkpoint that nobody has signed", () => `${ledger.checkpoint().split("\n\n")[0]}\n`],
    [
      "a checkpoint whose signature was changed",
      () => ledger.checkpoint().replace(/..\n$/, "A=\n"),
    ],
  ])("%s", async (_, checkpoint) => {
    await host.send(2);
    ledger.seal();
    host.ahead = 25 * HOUR_MS;
    lie(() => ({ checkpoint: checkpoint() }));
    expect(await host.check()).toMatchObject({
      problem: expect.stringContaining("no trusted key"),
      promises: { ...NOTHING_FOUND, pending: 1 },
      size: "0",
      evidence: [],
    });
    beHonest();
    expect(await host.check()).toMatchObject({ promises: { proven: 1 } });
  });

  test("an answer that is no proof, and imports go on", async () => {
    await host.send(2);
    service.distortProof = () => ({ checkpoint: 7 });
    await host.send(2);
    expect(host.notices).toEqual([expect.stringContaining("not Minutebook's")]);
    expect(service.reports).toHaveLength(4);
  });

  test("a service that shows nothing of the log yet: its promises are pending", async () => {
    await host.send(2);
    await host.send(2);
    service.ledger = undefined;
    const before = service.asked.length;
    expect(await host.check()).toMatchObject({ promises: { ...NOTHING_FOUND, pending: 2 } });
    expect(service.asked.slice(before)).toEqual(["/v1/receipts/prove"]);
  });

  test("silence, which ends after some tries", async () => {
    await host.send(1);
    service.misbehaviours = Array.from({ length: 9 }, () => (_, response) => {
      response.writeHead(503).end();
      return true;
    });
    expect(await host.check()).toMatchObject({ problem: expect.stringContaining("answered 503") });
  });
});

function withKey(seed: number): TestLog {
  const other = new TestLog(LOG);
  other.entries = ledger.entries;
  other.checkpointKeys = [testKey(seed)];
  return other;
}
