/** What an agent does about a log that turns out to be another than it was. */
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { adoptHistory } from "../../src/agent/adopt.ts";
import type { Host } from "./host.ts";
import type { Proved, TestLog } from "./log.ts";
import { type FakeService, LOG } from "./service.ts";
import { closeStage, openStage, sendProven } from "./stage.ts";

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

describe("a log that is not the one it was", () => {
  beforeEach(async () => {
    await sendProven({ host, service, ledger }, 3);
    await sendProven({ host, service, ledger }, 2);
  });

  test("because it shows an older checkpoint, is proven nothing, and sent what it may have lost", async () => {
    await host.send(1);
    service.distortProof = (_, { results, since }) => ledger.prove(results, since, 3);
    expect(await host.check()).toMatchObject({ divergence: "rolled-back", size: "5" });
    expect(host.evidence().map(({ reason }) => reason)).toEqual(["rolled-back", "rolled-back"]);
    expect(service.batches).toEqual([3, 2, 1, 3]);
    host.pauses.length = 0;
    await host.check();
    expect(service.batches).toHaveLength(4);
    expect(host.pauses).toEqual([]);
    beHonest();
    ledger.seal();
    expect(await host.check()).toMatchObject({ divergence: "", size: "6", reports: { proven: 6 } });
  });

  test.each<[string, () => void, divergence?: string]>([
    ["its root changed", () => (ledger.entries[0] = Uint8Array.of(1))],
    [
      "its root changed, and it grew",
      () => {
        ledger.entries[0] = Uint8Array.of(1);
        ledger.append(Uint8Array.of(2));
        ledger.seal();
      },
    ],
    [
      "it does not show how it grew",
      () => {
        ledger.append(Uint8Array.of(2));
        ledger.seal();
        lie(() => ({ consistency: [] }));
      },
      "withheld",
    ],
  ])(
    "because %s, is proven nothing, and sent everything",
    async (_, change, reason = "inconsistent") => {
      change();
      expect(await host.check()).toMatchObject({ divergence: reason, size: "5" });
      expect(host.evidence()).toMatchObject([
        { reason, kept_checkpoint: expect.stringContaining(`${ledger.origin}\n5\n`) },
      ]);
      expect(service.batches).toEqual([3, 2, 5]);
    },
  );

  test("because it lost its tail, ends with every report on it once, and is believed when a person says so", async () => {
    service.rollBack(3);
    await host.check();
    ledger.seal();
    expect(service.timesOnLog()).toEqual([1, 1, 1, 1, 1]);
    expect(await host.check()).toMatchObject({ divergence: "inconsistent" });
    await host.withState((state) => adoptHistory(state, LOG, host.surroundings.now()));
    await host.import();
    ledger.seal();
    expect(await host.check()).toMatchObject({ divergence: "", size: "5", reports: { proven: 5 } });
    expect(service.timesOnLog()).toEqual([1, 1, 1, 1, 1]);
  });
});

test("a log that lost its tail and grew again meanwhile ends with every report on it once", async () => {
  await sendProven({ host, service, ledger }, 3);
  await sendProven({ host, service, ledger }, 2);
  service.rollBack(2);
  for (const byte of [1, 2, 3, 4]) ledger.append(Uint8Array.of(byte));
  ledger.seal();
  expect(await host.check()).toMatchObject({ divergence: "inconsistent" });
  ledger.entries = ledger.entries.filter((bytes) => bytes.length > 1);
  expect(service.timesOnLog()).toEqual([1, 1, 1, 1, 1]);
});
