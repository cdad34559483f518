import { createHash } from "node:crypto";
import fc from "fast-check";
import { compactVerify, importJWK } from "jose";
import { expect, test } from "vitest";
import { thumbprint } from "../../src/core/ed25519.ts";
import { compact, headerSegment, signedCompact } from "../../src/core/jws.ts";
import { formatVkey, parseVkey, type Vkey } from "../../src/core/note.ts";
import {
  coversResults,
  RECEIPT_TYP,
  type ReceiptResult,
  readReceipt,
  receiptInput,
  receiptRoot,
  verifyReceipt,
} from "../../src/core/receipt.ts";
import { decodeBase64url, encodeBase64, encodeBase64url, encodeUtf8 } from "../../src/core/text.ts";
import { testKey, verifyByOpenssl } from "../signing.ts";
import { naiveRoot } from "./merkle.ts";

const LOG = "00112233445566778899aabbccddeeff";
const ORIGIN = `minutebook.example/${LOG}`;
const KEY = testKey(61);
const KID = thumbprint(KEY.publicKey);
const STATEMENT = { issued_at: "2026-11-20T12:00:00.000Z", log: LOG, origin: ORIGIN };

const hash32 = fc.uint8Array({ minLength: 32, maxLength: 32 }).map(encodeBase64);
const integer = fc.bigInt({ min: 0n, max: 2n ** 63n - 1n }).map(String);
const result: fc.Arbitrary<ReceiptResult> = fc.record(
  {
    code: fc.constantFrom("accepted", "duplicate", "conflict", "over-cap", "schema", "malformed"),
    digest: hash32,
    counter: integer,
    index: integer,
    leaf: hash32,
  },
  { requiredKeys: ["code", "digest"] },
);
const results = fc.array(result, { minLength: 1, maxLength: 40 });

function receiptOf(answered: readonly ReceiptResult[]): string {
  const input = receiptInput(KID, STATEMENT, answered);
  return signedCompact(input, KEY.sign(encodeUtf8(input)));
}

function vkey(name: string, seed = 61): Vkey {
  const key = parseVkey(formatVkey(name, testKey(seed).publicKey));
  if (key === undefined) throw new Error("no key");
  return key;
}

test("a receipt is a JWS that any library verifies, over a canonical payload", async () => {
  const jws = receiptOf([{ code: "accepted", digest: "A".repeat(43), index: "7" }]);
  const jwk = { crv: "Ed25519", kty: "OKP", x: encodeBase64url(KEY.publicKey), alg: "Ed25519" };
  const { payload, protectedHeader } = await compactVerify(jws, await importJWK(jwk));
  expect(protectedHeader).toEqual({ alg: "Ed25519", kid: KID, typ: "receipt-v1+jws" });
  // From the definition of RFC 6962 alone, with members in the order of RFC 8785.
  const leaf = `\0{"code":"accepted","digest":"${"A".repeat(43)}","index":"7"}`;
  const root = createHash("sha256").update(leaf, "latin1").digest("base64");
  expect(new TextDecoder().decode(payload)).toBe(
    `{"count":"1","issued_at":"2026-11-20T12:00:00.000Z","log":"${LOG}","origin":"${ORIGIN}","root":"${root}"}`,
  );
});

test("results in the order of their request are covered, whatever the order of their members", () => {
  fc.assert(
    fc.property(results, (answered) => {
      const read = readReceipt(receiptOf(answered));
      expect(read && verifyReceipt(read, vkey(`${ORIGIN}/receipt`), verifyByOpenssl)).toBe(true);
      const reordered = answered.map((one) => Object.fromEntries(Object.entries(one).reverse()));
      expect(read && coversResults(read.payload, reordered as ReceiptResult[])).toBe(true);
      const leaves = answered.map((one) => {
        const members = Object.entries(one).sort(([a], [b]) => (a < b ? -1 : 1));
        const text = JSON.stringify(Object.fromEntries(members));
        return new Uint8Array(createHash("sha256").update(`\0${text}`).digest());
      });
      expect(receiptRoot(answered)).toEqual(naiveRoot(leaves));
    }),
    { numRuns: 50 },
  );
});

test("results that are not exactly those are not covered: changed, swapped, left out, or added", () => {
  const changes = fc.constantFrom("code", "digest", "counter", "index", "leaf");
  fc.assert(
    fc.property(results, fc.nat(), changes, result, (answered, at, member, other) => {
      const read = readReceipt(receiptOf(answered));
      if (read === undefined) throw new Error("no receipt");
      const i = at % answered.length;
      const covers = (those: ReceiptResult[]): boolean => coversResults(read.payload, those);
      const changed = { ...answered[i], [member]: `${answered[i]?.[member] ?? ""}x` };
      expect(covers(answered.with(i, changed as ReceiptResult))).toBe(false);
      expect(covers(answered.toSpliced(i, 1))).toBe(false);
      expect(covers([...answered, other])).toBe(false);
      const next = answered[i + 1];
      const one = answered[i];
      if (one && next && JSON.stringify(one) !== JSON.stringify(next)) {
        expect(covers(answered.with(i, next).with(i + 1, one))).toBe(false);
      }
    }),
    { numRuns: 50 },
  );
});

test("only the key whose name is the receipt's origin verifies it", () => {
  const read = readReceipt(receiptOf([{ code: "accepted", digest: "A".repeat(43) }]));
  if (read === undefined) throw new Error("no receipt");
  const by = (key: Vkey): boolean => verifyReceipt(read, key, verifyByOpenssl);
  expect(by(vkey(`${ORIGIN}/receipt`))).toBe(true);
  expect(by(vkey(ORIGIN))).toBe(false); // the same key, named for checkpoints
  expect(by(vkey(`other.example/${LOG}/receipt`))).toBe(false);
  expect(by(vkey(`${ORIGIN}/receipt`, 62))).toBe(false);
});

test("a text that is no receipt is none: another typ, another shape, another byte", () => {
  const jws = receiptOf([{ code: "accepted", digest: "A".repeat(43) }]);
  const payload = new TextDecoder().decode(decodeBase64url(jws.split(".")[1] ?? ""));
  const as = (typ: string, text: string): string =>
    compact(headerSegment(KID, typ), text, KEY.sign);
  expect(readReceipt(as(RECEIPT_TYP, payload))).toBeDefined();
  expect(readReceipt(as("usage-report-v1+jws", payload))).toBeUndefined();
  expect(readReceipt(as(RECEIPT_TYP, payload.replace('"1"', '"0"')))).toBeUndefined();
  expect(readReceipt(as(RECEIPT_TYP, payload.replace('"count"', '"counts"')))).toBeUndefined();
  expect(readReceipt(as(RECEIPT_TYP, ` ${payload}`))).toBeUndefined();
  expect(readReceipt(`${jws}=`)).toBeUndefined();
  for (let at = 0; at < jws.length; at += 1) {
    const altered = jws.slice(0, at) + (jws[at] === "A" ? "B" : "A") + jws.slice(at + 1);
    const read = readReceipt(altered);
    const key = vkey(`${ORIGIN}/receipt`);
    expect(read !== undefined && verifyReceipt(read, key, verifyByOpenssl), `${at}`).toBe(false);
  }
});
