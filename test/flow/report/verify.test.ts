import fc from "fast-check";
import { afterAll, expect, test } from "vitest";
import { verdict } from "../../../src/core/ed25519.ts";
import { fact, TYP } from "../../../src/core/report.ts";
import { encodeBase64 } from "../../../src/core/text.ts";
import { verifyByOpenssl, verifySignature } from "../../../src/flow/report/signature.ts";
import { startVerifier, type Verdict } from "../../../src/flow/report/verify.ts";
import { kidOf, LOG, report } from "../../core/history.ts";
import { testKey } from "../../signing.ts";
import { digestOf, reported, sign } from "../door.ts";

const enrolled = new Map([1, 2].map((seed) => [kidOf(seed), testKey(seed).publicKey]));
const lookups: (readonly string[])[] = [];
const verifier = startVerifier({
  threads: 2,
  lookup: async (kids) => {
    lookups.push(kids);
    return new Map(Array.from(enrolled).filter(([kid]) => kids.includes(kid)));
  },
});

afterAll(() => verifier.close());

function codeOf(verdict: Verdict): string {
  return verdict.kind === "signed" ? "signed" : verdict.code;
}

test("a good report comes back whole, with its digest and fact", async () => {
  const jws = reported(1, LOG);
  const [verdict] = await verifier.verify([jws]);
  if (verdict?.kind !== "signed") throw new Error("not signed");
  const { digest, fact: measured, ...rest } = verdict;
  expect(rest).toEqual({ kind: "signed", jws, kid: kidOf(1), report: report({ log: LOG }) });
  expect(encodeBase64(digest)).toBe(digestOf(jws));
  expect(measured).toEqual(fact(report({ log: LOG })));
});

test("verdicts keep the order of their texts, however many there are", async () => {
  const texts = Array.from({ length: 300 }, (_, i) =>
    i % 3 === 0 ? `text ${i}` : reported(1 + (i % 2), LOG, { counter: String(i) }),
  );
  const verdicts = await verifier.verify(texts);
  expect(verdicts.map(({ jws }) => jws)).toEqual(texts);
  const expected = texts.map((text) => (text.startsWith("text") ? "malformed" : "signed"));
  expect(verdicts.map(codeOf)).toEqual(expected);
  expect(await verifier.verify([])).toEqual([]);
  expect(verifier.pending()).toBe(0);
});

test("only what is signed has a kid, and a counter and log where they could be read", async () => {
  const body = { ...report({ log: LOG }) };
  const texts = [
    sign(1, TYP.report, { ...body, extra: "member" }),
    sign(1, TYP.report, { counter: "1", log: "no log" }),
    sign(1, TYP.report, '{"counter":1}'),
    sign(1, TYP.report, "{ not JSON"),
    sign(1, TYP.claim, { ...body }),
    sign(1, TYP.report, { ...body }).replace(/.{8}$/, "AAAAAAAA"),
    sign(9, TYP.report, { ...body }),
  ];
  const verdicts = await verifier.verify(texts);
  const found = verdicts.map(({ kind: _, jws: __, digest: ___, ...rest }) => rest);
  const kid = kidOf(1);
  expect(found).toEqual([
    { code: "schema", kid, counter: "1", log: LOG },
    { code: "schema", kid, counter: "1" },
    { code: "non-canonical", kid },
    { code: "non-canonical", kid },
    { code: "wrong-typ", kid },
    { code: "bad-signature" },
    { code: "unknown-key" },
  ]);
});

test("a known key is never asked for again, an unknown one each time", async () => {
  const texts = Array.from({ length: 300 }, (_, i) => reported(1 + (i % 2), LOG));
  await verifier.verify(texts); // enough for both threads
  lookups.length = 0;
  await verifier.verify(texts);
  expect(lookups).toEqual([]);
  const stranger = reported(50, LOG);
  expect((await verifier.verify([stranger])).map(codeOf)).toEqual(["unknown-key"]);
  enrolled.set(kidOf(50), testKey(50).publicKey);
  expect((await verifier.verify([stranger])).map(codeOf)).toEqual(["signed"]);
});

test("a lookup that fails is told to whoever waits, and the thread goes on", async () => {
  let away = true;
  const failing = startVerifier({
    threads: 1,
    lookup: async () => {
      if (away) throw new Error("database away");
      return enrolled;
    },
  });
  await expect(failing.verify([reported(1, LOG)])).rejects.toThrow("database away");
  away = false;
  expect((await failing.verify([reported(1, LOG)])).map(codeOf)).toEqual(["signed"]);
  expect(failing.pending()).toBe(0);
  await failing.close();
  await expect(failing.verify([reported(1, LOG)])).rejects.toThrow("closed");
});

test("libsodium and OpenSSL give one verdict on mutations of signature, message and key", () => {
  const key = testKey(1);
  const message = fc.uint8Array({ minLength: 1, maxLength: 64 });
  const flips = fc.array(fc.nat({ max: 96 * 8 - 1 }), { maxLength: 3 });
  fc.assert(
    fc.property(message, flips, (message, flips) => {
      const bytes = new Uint8Array([...key.sign(message), ...key.publicKey]);
      for (const bit of flips) bytes[bit >> 3] = (bytes[bit >> 3] ?? 0) ^ (1 << (bit & 7));
      const [signature, publicKey] = [bytes.subarray(0, 64), bytes.subarray(64)];
      const verdicts = [verifySignature, verifyByOpenssl].map((verify) =>
        verdict(signature, message, publicKey, verify),
      );
      expect(verdicts[0]).toBe(verdicts[1]);
      if (flips.length === 0) expect(verdicts[0]).toBe(true);
    }),
  );
});
