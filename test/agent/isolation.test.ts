/** Delivery, proof and attestation: what one of them cannot do holds up none of the others. */

import { rmSync } from "node:fs";
import type { IncomingMessage, ServerResponse } from "node:http";
import { afterEach, beforeEach, expect, test } from "vitest";
import { Host } from "./host.ts";
import { TestLog } from "./log.ts";
import { usageLine } from "./records.ts";
import { FakeService, LOG } from "./service.ts";

const HOUR_MS = 3_600_000;

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
  await host.claim(url);
});

afterEach(async () => {
  await service.stop();
  rmSync(host.root, { recursive: true });
});

/** From here on, requests to this path get this answer, those in `passes` first excepted. */
function refuse(path: string, status: number, headers: Record<string, string> = {}, passes = 0) {
  let left = passes;
  service.server.removeAllListeners("request");
  service.server.on("request", (request: IncomingMessage, response: ServerResponse) => {
    if (request.url !== path || left-- > 0) {
      service.serve(request, response);
      return;
    }
    service.asked.push(path);
    response.writeHead(status, { "content-type": "application/json", ...headers });
    response.end('{"code":"key-has-ended"}');
  });
}

/** A promise that is broken, and another report that waits to be sent. */
async function breakPromise(): Promise<void> {
  await host.send(3);
  ledger.entries[1] = Uint8Array.of(1);
  ledger.seal();
  host.write(`${usageLine()}\n`);
}

test.each([
  [403, "refused"],
  [503, "unavailable"],
])(
  "while attestations are answered %i, reports are sent and the log is held to its receipts",
  async (status, code) => {
    await breakPromise();
    refuse("/v1/attestations", status);
    await expect(host.import()).rejects.toMatchObject({ code });
    expect(host.evidence()).toMatchObject([{ reason: "other-leaf" }]);
    expect(service.batches).toEqual([3, 1, 3]);
  },
);

test("one key that has ended keeps no other key of the log from attesting, and is said", async () => {
  await host.claim(url, "another token");
  await breakPromise();
  service.attestations.length = 0;
  let refused = 0;
  service.misbehaviours = [];
  const serve = service.serve;
  service.server.removeAllListeners("request");
  service.server.on("request", (request: IncomingMessage, response: ServerResponse) => {
    if (request.url !== "/v1/attestations" || refused++ > 0) serve(request, response);
    else response.writeHead(409).end('{"code":"key-has-ended"}');
  });
  await expect(host.import()).rejects.toThrow("key-has-ended");
  expect(service.attestations).toHaveLength(1);
  expect(host.evidence()).toHaveLength(1);
});

test("while reports are refused, the log is held to its receipts, and attested what waits", async () => {
  await breakPromise();
  refuse("/v1/reports", 403);
  await expect(host.import()).rejects.toMatchObject({ code: "refused" });
  expect(host.evidence()).toMatchObject([{ reason: "other-leaf" }]);
  expect(service.attestations.at(-1)).toMatchObject({ counter: "4", spool: "1" });
});

test("a service that asks for patience when it is to prove holds no import for long", async () => {
  await host.send(2);
  ledger.seal();
  host.pauses.length = 0;
  refuse("/v1/receipts/prove", 503, { "retry-after": "900" });
  await host.import();
  expect(host.notices.at(-1)).toContain("answered 503");
  expect(host.pauses.reduce((sum, ms) => sum + ms, 0)).toBeLessThan(20_000);
});

test("no mix of silence and of older checkpoints holds an import for longer than a moment", async () => {
  for (const _ of [1, 2]) {
    await host.send(2);
    ledger.seal();
    await host.check();
  }
  service.distortProof = () => ledger.prove([], "0", 2);
  for (const retryAfter of ["0", "6"]) {
    host.pauses.length = 0;
    refuse("/v1/receipts/prove", 503, { "retry-after": retryAfter }, 1);
    await host.import();
    expect(host.pauses.reduce((sum, ms) => sum + ms, 0)).toBeLessThan(20_000);
  }
});

test("a log that is rolled back is found so by an import too, within its patience", async () => {
  for (const _ of [1, 2]) {
    await host.send(2);
    ledger.seal();
    await host.check();
  }
  service.distortProof = () => ledger.prove([], "0", 2);
  await host.import();
  expect(host.notices.join()).toContain("the log is rolled-back");
});

test("a person who asks for proof sends first what waits", async () => {
  await host.send(1);
  refuse("/v1/reports", 403);
  host.write(`${usageLine()}\n`);
  await expect(host.import()).rejects.toMatchObject({ code: "refused" });
  service.server.removeAllListeners("request");
  service.server.on("request", service.serve);
  service.asked.length = 0;
  host.ahead = 2 * HOUR_MS;
  await host.check();
  expect(service.asked[0]).toBe("/v1/reports");
});
