import { afterAll, expect, test } from "vitest";
import { sha256, verifyNow } from "../../audit/native.ts";
import { readSigned, type SignedText } from "../../audit/prefix/statement.ts";
import { openThreads } from "../../audit/threads.ts";
import { auditFiles, filesOf, said } from "./archive.ts";
import { honestLog } from "./honest.ts";
import { agentOf, sign, TestLog } from "./log.ts";

const threads = openThreads(2);
afterAll(() => threads.close());

test("threads read and verify as the calling thread does, and answer in the order they were asked", async () => {
  const log = new TestLog();
  const agent = agentOf(5);
  const stranger = agentOf(6);
  const texts: SignedText[] = Array.from({ length: 300 }, (_, i) => {
    const { jws, report } = log.report(i % 3 === 0 ? stranger : agent, { job: String(i) });
    if (i % 7 === 0) return { kind: "report", text: `${jws}=` };
    if (i % 11 === 0) return { kind: "attestation", text: jws };
    if (i % 13 !== 0) return { kind: "report", text: jws };
    return { kind: "report", text: sign(agent.kid, stranger.key, "usage-report-v1+jws", report) };
  });
  const keys = new Map([[agent.kid, agent.key.publicKey]]);
  const expected = texts.map((text) => readSigned(text, keys, { hash: sha256, verify: verifyNow }));
  threads.learn(agent.kid, agent.key.publicKey);
  expect(await threads.read(texts)).toEqual(expected);
  expect(new Set(expected.map((read) => (typeof read === "string" ? read : read.holds)))).toEqual(
    new Set(["jws-malformed", true, false]),
  );
});

test("a key is known from when it was learned, to threads that run and to those to come", async () => {
  const late = agentOf(7);
  const text: SignedText = { kind: "report", text: new TestLog().report(late).jws };
  expect(await threads.read([text])).toMatchObject([{ holds: false }]);
  threads.learn(late.kid, late.key.publicKey);
  expect(await threads.read([text])).toMatchObject([{ holds: true }]);
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
  const nonsense = [{ kind: "report", text: undefined }] as unknown as SignedText[];
  await expect(reader.read(nonsense)).rejects.toThrow(TypeError);
  await reader.close();
});
