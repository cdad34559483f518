/**
 * One verdict on an Ed25519 signature, whichever library computes it. Libraries differ on keys and
 * signatures with a low-order part (RFC 8032 §5.1.7 leaves it open); what is checked here beforehand
 * leaves them nothing to differ on.
 */
import { ED25519_TORSION_SUBGROUP, ed25519 } from "@noble/curves/ed25519.js";
import { bytesToNumberLE, hexToBytes, numberToBytesLE } from "@noble/curves/utils.js";
import { sha512 } from "@noble/hashes/sha2.js";
import { sha256 } from "./hash.ts";
import { byteAt, concat, encodeBase64url, encodeHex, encodeUtf8, equal } from "./text.ts";

/** A library's opinion: 64-byte signature, message, 32-byte key. Answers false rather than throw. */
export type Verify = (signature: Uint8Array, message: Uint8Array, publicKey: Uint8Array) => boolean;

const { Point } = ed25519;
const { Fn } = Point;
/** L, the order of the group, little-endian like S. */
const ORDER = numberToBytesLE(Fn.ORDER, 32);

/** Every encoding of the eight points of small order; some are there twice, with either sign. */
const SMALL_ORDER = [
  ...ED25519_TORSION_SUBGROUP.map((hex) => hexToBytes(hex)),
  // Of the y that can be written a second time, as y + p, only 0 and 1 are of small order.
  ...[Point.Fp.ORDER, Point.Fp.ORDER + 1n].map((y) => numberToBytesLE(y, 32)),
];
/** Without the sign of x, which is the highest bit of an encoding. */
const Y_OF_LAST_BYTE = 0x7f;

/** Answers that are kept: of far more keys than a log has at a time. */
const ADMITTED_MAX = 10_000;
const admitted = new Map<string, boolean>();

/**
 * May this key be enrolled? 32 bytes that encode a point canonically (RFC 8032 §5.1.3), in the
 * prime-order subgroup and not its identity. Costs a scalar multiplication, once for a key: every
 * checkpoint, and every audit of a log, names the same few again.
 */
export function admissibleKey(publicKey: Uint8Array): boolean {
  if (publicKey.length !== 32) return false;
  const name = encodeHex(publicKey);
  const answer = admitted.get(name) ?? isOfPrimeOrder(publicKey);
  if (admitted.size >= ADMITTED_MAX) admitted.clear();
  admitted.set(name, answer);
  return answer;
}

/** 64 bytes, S below the group order, R no encoding of a point of small order. Compares bytes only. */
export function admissibleSignature(signature: Uint8Array): boolean {
  return (
    signature.length === 64 &&
    isBelowOrder(signature.subarray(32)) &&
    !SMALL_ORDER.some((point) => hasSameY(signature, point))
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

function isOfPrimeOrder(publicKey: Uint8Array): boolean {
  const point = decodePoint(publicKey);
  return point !== undefined && !point.is0() && point.isTorsionFree();
}

function decodePoint(bytes: Uint8Array): InstanceType<typeof Point> | undefined {
  try {
    return Point.fromBytes(bytes);
  } catch {
    return undefined; // another length, not canonical, or not on the curve
  }
}

function isBelowOrder(s: Uint8Array): boolean {
  let highest = 31;
  while (highest >= 0 && s[highest] === ORDER[highest]) highest -= 1;
  return highest >= 0 && byteAt(s, highest) < byteAt(ORDER, highest);
}

/** Whether the 32 bytes of `point`, but for the sign, are the first of `bytes`. */
function hasSameY(bytes: Uint8Array, point: Uint8Array): boolean {
  for (let i = 0; i < 31; i += 1) if (bytes[i] !== point[i]) return false;
  return ((byteAt(bytes, 31) ^ byteAt(point, 31)) & Y_OF_LAST_BYTE) === 0;
}
