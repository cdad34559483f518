/** One verdict, whoever gives it: the service's library, jose, OpenSSL, and both ways of the browser. */
import { ED25519_TORSION_SUBGROUP, ed25519 } from "@noble/curves/ed25519.js";
import { bytesToNumberLE, numberToBytesLE } from "@noble/curves/utils.js";
import { sha512 } from "@noble/hashes/sha2.js";
import { compactVerify, importJWK } from "jose";
import { afterAll, beforeAll, expect, test } from "vitest";
import { admissibleKey, thumbprint, type Verify, verdict } from "../../src/core/ed25519.ts";
import { compact, headerSegment, readCompact } from "../../src/core/jws.ts";
import { Report, TYP } from "../../src/core/report.ts";
import { concat, encodeBase64url, encodeHex, encodeUtf8 } from "../../src/core/text.ts";
import { examine } from "../../src/flow/report/examine.ts";
import { agentOf, TestLog } from "../audit/log.ts";
import { testKey, verifyByOpenssl, verifyBySodium } from "../signing.ts";
import { type AuditPage, openAuditPage } from "./page.ts";
import type { Verdicts } from "./probe.ts";

let page: AuditPage;
beforeAll(async () => {
  page = await openAuditPage();
});
afterAll(async () => await page.close());

const { Point } = ed25519;
const L = Point.Fn.ORDER;
const P = Point.Fp.ORDER;
const TORSION = ED25519_TORSION_SUBGROUP.map((hex) => Point.fromHex(hex));
const KEY = testKey(7);

interface Case {
  publicKey: Uint8Array;
  message: Uint8Array;
  signature: Uint8Array;
}

const le = (value: bigint): Uint8Array => numberToBytesLE(value, 32);

/** Solves the equation for points with whatever part of small order, so that cofactored verifiers accept. */
function craft(keyPart: InstanceType<typeof Point>, rPart: InstanceType<typeof Point>): Case {
  const [a, r] = [12_345n, 67_890n];
  const publicKey = Point.BASE.multiply(a).add(keyPart).toBytes();
  const first = Point.BASE.multiply(r).add(rPart).toBytes();
  const message = encodeUtf8("crafted");
  const k = Point.Fn.create(bytesToNumberLE(sha512(concat(first, publicKey, message))));
  return { publicKey, message, signature: concat(first, le(Point.Fn.create(r + k * a))) };
}

function cases(): Case[] {
  const { publicKey } = KEY;
  const all: Case[] = [];
  for (const length of [0, 1, 63, 64, 1_000, 70_000]) {
    const message = new Uint8Array(length).fill(length);
    const signature = KEY.sign(message);
    all.push({ publicKey, message, signature });
    all.push({ publicKey: testKey(8).publicKey, message, signature });
    all.push({ publicKey, message: concat(message, Uint8Array.of(0)), signature });
    const s = bytesToNumberLE(signature.subarray(32));
    for (const other of [s + L, L, 0n, L - 1n, 2n ** 256n - 1n]) {
      all.push({ publicKey, message, signature: concat(signature.subarray(0, 32), le(other)) });
    }
    for (const size of [0, 63, 65]) {
      const other = concat(signature, Uint8Array.of(0)).subarray(0, size);
      all.push({ publicKey, message, signature: other });
    }
    for (let bit = 0; bit < 512; bit += 17) {
      const changed = signature.map((byte, i) => (i === bit >> 3 ? byte ^ (1 << (bit & 7)) : byte));
      all.push({ publicKey, message, signature: changed });
    }
  }
  for (const keyPart of TORSION) for (const rPart of TORSION) all.push(craft(keyPart, rPart));
  const odd = [0n, 1n, 2n, P - 1n, P, P + 1n, 2n ** 255n - 1n].flatMap((y) => [
    le(y),
    le(y | (1n << 255n)),
  ]);
  for (const point of [...odd, ...TORSION.map((torsion) => torsion.toBytes())]) {
    const message = encodeUtf8("odd");
    const signature = KEY.sign(message);
    all.push({ publicKey: point, message, signature });
    all.push({ publicKey: point, message, signature: concat(point, le(0n)) });
    all.push({ publicKey, message, signature: concat(point, signature.subarray(32)) });
  }
  return all;
}

function judged({ message, publicKey, signature }: Case, verify: Verify): boolean {
  return admissibleKey(publicKey) && verdict(signature, message, publicKey, verify);
}

test("this browser has Ed25519 in WebCrypto: what follows asks both ways", async () => {
  expect(await page.call("probe.hasWebCrypto()")).toBe(true);
});

test("good, changed, crafted and malformed signatures get the service's verdict", async () => {
  const all = cases();
  const hex = all.map(({ message, publicKey, signature }) => ({
    message: encodeHex(message),
    publicKey: encodeHex(publicKey),
    signature: encodeHex(signature),
  }));
  const found = await page.call<Verdicts[]>(`probe.judgeSignatures(${JSON.stringify(hex)})`);
  const expected = all.map((one) => judged(one, verifyBySodium));
  expect(all.map((one) => judged(one, verifyByOpenssl))).toEqual(expected);
  expect(found.map(({ points }) => points)).toEqual(expected);
  expect(found.map(({ web }) => web)).toEqual(expected);
  // Six lengths, and the crafted one that has no part of small order.
  expect(expected.filter((holds) => holds)).toHaveLength(6 + 1);
});

function mutations(jws: string): string[] {
  const [header = "", payload = "", signature = ""] = jws.split(".");
  const all = [jws, `${jws}=`, `${jws}\n`, ` ${jws}`, `${jws}.`, `${jws}.${signature}`, "", ".."];
  all.push(`${header}.${payload}.`, `${header}..${signature}`, `.${payload}.${signature}`);
  all.push(`${header}.${payload}.${signature.replaceAll("-", "+").replaceAll("_", "/")}`);
  for (const letter of "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_") {
    all.push(jws.slice(0, -1) + letter); // trailing bits, which jose does not look at
  }
  for (let at = 0; at < jws.length; at += 3) {
    all.push(jws.slice(0, at) + (jws[at] === "A" ? "B" : "A") + jws.slice(at + 1));
    all.push(jws.slice(0, at) + jws.slice(at + 1));
  }
  return all;
}

test("mutations of a signed report get the service's verdict, and jose's where the form is strict", async () => {
  const agent = agentOf(7);
  const { jws } = new TestLog().report(agent);
  const signedAs = (header: string): string => {
    const input = `${encodeBase64url(encodeUtf8(header))}.${jws.split(".")[1]}`;
    return `${input}.${encodeBase64url(KEY.sign(encodeUtf8(input)))}`;
  };
  const { kid } = agent;
  const texts = [
    ...mutations(jws),
    signedAs(`{"alg":"EdDSA","kid":"${kid}","typ":"${TYP.report}"}`),
    signedAs(`{"alg":"Ed25519","b64":false,"crit":["b64"],"kid":"${kid}","typ":"${TYP.report}"}`),
    signedAs(`{"alg":"none","alg":"Ed25519","kid":"${kid}","typ":"${TYP.report}"}`),
    signedAs(`{"typ":"${TYP.report}","kid":"${kid}","alg":"Ed25519"}`),
    compact(headerSegment(kid, TYP.attestation), "{}", KEY.sign),
    compact(headerSegment(thumbprint(testKey(8).publicKey), TYP.report), "{}", KEY.sign),
  ];
  const asked = `${JSON.stringify(texts)}, "${encodeHex(KEY.publicKey)}"`;
  const found = await page.call<Verdicts[]>(`probe.judgeJws(${asked})`);
  const expected = texts.map((text) => {
    const keyOf = (read: { kid: string }) => (read.kid === kid ? KEY.publicKey : undefined);
    return examine(text, TYP.report, Report, keyOf).kid !== undefined;
  });
  expect(found.map(({ points }) => points)).toEqual(expected);
  expect(found.map(({ web }) => web)).toEqual(expected);
  expect(expected.filter((holds) => holds)).toHaveLength(2 + 1);
  const jwk = { alg: "Ed25519", crv: "Ed25519", kty: "OKP", x: encodeBase64url(KEY.publicKey) };
  const joseKey = await importJWK(jwk);
  for (const [i, text] of texts.entries()) {
    if (readCompact(text)?.kid !== kid) continue;
    const verified = compactVerify(text, joseKey).then(
      () => true,
      () => false,
    );
    expect([text, await verified]).toEqual([text, expected[i]]);
  }
});
