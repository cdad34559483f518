import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { Client, SURROUNDINGS } from "../../src/agent/client.ts";
import { FakeService, type Misbehaviour } from "./service.ts";

let service: FakeService;
let server: string;
const reasons: string[] = [];

beforeEach(async () => {
  service = new FakeService();
  server = await service.start();
  reasons.length = 0;
});

afterEach(async () => {
  await service.stop();
});

function client(now?: () => number): Client {
  return new Client({
    server,
    surroundings: { ...SURROUNDINGS, sleep: async () => undefined, ...(now && { now }) },
    timeoutMs: 500,
    onRetry: (reason) => reasons.push(reason),
  });
}

const silent: Misbehaviour = () => true;
/** Begins its answer and never ends it. */
const trickle: Misbehaviour = (_, response) => response.write("{") || true;

describe("a slow server", () => {
  test.each([
    ["never answers", silent],
    ["never ends its answer", trickle],
  ])("that %s is asked again", async (_, slow) => {
    service.misbehaviours = [slow, slow];
    expect(await client().request("v1/nothing")).toMatchObject({ status: 404 });
    // An honest answer may be late too, where the machine is busy.
    expect(reasons.length).toBeGreaterThanOrEqual(2);
    for (const reason of reasons) expect(reason).toContain("timeout");
  });
});

test("the server's clock is known from any answer, to a second", async () => {
  const hour = 3_600_000;
  const late = client(() => Date.now() - hour);
  expect(late.clockOffset).toBeUndefined();
  service.misbehaviours = [(_, response) => !!response.writeHead(503).end()];
  const begun = performance.now();
  await late.request("v1/nothing");
  const taken = performance.now() - begun;
  expect(Math.abs((late.clockOffset ?? 0) - hour)).toBeLessThan(1_000 + taken);
});

test("an address with a path of its own keeps it, with and without a slash at its end", async () => {
  const asked: (string | undefined)[] = [];
  service.server.on("request", ({ url }) => asked.push(url));
  for (const base of [`${server}mb`, `${server}mb/`]) {
    await new Client({ server: base, surroundings: SURROUNDINGS }).request("v1/reports");
  }
  expect(asked).toEqual(["/mb/v1/reports", "/mb/v1/reports"]);
});
