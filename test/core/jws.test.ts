import fc from "fast-check";
import { compactVerify, importJWK } from "jose";
import { expect, test } from "vitest";
import { thumbprint, verdict } from "../../src/core/ed25519.ts";
import { compact, headerSegment, readCompact } from "../../src/core/jws.ts";
import { decodeUtf8, encodeBase64url, encodeUtf8 } from "../../src/core/text.ts";
import { testKey, verifyByOpenssl } from "../signing.ts";
import own from "../vectors/jws.json" with { type: "json" };

const KEY = testKey(7);
const KID = thumbprint(KEY.publicKey);
const TYP = "usage-report-v1+jws";
const HEADER = headerSegment(KID, TYP);
const JWS = compact(HEADER, '{"counter":"1","note":"Zürich ✓"}', KEY.sign);
const JOSE_KEY = await importJWK({
  alg: "Ed25519",
  crv: "Ed25519",
  kty: "OKP",
  x: encodeBase64url(KEY.publicKey),
});

function isTaken(text: string): boolean {
  const jws = readCompact(text);
  if (jws === undefined || jws.kid !== KID) return false;
  return verdict(jws.signature, jws.input, KEY.publicKey, verifyByOpenssl);
}

async function isTakenByJose(text: string): Promise<boolean> {
  return compactVerify(text, JOSE_KEY, { algorithms: ["Ed25519"] }).then(
    () => true,
    () => false,
  );
}

/** Signs any header, also those that `headerSegment` refuses to write. */
function signed(header: string, payload = encodeBase64url(encodeUtf8('"p"'))): string {
  const input = `${encodeBase64url(encodeUtf8(header))}.${payload}`;
  return `${input}.${encodeBase64url(KEY.sign(encodeUtf8(input)))}`;
}

test.each(own.vectors)("what jose signed as $typ is read, and written again alike", (vector) => {
  const jws = readCompact(vector.jws);
  expect(jws?.typ).toBe(vector.typ);
  expect(jws?.kid).toBe(own.kid);
  expect(decodeUtf8(jws?.payload ?? new Uint8Array())).toBe(vector.payload);
  expect(isTaken(vector.jws)).toBe(true);
  const header = headerSegment(own.kid, vector.typ);
  expect(compact(header, vector.payload, KEY.sign)).toBe(vector.jws);
});

test("what is read is what was signed", () => {
  fc.assert(
    fc.property(fc.string({ minLength: 1, maxLength: 200 }), (payload) => {
      const text = compact(HEADER, payload, KEY.sign);
      const jws = readCompact(text);
      expect(jws).toMatchObject({ kid: KID, typ: TYP, payload: encodeUtf8(payload) });
      expect(decodeUtf8(jws?.input ?? new Uint8Array())).toBe(text.slice(0, -87));
      expect(isTaken(text)).toBe(true);
    }),
  );
});

test("no change of the text leaves it valid; where jose takes one, it is a re-encoding", async () => {
  const letters = fc.constantFrom(..."ABab09-_+/=. \n\u0141");
  const change = fc.constantFrom<"replace" | "insert" | "remove">("replace", "insert", "remove");
  // Half of the changes are made where a lax decoder would not see them: at the very end.
  const place = fc.oneof(fc.nat(JWS.length), fc.integer({ min: JWS.length - 3, max: JWS.length }));
  await fc.assert(
    fc.asyncProperty(change, place, letters, async (kind, at, letter) => {
      const end = kind === "insert" ? at : at + 1;
      const changed = JWS.slice(0, at) + (kind === "remove" ? "" : letter) + JWS.slice(end);
      const ours = isTaken(changed);
      expect(ours).toBe(changed === JWS);
      if (await isTakenByJose(changed)) expect(reencoded(changed)).toBe(JWS);
      else expect(ours).toBe(false);
    }),
    { numRuns: 1500 },
  );
});

/** What a lax decoder makes of a compact JWS, written strictly. */
function reencoded(text: string): string {
  const again = (segment: string) => Buffer.from(segment, "base64").toString("base64url");
  return text.split(".").map(again).join(".");
}

test.each([
  ["trailing bits in its signature", `${JWS.slice(0, -1)}${nextLetter(JWS)}`],
  ["padding", `${JWS}==`],
  ["a line break", `${JWS.slice(0, -20)}\n${JWS.slice(-20)}`],
])("%s makes another text of the same statement: jose takes it, we do not", async (_, text) => {
  expect(text).not.toBe(JWS);
  expect(await isTakenByJose(text)).toBe(true);
  expect(readCompact(text)).toBeUndefined();
});

/** The signature's last letter carries four bits that no byte takes: this one sets the lowest. */
function nextLetter(jws: string): string {
  return String.fromCharCode(jws.charCodeAt(jws.length - 1) + 1);
}

function toOtherAlphabet(jws: string): string {
  const end = jws.lastIndexOf(".");
  return jws.slice(0, end) + jws.slice(end).replaceAll("-", "+").replaceAll("_", "/");
}

test.each([
  ["a name twice", `{"alg":"none","alg":"Ed25519","kid":"${KID}","typ":"${TYP}"}`],
  ["an unencoded payload", `{"alg":"Ed25519","b64":false,"crit":["b64"],"kid":"${KID}"}`],
  ["a key inside", `{"alg":"Ed25519","jwk":{},"kid":"${KID}","typ":"${TYP}"}`],
  ["the old name EdDSA", `{"alg":"EdDSA","kid":"${KID}","typ":"${TYP}"}`],
  ["no algorithm", `{"alg":"none","kid":"${KID}","typ":"${TYP}"}`],
  ["a space", `{"alg":"Ed25519", "kid":"${KID}","typ":"${TYP}"}`],
  ["another order", `{"kid":"${KID}","alg":"Ed25519","typ":"${TYP}"}`],
  ["a short kid", `{"alg":"Ed25519","kid":"${KID.slice(1)}","typ":"${TYP}"}`],
  ["an uppercase typ", `{"alg":"Ed25519","kid":"${KID}","typ":"JWT"}`],
  ["a typ of 65 letters", `{"alg":"Ed25519","kid":"${KID}","typ":"${"a".repeat(65)}"}`],
  ["no typ", `{"alg":"Ed25519","kid":"${KID}"}`],
  ["a line break after it", `{"alg":"Ed25519","kid":"${KID}","typ":"${TYP}"}\n`],
])("a header with %s is refused, however well it is signed", (_, header) => {
  expect(readCompact(signed(header))).toBeUndefined();
});

test("a header that is no UTF-8 is refused", () => {
  const input = `${encodeBase64url(Uint8Array.of(0xff))}.cA`;
  const text = `${input}.${encodeBase64url(KEY.sign(encodeUtf8(input)))}`;
  expect(readCompact(text)).toBeUndefined();
});

test.each([
  ["nothing", ""],
  ["a signature in the other alphabet", toOtherAlphabet(JWS)],
  ["two segments", JWS.slice(0, JWS.lastIndexOf("."))],
  ["four segments", `${JWS}.`],
  ["an empty payload", compact(HEADER, "", KEY.sign)],
  ["a payload with trailing bits", signed(`{"alg":"Ed25519","kid":"${KID}","typ":"${TYP}"}`, "cB")],
  ["a header with trailing bits", JWS.replace(HEADER, `${HEADER.slice(0, -1)}B`)],
])("%s is no compact JWS here", (_, text) => {
  expect(readCompact(text)).toBeUndefined();
});

test("4,096 bytes are read, one more is neither read nor written", () => {
  const room = 4096 - HEADER.length - 88;
  const fits = compact(HEADER, "p".repeat(Math.floor((room * 3) / 4)), KEY.sign);
  expect(fits.length).toBe(4096);
  expect(isTaken(fits)).toBe(true);
  expect(readCompact(`${fits.slice(0, 400)}A${fits.slice(400)}`)).toBeUndefined();
  expect(() => compact(HEADER, "p".repeat(4096), KEY.sign)).toThrow("jws:");
});

test("no header is written that the reader refuses", () => {
  expect(() => headerSegment("short", TYP)).toThrow("jws:");
  expect(() => headerSegment(KID, 'x","b64":false,"y":"')).toThrow("jws:");
});
