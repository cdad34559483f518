import { afterAll, expect, test } from "vitest";
import { sha256, verifyNow } from "../../audit/native.ts";
import { type Packed, unpackBundle } from "../../audit/reading/bundle.ts";
import { type Reader, readHere } from "../../audit/reading/reader.ts";
import { openThreads } from "../../audit/threads.ts";
import { encodeBundle } from "../../src/core/bundle.ts";
import { auditFiles, filesOf, said } from "./archive.ts";
import { honestLog } from "./honest.ts";
import { type Agent, agentOf, card, line, sign, TestLog } from "./log.ts";

const threads = openThreads(2);
afterAll(() => threads.close());

const here = (): Reader => readHere({ hash: sha256, verify: verifyNow });
const foundIn = (packed: Packed) => unpackBundle(packed).found;

/** A log that lets the agent's reports stand, and a usage's body to put others into. */
function logOf(agent: Agent): { log: TestLog; put(jws: string): Uint8Array } {
  const log = new TestLog();
  log.write("rate_card", card());
  const enrolled = log.enrol(5, [line("runner-a")]);
  const body = log.usage({ ...agent, kid: enrolled.kid });
  return {
    log,
    put: (jws) => {
      log.force("usage", { ...body, jws });
      return log.entries.at(-1) ?? new Uint8Array();
    },
  };
}

test("threads read and verify as the calling thread does, and answer in the order they were asked", async () => {
  const agent = agentOf(5);
  const stranger = agentOf(6);
  const { log, put } = logOf(agent);
  const entries = Array.from({ length: 300 }, (_, i) => {
    const { jws, report } = log.report(i % 3 === 0 ? stranger : agent, { job: String(i) });
    if (i % 7 === 0) return put(`${jws}=`);
    if (i % 11 === 0) return Uint8Array.of(i % 256);
    if (i % 13 !== 0) return put(jws);
    return put(sign(agent.kid, stranger.key, "usage-report-v1+jws", report));
  });
  const bundles = [0, 60, 120, 180, 240].map((at) => encodeBundle(entries.slice(at, at + 60)));
  const reader = here();
  for (const each of [reader, threads]) each.learn(agent.kid, agent.key.publicKey);
  const expected = await Promise.all(bundles.map((bundle) => reader.read(bundle)));
  const answers = await Promise.all(bundles.map((bundle) => threads.read(bundle)));
  expect(answers.map(unpackBundle)).toEqual(expected.map(unpackBundle));
  const verdicts = expected
    .flatMap(foundIn)
    .map(({ said: read }) => (typeof read === "object" ? read.holds : read));
  expect(new Set(verdicts)).toEqual(new Set([undefined, "jws-malformed", true, false]));
});

test("a key is known from when it was learned, to threads that run and to those to come", async () => {
  const late = agentOf(7);
  const { log, put } = logOf(late);
  const bundle = encodeBundle([put(log.report(late).jws)]);
  expect(foundIn(await threads.read(bundle))).toMatchObject([{ said: { holds: false } }]);
  threads.learn(late.kid, late.key.publicKey);
  expect(foundIn(await threads.read(bundle))).toMatchObject([{ said: { holds: true } }]);
});

test("an audit by threads finds what an audit in one thread finds", async () => {
  const { log, agent } = honestLog();
  log.force("conflict", { jws: log.report(agent).jws, stands: "3" });
  const files = filesOf(log);
  const reader = openThreads(2);
  const byThreads = await auditFiles(files, { reader });
  await reader.close();
  expect(byThreads).toEqual(await auditFiles(files));
  expect(said(byThreads).codes).toEqual(["conflict-unfounded", "key-ended"]);
});

test("a thread that dies fails what it was asked, and hangs nothing", async () => {
  const reader = openThreads(1);
  const nonsense = undefined as unknown as Uint8Array;
  await expect(reader.read(nonsense)).rejects.toThrow(TypeError);
  await reader.close();
});
