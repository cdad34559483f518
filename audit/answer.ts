/**
 * A thread's answer. Hashes cross in one buffer and payloads as the canonical text that they were:
 * cloning them as objects would cost a tenth of what verifying their signatures does.
 */
import { canonical } from "../src/core/json.ts";
import type { Reading, SaidAttestation, SaidReport, Unreadable } from "./prefix/statement.ts";

interface Sent {
  kind: "report" | "attestation";
  kid: string;
  payload: string;
  holds: boolean;
}

export interface Answer {
  said: (Sent | Unreadable)[];
  /** For each text its digest, and then a report's fact. */
  hashes: Uint8Array<ArrayBuffer>;
}

const HASH_BYTES = 32;
const STRIDE = 2 * HASH_BYTES;

export function packAnswer(readings: readonly Reading[]): Answer {
  const hashes = new Uint8Array(readings.length * STRIDE);
  const said = readings.map((reading, i) => {
    if (typeof reading === "string") return reading;
    const { digest, holds, kid, kind, payload } = reading;
    hashes.set(digest, i * STRIDE);
    if (kind === "report") hashes.set(reading.fact, i * STRIDE + HASH_BYTES);
    return { kind, kid, payload: canonical(payload), holds };
  });
  return { said, hashes };
}

export function unpackAnswer({ hashes, said }: Answer): Reading[] {
  return said.map((sent, i) => {
    if (typeof sent === "string") return sent;
    const digest = hashes.subarray(i * STRIDE, i * STRIDE + HASH_BYTES);
    const read = { ...sent, digest, payload: JSON.parse(sent.payload) };
    if (sent.kind === "attestation") return read as SaidAttestation;
    const fact = hashes.subarray(i * STRIDE + HASH_BYTES, (i + 1) * STRIDE);
    return { ...read, fact } as SaidReport;
  });
}
