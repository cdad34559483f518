import fc from "fast-check";
import { expect, test } from "vitest";
import { EMPTY_ROOT } from "../../src/core/hash.ts";
import { encodeBase64, encodeHex } from "../../src/core/text.ts";
import { formatTlogProof, parseTlogProof } from "../../src/core/tlog-proof.ts";

const HASH = encodeBase64(EMPTY_ROOT);
const HEADER = "c2sp.org/tlog-proof@v1\n";
const NOTE = "log.example\n8\nroot\n\n\u2014 log.example signature\n";

test("a proof is its header, extra, index and hashes, an empty line and the checkpoint", () => {
  const proof = { index: 5n, hashes: [EMPTY_ROOT, EMPTY_ROOT], checkpoint: NOTE };
  const text = `${HEADER}index 5\n${HASH}\n${HASH}\n\n${NOTE}`;
  expect(formatTlogProof(proof)).toBe(text);
  const extra = Uint8Array.of(1, 2, 3);
  const extended = text.replace("index", "extra AQID\nindex");
  expect(formatTlogProof({ ...proof, extra })).toBe(extended);
});

test("every proof that is written is read back", () => {
  const proofs = fc.record(
    {
      index: fc.bigInt({ min: 0n, max: 2n ** 63n - 1n }),
      hashes: fc.array(fc.uint8Array({ minLength: 32, maxLength: 32 }), { maxLength: 63 }),
      checkpoint: fc.string({ minLength: 1, unit: "binary" }),
      extra: fc.uint8Array({ minLength: 1 }),
    },
    { requiredKeys: ["index", "hashes", "checkpoint"] },
  );
  fc.assert(
    fc.property(proofs, (proof) => {
      const read = parseTlogProof(formatTlogProof(proof));
      expect(read).toMatchObject({ index: proof.index, checkpoint: proof.checkpoint });
      expect(read?.hashes.map(encodeHex)).toEqual(proof.hashes.map(encodeHex));
      expect(encodeHex(read?.extra ?? new Uint8Array())).toBe(
        encodeHex(proof.extra ?? new Uint8Array()),
      );
    }),
  );
});

test.each([
  ["nothing", ""],
  ["another version", `c2sp.org/tlog-proof@v2\nindex 0\n\n${NOTE}`],
  ["carriage returns", `${HEADER}index 0\r\n\r\n${NOTE}`],
  ["no index", `${HEADER}${HASH}\n\n${NOTE}`],
  ["a leading zero", `${HEADER}index 00\n\n${NOTE}`],
  ["a sign", `${HEADER}index -0\n\n${NOTE}`],
  ["an index past 2^63\u22121", `${HEADER}index 9223372036854775808\n\n${NOTE}`],
  ["a space after the index", `${HEADER}index 0 \n\n${NOTE}`],
  ["two indices", `${HEADER}index 0\nindex 0\n\n${NOTE}`],
  ["extra after the index", `${HEADER}index 0\nextra AQID\n\n${NOTE}`],
  ["extra that is empty", `${HEADER}extra \nindex 0\n\n${NOTE}`],
  ["extra without padding", `${HEADER}extra AQ\nindex 0\n\n${NOTE}`],
  ["extra twice", `${HEADER}extra AQID\nextra AQID\nindex 0\n\n${NOTE}`],
  ["a hash of 31 bytes", `${HEADER}index 0\n${encodeBase64(EMPTY_ROOT.slice(1))}\n\n${NOTE}`],
  ["a space before a hash", `${HEADER}index 0\n ${HASH}\n\n${NOTE}`],
  ["64 hashes", `${HEADER}index 0\n${`${HASH}\n`.repeat(64)}\n${NOTE}`],
  ["no empty line", `${HEADER}index 0\n${NOTE.trimEnd()}`],
  ["no checkpoint", `${HEADER}index 0\n\n`],
])("%s makes it no proof", (_, text) => {
  expect(parseTlogProof(text)).toBeUndefined();
});

test("no proof is written that would not be read again", () => {
  const good = { index: 0n, hashes: [EMPTY_ROOT], checkpoint: NOTE };
  for (const bad of [
    { ...good, index: -1n },
    { ...good, index: 2n ** 63n },
    { ...good, checkpoint: "" },
    { ...good, extra: new Uint8Array() },
    { ...good, hashes: [EMPTY_ROOT.slice(1)] },
    { ...good, hashes: new Array(64).fill(EMPTY_ROOT) },
  ]) {
    expect(() => formatTlogProof(bad)).toThrow();
  }
});
