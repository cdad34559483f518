import fc from "fast-check";
import { expect, test } from "vitest";
import { formatCheckpoint, parseCheckpoint } from "../../src/core/checkpoint.ts";
import { EMPTY_ROOT } from "../../src/core/hash.ts";
import { encodeBase64 } from "../../src/core/text.ts";

const ROOT = encodeBase64(EMPTY_ROOT);
const origin = fc.string({ minLength: 1, maxLength: 40 }).filter((text) => !text.includes("\n"));
const size = fc.bigInt({ min: 0n, max: 2n ** 63n - 1n });
const root = fc.uint8Array({ minLength: 32, maxLength: 32 });

test("a checkpoint is three lines and is read back", () => {
  fc.assert(
    fc.property(fc.record({ origin, size, root }), (checkpoint) => {
      const text = formatCheckpoint(checkpoint);
      expect(text).toBe(
        `${checkpoint.origin}\n${checkpoint.size}\n${encodeBase64(checkpoint.root)}\n`,
      );
      expect(parseCheckpoint(text)).toEqual(checkpoint);
    }),
  );
});

test("extension lines are let pass", () => {
  const text = `log\n3\n${ROOT}\nTimestamp: 1\nother\n`;
  expect(parseCheckpoint(text)).toEqual({ origin: "log", size: 3n, root: EMPTY_ROOT });
});

test.each([
  ["nothing", ""],
  ["no origin", `\n3\n${ROOT}\n`],
  ["no root", "log\n3\n"],
  ["no last line break", `log\n3\n${ROOT}`],
  ["an empty extension line", `log\n3\n${ROOT}\n\n`],
  ["an extension without a line break", `log\n3\n${ROOT}\nmore`],
  ["a leading zero", `log\n03\n${ROOT}\n`],
  ["a sign", `log\n+3\n${ROOT}\n`],
  ["a negative size", `log\n-3\n${ROOT}\n`],
  ["a size past 2^63−1", `log\n9223372036854775808\n${ROOT}\n`],
  ["a size of 28 digits", `log\n${"9".repeat(28)}\n${ROOT}\n`],
  ["a space before the size", `log\n 3\n${ROOT}\n`],
  ["a root of 31 bytes", `log\n3\n${encodeBase64(EMPTY_ROOT.slice(1))}\n`],
  ["a root without padding", `log\n3\n${ROOT.slice(0, -1)}\n`],
  ["carriage returns", `log\r\n3\r\n${ROOT}\r\n`],
])("%s makes it no checkpoint", (_, text) => {
  expect(parseCheckpoint(text)).toBeUndefined();
});

test("no checkpoint is written that would be read as another", () => {
  const good = { origin: "log", size: 3n, root: EMPTY_ROOT };
  for (const bad of [
    { ...good, origin: "" },
    { ...good, origin: `log\n4\n${ROOT}` },
    { ...good, size: -1n },
    { ...good, size: 2n ** 63n },
    { ...good, root: EMPTY_ROOT.slice(1) },
  ]) {
    expect(() => formatCheckpoint(bad)).toThrow("checkpoint:");
  }
});
