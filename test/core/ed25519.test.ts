import { ED25519_TORSION_SUBGROUP, ed25519 } from "@noble/curves/ed25519.js";
import { bytesToNumberLE, numberToBytesLE } from "@noble/curves/utils.js";
import { sha512 } from "@noble/hashes/sha2.js";
import fc from "fast-check";
import { calculateJwkThumbprint } from "jose";
import { expect, test } from "vitest";
import {
  admissibleKey,
  admissibleSignature,
  thumbprint,
  type Verify,
  verdict,
  verifyByPoints,
} from "../../src/core/ed25519.ts";
import { concat, encodeBase64url } from "../../src/core/text.ts";
import { testKey, verifyByOpenssl, verifyBySodium } from "../signing.ts";

const { Point } = ed25519;
const P = Point.Fp.ORDER;
const L = Point.Fn.ORDER;
const TORSION = ED25519_TORSION_SUBGROUP.map((hex) => Point.fromHex(hex));
const EIGHTH = TORSION.find((point) => !point.double().double().is0()) ?? Point.ZERO;
const LIBRARIES: Verify[] = [verifyByOpenssl, verifyBySodium, verifyByPoints];

const message = fc.uint8Array({ maxLength: 64 });

function verdicts(signature: Uint8Array, text: Uint8Array, publicKey: Uint8Array): boolean[] {
  return LIBRARIES.map((verify) => verdict(signature, text, publicKey, verify));
}

/** Every 32 bytes whose y is this one, with either sign of x. */
function bothSigns(y: bigint): Uint8Array[] {
  return [numberToBytesLE(y, 32), numberToBytesLE(y | (1n << 255n), 32)];
}

test("three libraries give one verdict on good, changed and foreign signatures", () => {
  const seed = fc.uint8Array({ minLength: 32, maxLength: 32 });
  fc.assert(
    fc.property(seed, message, fc.nat(63), fc.nat(255), (bytes, text, place, change) => {
      const key = testKey(bytes);
      const signature = key.sign(text);
      expect(verdicts(signature, text, key.publicKey)).toEqual([true, true, true]);
      const changed = signature.map((byte, i) => (i === place ? byte ^ change : byte));
      const same = change === 0;
      expect(verdicts(changed, text, key.publicKey)).toEqual([same, same, same]);
      expect(verdicts(signature, text, testKey(9).publicKey)).toEqual([false, false, false]);
    }),
    { numRuns: 25 },
  );
});

test("a low-order part in R, which noble's own verify takes, is refused by all", () => {
  const scalar = 12345n;
  const publicKey = Point.BASE.multiply(scalar).toBytes();
  const r = Point.BASE.multiply(67890n).add(EIGHTH).toBytes();
  const text = Uint8Array.of(1);
  const k = Point.Fn.create(bytesToNumberLE(sha512(concat(r, publicKey, text))));
  const signature = concat(r, numberToBytesLE(Point.Fn.create(67890n + k * scalar), 32));
  expect(ed25519.verify(signature, text, publicKey, { zip215: false })).toBe(true);
  expect(admissibleSignature(signature)).toBe(true);
  expect(verdicts(signature, text, publicKey)).toEqual([false, false, false]);
});

test("S and S + L are not two signatures", () => {
  const key = testKey(3);
  const text = Uint8Array.of(1);
  const signature = key.sign(text);
  const s = bytesToNumberLE(signature.slice(32));
  const raised = concat(signature.slice(0, 32), numberToBytesLE(s + L, 32));
  expect(admissibleSignature(raised)).toBe(false);
  expect(LIBRARIES.map((verify) => verify(raised, text, key.publicKey))).toEqual([
    false,
    false,
    false,
  ]);
});

test("S is any number below the group order", () => {
  const r = Point.BASE.toBytes();
  for (const s of [0n, 1n, 255n, 256n, L - 1n]) {
    expect(admissibleSignature(concat(r, numberToBytesLE(s, 32)))).toBe(true);
  }
  for (const s of [L, L + 1n, 2n ** 253n, 2n ** 256n - 1n]) {
    expect(admissibleSignature(concat(r, numberToBytesLE(s, 32)))).toBe(false);
  }
});

test("a signature has 64 bytes", () => {
  for (const length of [0, 32, 63, 65, 128]) {
    expect(admissibleSignature(new Uint8Array(length).fill(5))).toBe(false);
  }
  expect(verifyByPoints(new Uint8Array(63), Uint8Array.of(), testKey(1).publicKey)).toBe(false);
});

test("R is refused in every encoding of a point of small order, and in no other", () => {
  // Canonical ones, and every y that can be written a second time, as y + p below 2^255.
  const ys = [
    ...TORSION.map((point) => point.y),
    ...Array.from({ length: 19 }, (_, i) => P + BigInt(i)),
  ];
  const encodings = ys.flatMap(bothSigns);
  const refused = encodings.filter((r) => !admissibleSignature(concat(r, new Uint8Array(32))));
  const small = encodings.filter((r) => decodeLaxly(r)?.isSmallOrder() === true);
  expect(refused).toEqual(expect.arrayContaining(small));
  // Beyond what decodes: x = 0 with its sign set, which some libraries take for the point as well.
  expect(new Set(refused.map(encodeBase64url)).size).toBe(14);
});

function decodeLaxly(bytes: Uint8Array): InstanceType<typeof Point> | undefined {
  try {
    return Point.fromBytes(bytes, true);
  } catch {
    return undefined;
  }
}

test("keys are enrolled in the prime-order subgroup only, in their one encoding", () => {
  const honest = Point.fromBytes(testKey(4).publicKey);
  expect(admissibleKey(honest.toBytes())).toBe(true);
  for (const point of TORSION) {
    expect(admissibleKey(point.toBytes())).toBe(false);
    expect(admissibleKey(honest.add(point).toBytes())).toBe(point.is0());
  }
  for (let y = P; y < 2n ** 255n; y++) {
    expect(bothSigns(y).map(admissibleKey)).toEqual([false, false]);
  }
});

test("bytes that encode no point are no key", () => {
  const offCurve = numberToBytesLE(2n, 32);
  expect(admissibleKey(offCurve)).toBe(false);
  expect(verifyByPoints(new Uint8Array(64), Uint8Array.of(), offCurve)).toBe(false);
  for (const length of [0, 31, 33, 64]) expect(admissibleKey(new Uint8Array(length))).toBe(false);
});

test("a key's thumbprint is the one that jose computes", async () => {
  for (const seed of [1, 2, 3]) {
    const { publicKey } = testKey(seed);
    const jwk = { crv: "Ed25519", kty: "OKP", x: encodeBase64url(publicKey) };
    expect(thumbprint(publicKey)).toBe(await calculateJwkThumbprint(jwk));
  }
});
