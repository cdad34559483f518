import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { formatCheckpoint } from "../../src/core/checkpoint.ts";
import { cosign } from "../../src/core/cosignature.ts";
import { EMPTY_ROOT, type Hash } from "../../src/core/hash.ts";
import { formatVkey, noteOf, parseVkey, signNote, type Vkey } from "../../src/core/note.ts";
import { consistencyProof, leafNodes } from "../../src/core/proof.ts";
import { encodeBase64 } from "../../src/core/text.ts";
import {
  type AddCheckpoint,
  type AddCheckpointAnswer,
  formatAddCheckpoint,
  judgeAddCheckpoint,
  parseAddCheckpoint,
} from "../../src/core/witness.ts";
import { testKey, verifyByOpenssl } from "../signing.ts";
import { leaves, naiveRoot, nodeSha256 } from "./merkle.ts";

const ORIGIN = "log.example";
const LOG = { name: ORIGIN, ...testKey(1) };
const SUCCESSOR = { name: ORIGIN, ...testKey(2) };
const STRANGER = { name: ORIGIN, ...testKey(3) };
const VKEYS = [vkey(LOG.publicKey), vkey(SUCCESSOR.publicKey)];
const LEAVES = leaves(64);
const read = leafNodes(LEAVES, nodeSha256);
const HASH = encodeBase64(EMPTY_ROOT);

function vkey(publicKey: Uint8Array): Vkey {
  const known = parseVkey(formatVkey(ORIGIN, publicKey));
  if (known === undefined) throw new Error("the test's own vkey does not parse");
  return known;
}

function root(size: bigint): Hash {
  return naiveRoot(LEAVES.slice(0, Number(size)));
}

function signed(size: bigint, over = root(size), signers = [LOG], origin = ORIGIN): string {
  return signNote(formatCheckpoint({ origin, size, root: over }), signers);
}

function proofOf(from: bigint, to: bigint): Hash[] {
  return from === 0n ? [] : consistencyProof(from, to, read, nodeSha256);
}

/** What a witness answers whose last checkpoint of the log is of this size; 0 for none yet. */
function judge(request: AddCheckpoint, last: bigint): AddCheckpointAnswer {
  return judgeAddCheckpoint(request, {
    vkeysOf: (origin) => (origin === ORIGIN ? VKEYS : undefined),
    last: () => (last === 0n ? undefined : { size: last, root: root(last) }),
    verify: verifyByOpenssl,
    hash: nodeSha256,
  });
}

describe("a request", () => {
  const checkpoint = signed(5n);

  test("is the old size, the proof, an empty line and the checkpoint, and is read back", () => {
    const request = { old: 3n, proof: [EMPTY_ROOT, EMPTY_ROOT], checkpoint };
    const text = `old 3\n${HASH}\n${HASH}\n\n${checkpoint}`;
    expect(formatAddCheckpoint(request)).toBe(text);
    expect(parseAddCheckpoint(text)).toEqual(request);
    const first = `old 0\n\n${checkpoint}`;
    expect(parseAddCheckpoint(first)).toEqual({ old: 0n, proof: [], checkpoint });
  });

  test("has 63 hashes at most", () => {
    const longest = `old 3\n${`${HASH}\n`.repeat(63)}\n${checkpoint}`;
    expect(parseAddCheckpoint(longest)?.proof).toHaveLength(63);
    expect(parseAddCheckpoint(longest.replace("\n", `\n${HASH}\n`))).toBeUndefined();
    const proof = new Array(64).fill(EMPTY_ROOT);
    expect(() => formatAddCheckpoint({ old: 3n, proof, checkpoint })).toThrow("proof:");
  });

  test.each([
    ["nothing", ""],
    ["no empty line", `old 0\n${checkpoint.replaceAll("\n\n", "\n")}`],
    ["no old size", `\n\n${checkpoint}`],
    ["a leading zero", `old 00\n\n${checkpoint}`],
    ["a sign", `old -1\n\n${checkpoint}`],
    ["two spaces", `old  1\n\n${checkpoint}`],
    ["a size past 2^63\u22121", `old 9223372036854775808\n\n${checkpoint}`],
    ["another word", `new 1\n\n${checkpoint}`],
    ["a carriage return", `old 1\r\n\n${checkpoint}`],
    ["a hash of 31 bytes", `old 1\n${encodeBase64(EMPTY_ROOT.slice(1))}\n\n${checkpoint}`],
    ["a hash without padding", `old 1\n${HASH.slice(0, -1)}\n\n${checkpoint}`],
  ])("of %s is none", (_, text) => {
    expect(parseAddCheckpoint(text)).toBeUndefined();
  });
});

test("a witness follows a log through any sizes, and answers its last size to whoever is behind", () => {
  const sizes = fc.array(fc.bigInt({ min: 0n, max: 64n }), { maxLength: 12 });
  fc.assert(
    fc.property(sizes, fc.array(fc.bigInt({ min: 0n, max: 64n })), (ahead, olds) => {
      let last = 0n;
      for (const [at, size] of ahead.entries()) {
        const old = olds[at] ?? last;
        const proof = old <= size ? proofOf(old, size) : [];
        const answer = judge({ old, proof, checkpoint: signed(size) }, last);
        const status = old > size ? 400 : old === last ? 200 : 409;
        expect(answer.status).toBe(status);
        if (answer.status === 409) expect(answer.size).toBe(last);
        if (answer.status === 200) last = answer.checkpoint.size;
      }
    }),
  );
});

test("what may be cosigned is the checkpoint's text", () => {
  const answer = judge({ old: 3n, proof: proofOf(3n, 5n), checkpoint: signed(5n) }, 3n);
  const text = formatCheckpoint({ origin: ORIGIN, size: 5n, root: root(5n) });
  const checkpoint = { origin: ORIGIN, size: 5n, root: root(5n) };
  expect(answer).toEqual({ status: 200, checkpoint, text });
});

test("two trusted keys of one log are trusted alone and together, and strangers beside them ignored", () => {
  for (const signers of [[SUCCESSOR], [LOG, SUCCESSOR], [STRANGER, LOG]]) {
    const checkpoint = signed(5n, root(5n), signers);
    expect(judge({ old: 3n, proof: proofOf(3n, 5n), checkpoint }, 3n).status).toBe(200);
  }
});

test("nobody but the log's own keys can have a checkpoint cosigned", () => {
  const text = formatCheckpoint({ origin: ORIGIN, size: 5n, root: root(5n) });
  const forged = signNote(text, [LOG, { ...SUCCESSOR, sign: STRANGER.sign }]);
  const cosigned = noteOf(text, [cosign(LOG, text, 1n)]);
  for (const checkpoint of [signed(5n, root(5n), [STRANGER]), forged, cosigned]) {
    expect(judge({ old: 3n, proof: proofOf(3n, 5n), checkpoint }, 3n).status).toBe(403);
  }
  const strange = signed(5n, root(5n), [LOG], "other.example");
  expect(judge({ old: 3n, proof: proofOf(3n, 5n), checkpoint: strange }, 3n).status).toBe(404);
});

test("a witness's key of the log's name does not sign for the log", () => {
  const text = formatCheckpoint({ origin: ORIGIN, size: 5n, root: root(5n) });
  const witness = parseVkey(formatVkey(ORIGIN, LOG.publicKey, "cosignature"));
  const answer = judgeAddCheckpoint(
    { old: 0n, proof: [], checkpoint: noteOf(text, [cosign(LOG, text, 1n)]) },
    {
      vkeysOf: () => (witness === undefined ? [] : [witness]),
      last: () => undefined,
      verify: verifyByOpenssl,
    },
  );
  expect(answer.status).toBe(403);
});

test.each([
  ["another root of the same size", 3n, [], signed(3n, root(4n)), 3n],
  ["a proof between equal sizes", 3n, proofOf(3n, 5n), signed(3n), 3n],
  ["no proof", 3n, [], signed(5n), 3n],
  ["another size's proof", 3n, proofOf(2n, 5n), signed(5n), 3n],
  ["a proof to another root", 3n, proofOf(3n, 5n), signed(5n, root(6n)), 3n],
  ["a proof from nothing", 0n, [EMPTY_ROOT], signed(5n), 0n],
  ["an empty log with another root", 0n, [], signed(0n, root(1n)), 0n],
])("%s is 422", (_, old, proof, checkpoint, last) => {
  expect(judge({ old, proof, checkpoint }, last).status).toBe(422);
});

test("an empty log is cosigned, and followed from there", () => {
  expect(judge({ old: 0n, proof: [], checkpoint: signed(0n) }, 0n).status).toBe(200);
  const answer = judgeAddCheckpoint(
    { old: 0n, proof: [], checkpoint: signed(5n) },
    {
      vkeysOf: () => VKEYS,
      last: () => ({ size: 0n, root: EMPTY_ROOT }),
      verify: verifyByOpenssl,
    },
  );
  expect(answer.status).toBe(200);
});

test.each([
  ["nothing", ""],
  ["no checkpoint", "no checkpoint\n\n\u2014 log.example AAAAAAAA\n"],
  ["a text alone", formatCheckpoint({ origin: ORIGIN, size: 5n, root: EMPTY_ROOT })],
])("%s for a checkpoint is 400", (_, checkpoint) => {
  expect(judge({ old: 0n, proof: [], checkpoint }, 0n).status).toBe(400);
});

test("whatever follows the form is judged, and never throws", () => {
  const pieces = fc.constantFrom(
    "old 0",
    "old 3",
    HASH,
    "",
    ORIGIN,
    "3",
    signed(3n),
    "\u2014 x AAAA",
    "\ud800",
  );
  fc.assert(
    fc.property(fc.array(pieces), (lines) => {
      const request = parseAddCheckpoint(lines.join("\n"));
      if (request !== undefined) judge(request, 3n);
    }),
    { numRuns: 1000 },
  );
});
