/** Proofs and witnesses, held to an oracle that shares nothing with us (test/vectors/make_transparency.py). */
import fc from "fast-check";
import { expect, test } from "vitest";
import { parseCheckpoint } from "../../src/core/checkpoint.ts";
import { cosign } from "../../src/core/cosignature.ts";
import { verifyByPoints } from "../../src/core/ed25519.ts";
import { type Hash, leafHash } from "../../src/core/hash.ts";
import {
  formatVkey,
  linesOf,
  noteOf,
  openNote,
  parseVkey,
  signNote,
  type Vkey,
} from "../../src/core/note.ts";
import {
  consistencyProof,
  inclusionProof,
  leafNodes,
  treeRoot,
  verifyConsistency,
  verifyInclusion,
} from "../../src/core/proof.ts";
import { decodeHex, encodeBase64, encodeUtf8 } from "../../src/core/text.ts";
import { formatTlogProof, parseTlogProof } from "../../src/core/tlog-proof.ts";
import {
  formatAddCheckpoint,
  judgeAddCheckpoint,
  parseAddCheckpoint,
} from "../../src/core/witness.ts";
import { testKey } from "../signing.ts";
import vectors from "../vectors/transparency.json" with { type: "json" };
import { nodeSha256 } from "./merkle.ts";

const LEAVES = Array.from({ length: 600 }, (_, i) => leafHash(encodeUtf8(`entry ${i}`)));
const read = leafNodes(LEAVES, nodeSha256);
const LOG = { name: vectors.origin, ...keyOf(vectors.log.seed) };
const WITNESS = { name: vectors.witness.name, ...keyOf(vectors.witness.seed) };
const LOG_VKEY = vkeyOf(vectors.log.vkey);
const WITNESS_VKEY = vkeyOf(vectors.witness.vkey);

function keyOf(seed: string): ReturnType<typeof testKey> {
  return testKey(decodeHex(seed) ?? new Uint8Array());
}

function vkeyOf(text: string): Vkey {
  const vkey = parseVkey(text);
  if (vkey === undefined) throw new Error("the oracle's vkey is refused");
  return vkey;
}

function root(size: bigint): Hash {
  return treeRoot(size, read, nodeSha256);
}

test("both kinds of keys are written as the oracle writes them", () => {
  expect(formatVkey(LOG.name, LOG.publicKey)).toBe(vectors.log.vkey);
  expect(formatVkey(WITNESS.name, WITNESS.publicKey, "cosignature")).toBe(vectors.witness.vkey);
});

test.each(vectors.roots)(
  "the root of $size entries is the oracle's",
  ({ size, root: expected }) => {
    expect(encodeBase64(root(BigInt(size)))).toBe(expected);
  },
);

test.each(vectors.inclusion)("entry $index of $size is proven as the oracle does", (vector) => {
  const [index, size] = [BigInt(vector.index), BigInt(vector.size)];
  const proof = inclusionProof(index, size, read, nodeSha256);
  expect(proof.map(encodeBase64)).toEqual(vector.proof);
  const [leaf = new Uint8Array()] = LEAVES.slice(Number(index));
  expect(verifyInclusion({ leaf, index, size, proof, root: root(size) })).toBe(true);
});

test.each(vectors.consistency)(
  "size $to is proven to extend $from as the oracle does",
  (vector) => {
    const [from, to] = [BigInt(vector.from), BigInt(vector.to)];
    const proof = consistencyProof(from, to, read, nodeSha256);
    expect(proof.map(encodeBase64)).toEqual(vector.proof);
    expect(verifyConsistency({ from, to, proof, fromRoot: root(from), toRoot: root(to) })).toBe(
      true,
    );
  },
);

test.each(vectors.cosignatures)(
  "a cosignature at $time is the oracle's",
  ({ text, time, line }) => {
    expect(cosign(WITNESS, text, BigInt(time))).toBe(line);
    const opened = openNote(noteOf(text, [line]), [WITNESS_VKEY], verifyByPoints);
    expect(opened).toMatchObject({ text, signatures: [{ time: BigInt(time) }] });
  },
);

test.each(vectors.add_checkpoint)(
  "a request from $old to $size is the oracle's, and is granted",
  (vector) => {
    const request = parseAddCheckpoint(vector.body);
    if (request === undefined) throw new Error("refused");
    expect(formatAddCheckpoint(request)).toBe(vector.body);
    const old = BigInt(vector.old);
    const answer = judgeAddCheckpoint(request, {
      vkeysOf: (origin) => (origin === vectors.origin ? [LOG_VKEY] : undefined),
      last: () => (old === 0n ? undefined : { size: old, root: root(old) }),
      verify: verifyByPoints,
    });
    if (answer.status !== 200) throw new Error(answer.problem);
    expect(answer.checkpoint).toMatchObject({ size: BigInt(vector.size) });
    expect(signNote(answer.text, [LOG])).toBe(request.checkpoint);
  },
);

test.each(vectors.tlog_proofs)(
  "the proof file of entry $index is the oracle's, and holds",
  ({ index, size, text }) => {
    const proof = parseTlogProof(text);
    if (proof === undefined) throw new Error("refused");
    expect(formatTlogProof(proof)).toBe(text);
    const opened = openNote(proof.checkpoint, [LOG_VKEY, WITNESS_VKEY], verifyByPoints);
    if ("problem" in opened) throw new Error(opened.problem);
    expect(opened.signatures.map(({ vkey }) => vkey)).toEqual([LOG_VKEY, WITNESS_VKEY]);
    const checkpoint = parseCheckpoint(opened.text);
    const [leaf = new Uint8Array()] = LEAVES.slice(Number(index));
    expect(checkpoint?.size).toBe(BigInt(size));
    const claim = { leaf, index: proof.index, size: BigInt(size), proof: proof.hashes };
    expect(verifyInclusion({ ...claim, root: checkpoint?.root ?? leaf })).toBe(true);
  },
);

test("whatever an edit leaves of these texts is read as what it says, or refused, and never throws", () => {
  const texts = [
    ...vectors.add_checkpoint.map(({ body }) => body),
    ...vectors.tlog_proofs.map(({ text }) => text),
    ...vectors.cosignatures.map(({ text, line }) => noteOf(text, [line])),
    vectors.log.vkey,
  ];
  const letter = fc.constantFrom(..."\n aA0+/=\u2014\u0000\ud800");
  const edits = fc.array(fc.tuple(fc.nat(), letter, fc.nat(80)), { maxLength: 3 });
  fc.assert(
    fc.property(fc.constantFrom(...texts), edits, (text, changes) => {
      expectReadAsWritten(changes.reduce(edited, text));
    }),
    { numRuns: 2000 },
  );
});

function edited(text: string, [spot, letter, cut]: [number, string, number]): string {
  const at = spot % (text.length + 1);
  return text.slice(0, at) + letter + text.slice(at + cut);
}

function expectReadAsWritten(text: string): void {
  const note = linesOf(text);
  if (note !== undefined)
    expect(
      noteOf(
        note.text,
        note.lines.map(({ line }) => line),
      ),
    ).toBe(text);
  const vkey = parseVkey(text);
  if (vkey !== undefined) expect(formatVkey(vkey.name, vkey.publicKey, vkey.type)).toBe(text);
  const proof = parseTlogProof(text);
  if (proof !== undefined) expect(formatTlogProof(proof)).toBe(text);
  const request = parseAddCheckpoint(text);
  if (request === undefined) return;
  expect(formatAddCheckpoint(request)).toBe(text);
  judgeAddCheckpoint(request, {
    vkeysOf: () => [LOG_VKEY, WITNESS_VKEY],
    last: () => undefined,
    verify: () => true,
  });
}
