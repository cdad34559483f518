import { rmSync } from "node:fs";
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { outcomeOf } from "../../src/agent/deliver.ts";
import { Host } from "./host.ts";
import { usageLine } from "./records.ts";
import { FakeService, type Misbehaviour, type Result } from "./service.ts";

let host: Host;
let service: FakeService;
let kid: string;

beforeEach(async () => {
  host = new Host();
  service = new FakeService();
  kid = await host.claim(await service.start());
  host.write(`${Array.from({ length: 10 }, () => usageLine()).join("\n")}\n`);
});

afterEach(async () => {
  await service.stop();
  rmSync(host.root, { recursive: true });
});

const answer =
  (status: number, headers: Record<string, string> = {}, body = ""): Misbehaviour =>
  (_, response) => {
    response.writeHead(status, headers);
    response.end(body);
    return true;
  };
const hangUp: Misbehaviour = (request) => {
  request.socket.destroy();
  return true;
};
const breakOff: Misbehaviour = (_, response) => {
  response.writeHead(200, { "content-length": "1000" });
  response.write('{"log":"');
  setImmediate(() => response.destroy());
  return true;
};
/** The service took the reports, and its answer is lost. */
const loseAnswer: Misbehaviour = (_, response) => {
  response.end = () => response.destroy();
  return false;
};

const clean = { signed: 10, accepted: 10, duplicate: 0, conflict: 0, held: 0, refused: 0 };

describe("nothing is lost and nothing is double when the server", () => {
  test.each<[string, Misbehaviour]>([
    ["hangs up", hangUp],
    ["breaks off in the middle of an answer", breakOff],
    ["takes the reports and loses the answer", loseAnswer],
    ...[408, 429, 500, 502, 503, 504].map((status): [string, Misbehaviour] => [
      `answers ${status}`,
      answer(status),
    ]),
  ])("%s", async (_, misbehave) => {
    service.misbehaviours = [misbehave, misbehave, () => false, misbehave];
    expect(await host.import({ batch: 4 })).toMatchObject({ total: clean });
    expect(service.counters(kid)).toEqual([1, 2, 3, 4, 5, 6, 7, 8, 9, 10]);
    expect(service.reports).toHaveLength(10);
    expect(host.pauses).toHaveLength(3);
  });
});

test("pauses double from half a second to a minute, for as long as it takes", async () => {
  service.misbehaviours = Array.from({ length: 10 }, () => answer(503));
  await host.import();
  expect(host.pauses).toEqual(
    [500, 1, 2, 4, 8, 16, 32, 60, 60, 60].map((n) => (n < 500 ? n * 1000 : n)),
  );
  expect(host.notices).toContainEqual(expect.stringMatching(/answered 503; next try in 500 ms/));
});

test("the server's Retry-After is honoured, in seconds and as a date, within bounds", async () => {
  const date = new Date(Date.now() + 20_000).toUTCString();
  const after = ["7", date, "999999", "soon"].map((value) => answer(503, { "retry-after": value }));
  service.misbehaviours = after;
  await host.import();
  const [seconds, until, capped, unread] = host.pauses;
  expect(seconds).toBe(7_000);
  expect(until).toBeGreaterThan(15_000);
  expect(until).toBeLessThanOrEqual(20_000);
  expect([capped, unread]).toEqual([900_000, 4_000]);
});

test("a limit on bodies somewhere on the way halves the batch", async () => {
  service.misbehaviours = [answer(413), answer(413)];
  expect(await host.import()).toMatchObject({ total: clean });
  expect(service.batches).toEqual([3, 2, 5]);
});

describe("an answer that is not to these reports is refused, and the next run goes on", () => {
  test.each<[string, (results: Result[]) => unknown[]]>([
    ["one result too few", (results) => results.slice(1)],
    ["one result too many", (results) => [...results, ...results.slice(0, 1)]],
    ["results in another order", (results) => results.toReversed()],
    [
      "a digest of other bytes",
      (results) => results.map((r) => ({ ...r, digest: `${"A".repeat(43)}=` })),
    ],
    ["no code", (results) => results.map(({ digest }) => ({ digest }))],
    ["a code that is none", (results) => results.map((r) => ({ ...r, code: "__proto__" }))],
    ["an index that is a number", (results) => results.map((r) => ({ ...r, index: 1 }))],
  ])("%s", async (_, distort) => {
    service.distort = distort;
    await expect(host.import()).rejects.toMatchObject({ code: "protocol" });
    service.distort = (results) => results;
    expect(await host.import()).toMatchObject({ total: { ...clean, signed: 0 } });
    expect(service.reports).toHaveLength(10);
  });

  test.each(["", "<html>", "[]", '{"log":"x","results":[]}'])("a body of %j", async (body) => {
    service.misbehaviours = [answer(200, {}, body)];
    await expect(host.import()).rejects.toMatchObject({ code: "protocol" });
    expect(await host.import()).toMatchObject({ total: { ...clean, signed: 0 } });
  });

  test("a body without end", async () => {
    service.misbehaviours = [answer(200, {}, "x".repeat(5_000_000))];
    await expect(host.import()).rejects.toMatchObject({ code: "protocol" });
  });

  test("a redirect to somewhere else", async () => {
    service.misbehaviours = [answer(307, { location: "http://127.0.0.1:1/" })];
    expect(await host.import()).toMatchObject({ total: clean });
    expect(host.pauses).toHaveLength(1);
  });
});

describe("a whole request that is refused is a clear line, and its reports are kept", () => {
  test.each([401, 403, 404, 400, 422])("%i", async (status) => {
    const problem = JSON.stringify({ code: "not-found", title: "There is no such thing" });
    service.misbehaviours = [answer(status, {}, problem)];
    await expect(host.import()).rejects.toMatchObject({
      code: "refused",
      message: expect.stringMatching(`refused 10 reports: ${status}, not-found`),
    });
    expect(await host.import()).toMatchObject({ total: { ...clean, signed: 0 } });
  });

  test("a server that does not know the key has lost it: no report is given up for that", async () => {
    service.distort = (results) => results.map((result) => ({ ...result, code: "unknown-key" }));
    await expect(host.import()).rejects.toMatchObject({ code: "refused" });
    service.distort = (results) => results;
    expect(await host.import()).toMatchObject({ total: { ...clean, signed: 0 } });
  });
});

test("every final code is one of five outcomes", () => {
  expect(["accepted", "duplicate", "conflict"].map(outcomeOf)).toEqual([
    "accepted",
    "duplicate",
    "conflict",
  ]);
  const held = ["key-ended", "outside-enrolment", "future", "over-cap", "no-rate"];
  expect(held.map(outcomeOf)).toEqual(held.map(() => "held"));
  const refused = [
    "malformed",
    "bad-signature",
    "non-canonical",
    "schema",
    "wrong-log",
    "a-later-code",
    "held",
  ];
  expect(refused.map(outcomeOf)).toEqual([...refused.slice(0, -1).map(() => "refused"), "held"]);
});

test("new members in an answer, of a newer service, are let pass", async () => {
  service.distort = (results) => results.map((result) => ({ ...result, receipt: "later" }));
  expect(await host.import()).toMatchObject({ total: clean });
});

test("a signal ends the waiting, and the next run goes on", async () => {
  const stop = new AbortController();
  service.misbehaviours = [
    (request, response) => {
      stop.abort();
      return hangUp(request, response);
    },
  ];
  await expect(host.import({ signal: stop.signal })).rejects.toMatchObject({ name: "AbortError" });
  expect(await host.import()).toMatchObject({ total: { ...clean, signed: 0 } });
});

test("progress tells how many reports are answered, of how many", async () => {
  const seen: unknown[] = [];
  await host.import({ batch: 5, onProgress: (progress) => seen.push(progress) });
  expect(seen).toEqual([
    { phase: "reading", done: 10, total: undefined },
    { phase: "sending", done: 5, total: 10 },
    { phase: "sending", done: 10, total: 10 },
  ]);
});
