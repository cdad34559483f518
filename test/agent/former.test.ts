/** A state folder of an agent before receipts, as that agent wrote it. */
import { chmodSync, cpSync, readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { afterEach, beforeEach, expect, test } from "vitest";
import { adoptKeys } from "../../src/agent/adopt.ts";
import { readKeys } from "../../src/agent/trust.ts";
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
  url = await service.start();
});

afterEach(async () => {
  await service.stop();
  rmSync(host.root, { recursive: true });
});

const adopt = (keys: string) =>
  host.withState((state) => adoptKeys(state, readKeys(LOG, keys), host.surroundings.now()));

// No `trust` in its settings, and answers without receipts in its journal.
beforeEach(async () => {
  cpSync(new URL("state-v1", import.meta.url), host.state, { recursive: true });
  const path = join(host.state, "agent.json");
  writeFileSync(path, readFileSync(path, "utf8").replaceAll("http://service.invalid/", url));
  const keys = join(host.state, "keys");
  for (const name of readdirSync(keys)) {
    chmodSync(join(keys, name), 0o600); // a checkout forgets it
    service.enrol(name.replace(".json", ""), keys);
  }
});

test("a folder of an agent before receipts goes on working with a service of its time, and says that nothing is provable", async () => {
  await host.send(2);
  expect(service.reports.map(({ counter }) => counter)).toEqual(["4", "5", "6"]);
  expect(await host.check()).toMatchObject({ provable: false, evidence: [] });
});

test("a folder of an agent before receipts does not learn keys silently, and keeps receipts as unverified", async () => {
  service.ledger = ledger;
  await host.send(2);
  ledger.seal();
  expect(await host.check()).toMatchObject({ provable: false, promises: { unverified: 1 } });
  expect(service.proveRequests).toEqual([]);
  await host.withState(({ settings }) => {
    expect(settings.trust).toEqual([]);
  });
});

test("a folder of an agent before receipts once a person says the keys, gets everything proven, from before as well", async () => {
  service.ledger = ledger;
  await host.send(2);
  await adopt(`${ledger.vkey}\n${ledger.receiptVkey}`);
  await host.import();
  ledger.seal();
  expect(await host.check()).toMatchObject({
    provable: true,
    reports: { signed: 6, answered: 6, proven: 6 },
    promises: { proven: 2, unverified: 0, missing: 0 },
  });
});
