/** kill -9 after each durable step of holding a log to its receipts. */
import { cpSync, rmSync } from "node:fs";
import { afterEach, beforeEach, expect, test } from "vitest";
import { compiled } from "../compile.ts";
import type { Host } from "./host.ts";
import type { TestLog } from "./log.ts";
import { runAgent } from "./process.ts";
import type { FakeService } from "./service.ts";
import { closeStage, openStage } from "./stage.ts";

const KILLER = compiled(new URL("killer.ts", import.meta.url));

let host: Host;
let service: FakeService;
let ledger: TestLog;

beforeEach(async () => {
  ({ host, service, ledger } = await openStage());
});

afterEach(() => closeStage({ host, service }));

test("killed after any durable step, the next run ends with every promise judged and every report on the log", async () => {
  // One promise that is kept, and one that is broken: the log has another leaf.
  await host.send(2);
  await host.send(2);
  ledger.entries[3] = Uint8Array.of(1);
  ledger.seal();
  const before = `${host.root}/before`;
  cpSync(host.state, before, { recursive: true });
  const entries = ledger.entries.slice();
  let steps = 0;
  for (let alive = true; alive; steps++) {
    rmSync(host.state, { recursive: true });
    cpSync(before, host.state, { recursive: true });
    ledger.entries = entries.slice();
    const killed = await runAgent(["receipts", "--check", "--state", host.state], {
      limit: ["env", `KILL_AFTER=${steps + 1}`, `NODE_OPTIONS=--import=${KILLER}`],
    });
    alive = killed.status === null;
    if (!alive) expect(killed).toMatchObject({ status: 1, stderr: expect.any(String) });
    const account = await host.check();
    expect(account).toMatchObject({
      divergence: "",
      // Sent again, the broken one is promised anew; a killed run may have come so far itself.
      promises: { proven: 1, pending: 1, unverified: 0, missing: 0, forged: 0 },
      reports: { signed: 4, answered: 4, proven: 2 },
    });
    expect([1, 2]).toContain(account.promises.broken);
    expect(host.evidence()).toHaveLength(account.promises.broken);
  }
  expect(steps).toBeGreaterThan(8);
});
