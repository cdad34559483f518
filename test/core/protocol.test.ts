/** The bytes, held to an oracle that shares nothing with us (test/vectors/make_protocol.py). */
import { expect, test } from "vitest";
import { charge, formatComputeMs } from "../../src/core/charge.ts";
import { parseCheckpoint } from "../../src/core/checkpoint.ts";
import { admissibleKey, thumbprint, verdict, verifyByPoints } from "../../src/core/ed25519.ts";
import { decodeEntry, encodeEntry } from "../../src/core/entry.ts";
import { parseFactor } from "../../src/core/factor.ts";
import { leafHash, sha256 } from "../../src/core/hash.ts";
import { canonical, parseCanonical } from "../../src/core/json.ts";
import { readCompact } from "../../src/core/jws.ts";
import { rootHash } from "../../src/core/merkle.ts";
import { openNote, parseVkey } from "../../src/core/note.ts";
import { Heartbeat } from "../../src/core/quota/heartbeat.ts";
import { coversResults, readReceipt, verifyReceipt } from "../../src/core/receipt.ts";
import { Attestation, Claim, fact, Report, Rotation, TYP } from "../../src/core/report.ts";
import {
  decodeBase64,
  decodeBase64url,
  decodeUtf8,
  encodeBase64,
  encodeUtf8,
} from "../../src/core/text.ts";
import { milliseconds } from "../../src/core/unit.ts";
import vectors from "../vectors/protocol.json" with { type: "json" };

const publicKey = (x: string): Uint8Array => decodeBase64url(x) ?? new Uint8Array();
const runnerKey = publicKey(vectors.key.public_key.x);

test("a key's kid is the oracle's thumbprint, and the key is admissible", () => {
  expect(thumbprint(runnerKey)).toBe(vectors.key.kid);
  expect(admissibleKey(runnerKey)).toBe(true);
});

test("the report's canonical text, digest and fact are the oracle's", () => {
  const report = Report.parse(vectors.report.payload);
  expect(canonical(report)).toBe(vectors.report.canonical);
  expect(encodeBase64(fact(report))).toBe(vectors.report.fact);
  expect(encodeBase64(sha256(encodeUtf8(vectors.report.jws)))).toBe(vectors.report.digest);
});

test("the heartbeat's canonical text is the oracle's", () => {
  const heartbeat = Heartbeat.parse(vectors.heartbeat.payload);
  expect(canonical({ ...heartbeat })).toBe(vectors.heartbeat.canonical);
});

test.each([
  ["report", vectors.report.jws, TYP.report, Report],
  ["claim", vectors.claim, TYP.claim, Claim],
  ["attestation", vectors.attestation, TYP.attestation, Attestation],
  ["rotation", vectors.rotation, TYP.rotation, Rotation],
  ["heartbeat", vectors.heartbeat.jws, TYP.heartbeat, Heartbeat],
] as const)(
  "the oracle's %s reads strictly, verifies and has its schema",
  (_, jws, typ, schema) => {
    const compact = readCompact(jws);
    if (compact === undefined) throw new Error("refused by the strict reader");
    expect(compact.typ).toBe(typ);
    expect(compact.kid).toBe(vectors.key.kid);
    expect(verdict(compact.signature, compact.input, runnerKey, verifyByPoints)).toBe(true);
    expect(schema.safeParse(parseCanonical(compact.payload)).success).toBe(true);
  },
);

test("the oracle's entries are read and written again to the same bytes, linked by their leaves", () => {
  let prev = encodeBase64(new Uint8Array(32));
  for (const { bytes, leaf } of vectors.entries) {
    const entry = decodeEntry(encodeUtf8(bytes));
    if (typeof entry === "string") throw new Error(entry);
    expect(encodeBase64(entry.prev)).toBe(prev);
    expect(decodeUtf8(encodeEntry(entry))).toBe(bytes);
    expect(encodeBase64(leafHash(encodeUtf8(bytes)))).toBe(leaf);
    prev = leaf;
  }
});

test("the oracle's checkpoint opens under its vkey and has the entries' root", () => {
  const vkey = parseVkey(vectors.vkey);
  if (vkey === undefined) throw new Error("vkey refused");
  const opened = openNote(vectors.checkpoint, [vkey], verifyByPoints);
  if ("problem" in opened) throw new Error(opened.problem);
  const checkpoint = parseCheckpoint(opened.text);
  const leaves = vectors.entries.map(({ leaf }) => decodeBase64(leaf) ?? new Uint8Array());
  expect(checkpoint?.size).toBe(BigInt(leaves.length));
  expect(encodeBase64(checkpoint?.root ?? new Uint8Array())).toBe(vectors.root);
  expect(encodeBase64(rootHash(leaves))).toBe(vectors.root);
});

test("the oracle's receipt verifies under its vkey and covers its results", () => {
  const { jws, payload, results, vkey: text } = vectors.receipt;
  const [receipt, vkey] = [readReceipt(jws), parseVkey(text)];
  if (receipt === undefined || vkey === undefined) throw new Error("receipt or vkey refused");
  expect(receipt.payload).toEqual(payload);
  expect(verifyReceipt(receipt, vkey, verifyByPoints)).toBe(true);
  expect(coversResults(receipt.payload, results)).toBe(true);
  expect(coversResults(receipt.payload, results.slice(1))).toBe(false);
});

test.each(vectors.charges)("$duration_ms ms at $factor is charged $compute_ms", (row) => {
  const [text = "", minutes] = row.factor.endsWith("/300000")
    ? ["monthly_minutes/300000", BigInt(row.factor.split("/")[0] ?? "")]
    : [row.factor];
  const factor = parseFactor(text, minutes);
  if (factor === undefined) throw new Error("factor refused");
  expect(formatComputeMs(charge(milliseconds(BigInt(row.duration_ms)), factor))).toBe(
    row.compute_ms,
  );
});
