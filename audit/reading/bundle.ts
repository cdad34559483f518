/**
 * A bundle's entries, each read to the end: its shape, its hash, and what an agent signed in it. None of
 * that depends on other entries, so it may be done anywhere, and travels back packed: usual entries as
 * the texts that were captured of them in one long text, hashes in one buffer, and the rest as it is.
 */

import { JWS_CHARS_MAX } from "../../src/core/body.ts";
import { type Verify, verdict } from "../../src/core/ed25519.ts";
import type { Entry } from "../../src/core/entry.ts";
import { leafHash, type Sha256 } from "../../src/core/hash.ts";
import { decodeBase64url, decodeUtf8, encodeUtf8 } from "../../src/core/text.ts";
import { type Found, readEntry, splitBundle, type UnknownEntry } from "../archive/block.ts";
import { readSigned, type SignedText } from "../prefix/statement.ts";
import type { Keys } from "./keys.ts";
import {
  Fields,
  factOf,
  matchReport,
  matchUsage,
  segmentsOf,
  takeReport,
  takeUsage,
  textsBesideJws,
} from "./usual.ts";

/** What reading needs besides the bundle. */
export interface Tools {
  keys: Keys;
  hash: Sha256;
  verify: Verify;
}

export interface Bundle {
  found: Found[];
  /** Whether bytes are left over that are no entry. */
  cut: boolean;
}

export interface Packed {
  cut: boolean;
  /** For each entry what was read of it; undefined for a usual one. */
  others: (Omit<Found, "leaf"> | undefined)[];
  /** Of the usual ones, each with its signer, whether the signature holds, and its report. */
  usual: string;
  /** For each entry its leaf hash, and of a usual one the digest and the fact of its report. */
  hashes: Uint8Array<ArrayBuffer>;
}

const HASH_BYTES = 32;
const STRIDE = 3 * HASH_BYTES;
/** No text of a usual entry holds a control character. */
const BETWEEN = "\n";
const HOLDS = "holds";
/** Where an entry's JWS begins: no text of a usual entry holds a quote. */
const JWS = '"jws":"';

export function packBundle(bytes: Uint8Array, tools: Tools): Packed {
  const { cut, entries } = splitBundle(bytes);
  const hashes = new Uint8Array(entries.length * STRIDE);
  const usual: string[] = [];
  const others = entries.map((entry, i) => {
    hashes.set(leafHash(entry, tools.hash), i * STRIDE);
    const read = readUsual(entry, tools);
    if (read === undefined) return readOther(entry, tools);
    hashes.set(read.digest, i * STRIDE + HASH_BYTES);
    hashes.set(read.fact, i * STRIDE + 2 * HASH_BYTES);
    usual.push(read.texts);
    return undefined;
  });
  return { cut, others, usual: usual.join(BETWEEN), hashes };
}

export function unpackBundle({ cut, hashes, others, usual }: Packed): Bundle {
  const fields = new Fields(usual.split(BETWEEN), 0);
  const hashAt = (at: number): Uint8Array => hashes.subarray(at, at + HASH_BYTES);
  const found = others.map((other, i): Found => {
    const leaf = hashAt(i * STRIDE);
    if (other !== undefined) return { ...other, leaf };
    const entry = takeUsage(fields);
    const said = {
      kind: "report" as const,
      kid: fields.take(),
      holds: fields.take() === HOLDS,
      digest: hashAt(i * STRIDE + HASH_BYTES),
      fact: hashAt(i * STRIDE + 2 * HASH_BYTES),
      payload: takeReport(fields),
    };
    return { entry, leaf, said };
  });
  return { found, cut };
}

/** Undefined for an entry that is left to the schemas. */
function readUsual(
  bytes: Uint8Array,
  { hash, keys, verify }: Tools,
): { texts: string; digest: Uint8Array; fact: Uint8Array } | undefined {
  const text = decodeUtf8(bytes) ?? "";
  const usage = matchUsage(text);
  if (usage === undefined) return undefined;
  const { header, payload, signature } = segmentsOf(usage);
  const end = header.length + 1 + payload.length;
  const length = end + 1 + signature.length;
  const key = keys.ofReport(header);
  const payloadBytes = decodeBase64url(payload);
  const signatureBytes = decodeBase64url(signature);
  if (length > JWS_CHARS_MAX || !key || !payloadBytes || !signatureBytes) return undefined;
  const payloadText = decodeUtf8(payloadBytes) ?? "";
  const report = matchReport(payloadText);
  if (report === undefined) return undefined;
  // All of it is ASCII, so that what was signed is there as bytes already.
  const jws = bytes.subarray(text.indexOf(JWS) + JWS.length).subarray(0, length);
  const holds = verdict(signatureBytes, jws.subarray(0, end), key.publicKey, verify);
  const verdictText = `${BETWEEN}${key.kid}${BETWEEN}${holds ? HOLDS : ""}${BETWEEN}`;
  return {
    texts: textsBesideJws(usage).join(BETWEEN) + verdictText + report.slice(1).join(BETWEEN),
    digest: hash(jws),
    fact: hash(encodeUtf8(factOf(payloadText, report))),
  };
}

/** What an entry says by its JWS, where its kind has an agent's. */
function readOther(bytes: Uint8Array, tools: Tools): Omit<Found, "leaf"> {
  const entry = readEntry(bytes);
  const text = entry === "malformed" ? undefined : textOf(entry);
  return { entry, said: text && readSigned(text, tools.keys.byKid, tools) };
}

function textOf(entry: Entry | UnknownEntry): SignedText | undefined {
  switch (entry.kind) {
    case "usage":
    case "conflict":
    case "hold":
      return { kind: "report", text: entry.body.jws };
    case "attestation":
      return { kind: "attestation", text: entry.body.jws };
    default:
      return undefined;
  }
}
