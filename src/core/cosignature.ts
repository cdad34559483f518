/**
 * C2SP tlog-cosignature, cosignature/v1 with Ed25519: a witness's word that at a time a checkpoint was
 * the newest it knew of that log, and consistent with all it had seen before.
 */
import { parseCheckpoint } from "./checkpoint.ts";
import type { Signer } from "./note.ts";
import { signatureLine } from "./signature-line.ts";
import { concat, encodeUtf8 } from "./text.ts";

/** Seconds since the epoch, 0 < time ≤ 2^63−1, and the Ed25519 signature over the message. */
export interface Cosignature {
  time: bigint;
  signature: Uint8Array;
}

const TIME_MAX = 2n ** 63n - 1n;
/** What clocks may differ by, in seconds. */
const SKEW = 300n;
const TIME_BYTES = 8;
const BYTES = TIME_BYTES + 64;

/** What a witness signs over a checkpoint's text. It names no witness: a key is one witness's alone. */
export function cosignatureMessage(text: string, time: bigint): Uint8Array {
  return encodeUtf8(`cosignature/v1\ntime ${time}\n${text}`);
}

/**
 * The witness's signature line, with its newline. Throws on a text that is no checkpoint, and unless
 * 0 < time ≤ 2^63−1: C2SP tlog-witness allows no cosignature without a time.
 */
export function cosign(signer: Signer, text: string, time: bigint): string {
  if (parseCheckpoint(text) === undefined) throw new Error("cosignature: not over a checkpoint");
  if (time <= 0n || time > TIME_MAX) throw new Error("cosignature: no such time");
  const stamp = new Uint8Array(TIME_BYTES);
  new DataView(stamp.buffer).setBigUint64(0, time);
  const signature = signer.sign(cosignatureMessage(text, time));
  return signatureLine(signer.name, signer.publicKey, concat(stamp, signature), "cosignature");
}

/** By a clock that says `now`, in seconds: such a cosignature must not count. */
export function isFuture(time: bigint, now: bigint): boolean {
  return time > now + SKEW;
}

/** The 72 bytes behind the key id: uint64 big-endian time ‖ signature. Undefined at time 0, as at none. */
export function readCosignature(bytes: Uint8Array): Cosignature | undefined {
  if (bytes.length !== BYTES) return undefined;
  const time = new DataView(bytes.buffer, bytes.byteOffset).getBigUint64(0);
  return time > 0n && time <= TIME_MAX
    ? { time, signature: bytes.subarray(TIME_BYTES) }
    : undefined;
}
