import fc from "fast-check";
import { afterAll, beforeAll, expect, test } from "vitest";
import { type Running, type SigningKey, signHeartbeats } from "../../../src/agent/index.ts";
import { verifySignature } from "../../../src/agent/key.ts";
import { parseCanonical } from "../../../src/core/json.ts";
import { readCompact } from "../../../src/core/jws.ts";
import { Heartbeat } from "../../../src/core/quota/heartbeat.ts";
import { decodeBase64url } from "../../../src/core/text.ts";
import { closeStage, openStage, type Stage } from "../stage.ts";

const LOG = "0123456789abcdef0123456789abcdef";

let stage: Stage;
let key: SigningKey;

beforeAll(async () => {
  stage = await openStage();
  key = await stage.host.withState((state) => state.key(state.settings.enrolments[0]?.kid ?? ""));
});

afterAll(() => closeStage(stage));

const integer = fc.bigInt({ min: 0n, max: 2n ** 63n - 1n }).map(String);
const running: fc.Arbitrary<Running> = fc.record({
  uniqueId: fc.constant("instance"),
  runner: fc.record({
    system_id: fc.constantFrom("s_1", "", "ü".repeat(120)),
    uuid: fc.constantFrom("one", "two"),
  }),
  job: fc.record(
    {
      elapsed_ms: integer,
      id: integer,
      project_id: integer,
      root_namespace_id: integer,
      timeout_ms: integer,
    },
    { requiredKeys: ["elapsed_ms", "id", "project_id", "root_namespace_id"] },
  ),
});

test("every running job is in exactly one text, under the key's signature, of at most 4,096 bytes", () => {
  const x = decodeBase64url(key.publicKey.x) ?? new Uint8Array();
  fc.assert(
    fc.property(fc.array(running, { maxLength: 150 }), (jobs) => {
      const signed = signHeartbeats(key, LOG, jobs, 1_700_000_000_000);
      const told = signed.flatMap(({ jws, running: named }) => {
        expect(jws.length).toBeLessThanOrEqual(4_096);
        const text = readCompact(jws);
        if (text === undefined) throw new Error("no strict JWS");
        expect(verifySignature(text.signature, text.input, x)).toBe(true);
        const heartbeat = Heartbeat.parse(parseCanonical(text.payload));
        expect(heartbeat.log).toBe(LOG);
        expect(heartbeat.jobs).toEqual(named.map(({ job }) => job));
        return heartbeat.jobs.map((job) => ({ runner: heartbeat.runner, job }));
      });
      const said = jobs.map(({ runner, job }) => ({ runner, job }));
      const byText = (a: unknown, b: unknown): number =>
        JSON.stringify(a) < JSON.stringify(b) ? -1 : 1;
      expect(told.toSorted(byText)).toEqual(said.toSorted(byText));
    }),
    { numRuns: 50 },
  );
});

test("a host of thousands of jobs says them in few texts", () => {
  const jobs = Array.from({ length: 5_000 }, (_, i) => ({
    uniqueId: "instance",
    runner: { system_id: "s_1818892f902b", uuid: "a09f76b5-a170-4338-b926-3059f28c105d" },
    job: {
      elapsed_ms: String(3_600_000 + i),
      id: String(9_000_000_000 + i),
      project_id: "50010",
      root_namespace_id: "1001",
      timeout_ms: "3600000",
    },
  }));
  expect(signHeartbeats(key, LOG, jobs, 0).length).toBeLessThan(250);
});
