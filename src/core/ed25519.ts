/**
 * One verdict on an Ed25519 signature, whichever library computes it. Libraries differ on keys and
 * signatures with a low-order part (RFC 8032 §5.1.7 leaves it open); what is checked here beforehand
 * leaves them nothing to differ on.
 */
import { ED25519_TORSION_SUBGROUP, ed25519 } from "@noble/curves/ed25519.js";
import { bytesToNumberLE } from "@noble/curves/utils.js";
import { sha512 } from "@noble/hashes/sha2.js";
import { sha256 } from "./hash.ts";
import { concat, decodeHex, encodeBase64url, encodeUtf8, equal } from "./text.ts";

/** A library's opinion: 64-byte signature, message, 32-byte key. Answers false rather than throw. */
export type Verify = (signature: Uint8Array, message: Uint8Array, publicKey: Uint8Array) => boolean;

const { Point } = ed25519;
const { Fn } = Point;
/** L, the order of the group, as the 32 bytes that S is compared with. */
const ORDER = Fn.toBytes(Fn.ORDER - 1n).map((byte, i) => (i === 0 ? byte + 1 : byte));

/** Every encoding of the eight points of small order, its sign bit cleared. */
const SMALL_ORDER = smallOrderEncodings();

/**
 * May this key be enrolled? 32 bytes that encode a point canonically (RFC 8032 §5.1.3), in the
 * prime-order subgroup and not its identity. Costs a scalar multiplication: asked once for a key.
 */
export function admissibleKey(publicKey: Uint8Array): boolean {
  const point = decodePoint(publicKey);
  return point !== undefined && !point.is0() && point.isTorsionFree();
}

/** 64 bytes, S below the group order, R no encoding of a point of small order. Compares bytes only. */
export function admissibleSignature(signature: Uint8Array): boolean {
  return (
    signature.length === 64 &&
    isBelowOrder(signature.subarray(32)) &&
    !SMALL_ORDER.some((encoding) => startsWithPoint(signature, encoding))
  );
}

/** The verdict, for a key that `admissibleKey` has let in. */
export function verdict(
  signature: Uint8Array,
  message: Uint8Array,
  publicKey: Uint8Array,
  verify: Verify,
): boolean {
  return admissibleSignature(signature) && verify(signature, message, publicKey);
}

/**
 * encode([S]B − [k]A) byte-equal to R (RFC 8032 §5.1.7 without the cofactor), by point operations:
 * noble's own `verify` takes an R with a low-order part, which OpenSSL and libsodium refuse.
 */
export const verifyByPoints: Verify = (signature, message, publicKey) => {
  const a = decodePoint(publicKey);
  if (a === undefined || signature.length !== 64) return false;
  const r = signature.subarray(0, 32);
  const s = signature.subarray(32);
  if (!isBelowOrder(s)) return false;
  const k = Fn.create(bytesToNumberLE(sha512(concat(r, publicKey, message))));
  const sb = Point.BASE.multiplyUnsafe(bytesToNumberLE(s));
  return equal(sb.subtract(a.multiplyUnsafe(k)).toBytes(), r);
};

/** RFC 7638 thumbprint of the key as an OKP JWK (RFC 8037 appendix A.3): 43 characters. */
export function thumbprint(publicKey: Uint8Array): string {
  const jwk = `{"crv":"Ed25519","kty":"OKP","x":"${encodeBase64url(publicKey)}"}`;
  return encodeBase64url(sha256(encodeUtf8(jwk)));
}

function decodePoint(bytes: Uint8Array): InstanceType<typeof Point> | undefined {
  try {
    return Point.fromBytes(bytes);
  } catch {
    return undefined; // another length, not canonical, or not on the curve
  }
}

/** Little-endian 32 bytes below L. */
function isBelowOrder(s: Uint8Array): boolean {
  for (let i = 31; i >= 0; i--) {
    const difference = (s[i] ?? 0) - (ORDER[i] ?? 0);
    if (difference !== 0) return difference < 0;
  }
  return false;
}

/** Whether R is this y, with either sign of x. */
function startsWithPoint(signature: Uint8Array, encoding: Uint8Array): boolean {
  return encoding.every(
    (byte, i) => byte === (i === 31 ? (signature[i] ?? 0) & 0x7f : signature[i]),
  );
}

function smallOrderEncodings(): Uint8Array[] {
  const p = Point.Fp.ORDER;
  const canonical = ED25519_TORSION_SUBGROUP.map((hex) => decodeHex(hex) ?? new Uint8Array());
  // Of the y that can be written a second time, as y + p, only 0 and 1 are of small order.
  const second = [p, p + 1n].map((y) =>
    Uint8Array.from({ length: 32 }, (_, i) => Number((y >> BigInt(8 * i)) & 0xffn)),
  );
  return [...canonical, ...second].map((bytes) =>
    bytes.map((byte, i) => (i === 31 ? byte & 0x7f : byte)),
  );
}
