import fc from "fast-check";
import { expect, test } from "vitest";
import {
  concat,
  decodeBase64,
  decodeBase64url,
  decodeHex,
  decodeUtf8,
  encodeBase64,
  encodeBase64url,
  encodeHex,
  encodeUtf8,
  equal,
  isWellFormed,
  utf8Length,
} from "../../src/core/text.ts";

const bytes = fc.uint8Array({ maxLength: 100 });
const anyText = fc.string({ unit: "binary", maxLength: 40 });
const utf16 = fc
  .array(fc.integer({ min: 0xd780, max: 0xe080 }))
  .map((units) => String.fromCharCode(...units));

/** Texts that are nearly base64: letters of both alphabets, padding, and what lax decoders skip. */
const nearlyBase64 = fc
  .array(fc.constantFrom(..."ABQgwxz019+/-_== \n\u0141é"), { maxLength: 12 })
  .map((letters) => letters.join(""));

const CODECS = [
  { name: "base64", encode: encodeBase64, decode: decodeBase64 },
  { name: "base64url", encode: encodeBase64url, decode: decodeBase64url },
] as const;

test.each(CODECS)(
  "$name is written as Node writes it, and read back",
  ({ name, encode, decode }) => {
    fc.assert(
      fc.property(bytes, (data) => {
        const text = Buffer.from(data).toString(name);
        expect(encode(data)).toBe(text);
        expect(decode(text)).toEqual(data);
      }),
    );
  },
);

test.each(CODECS)(
  "$name is read only from the one text that its bytes have",
  ({ name, decode }) => {
    fc.assert(
      fc.property(fc.oneof(nearlyBase64, anyText), (text) => {
        const lax = Buffer.from(text, name);
        const expected = lax.toString(name) === text ? new Uint8Array(lax) : undefined;
        expect(decode(text)).toEqual(expected);
      }),
      { numRuns: 2000 },
    );
  },
);

test.each([
  ["trailing bits", "QR=="],
  ["trailing bits after two bytes", "QUJ="],
  ["no padding", "QQ"],
  ["padding alone", "===="],
  ["too much padding", "Q==="],
  ["padding in the middle", "QQ==QUJD"],
  ["the other alphabet", "-_-_"],
  ["a line break", "QUJD\n"],
  ["a character that only looks like one in its low byte", "QUJ\u0143"],
])("base64 with %s is refused", (_, text) => {
  expect(decodeBase64(text)).toBeUndefined();
});

test("hexadecimal is lowercase, of whole bytes", () => {
  fc.assert(
    fc.property(bytes, (data) => {
      expect(encodeHex(data)).toBe(Buffer.from(data).toString("hex"));
      expect(decodeHex(encodeHex(data))).toEqual(data);
    }),
  );
  for (const text of ["a", "0A", "0x", "00\n", " 00"]) expect(decodeHex(text)).toBeUndefined();
});

test("what is no UTF-8 has no text", () => {
  fc.assert(
    fc.property(bytes, (data) => {
      const lax = Buffer.from(data).toString();
      const expected = Buffer.from(lax).equals(data) ? lax : undefined;
      expect(decodeUtf8(data)).toBe(expected);
    }),
  );
});

test("a byte order mark is kept, so that no two byte strings have one text", () => {
  expect(decodeUtf8(Uint8Array.of(0xef, 0xbb, 0xbf, 0x41))).toBe("\ufeffA");
});

test("text is well-formed exactly if it survives UTF-8", () => {
  fc.assert(
    fc.property(fc.oneof(utf16, anyText), (text) => {
      const survives = decodeUtf8(encodeUtf8(text)) === text;
      expect(isWellFormed(text)).toBe(survives);
      expect(utf8Length(text)).toBe(Buffer.byteLength(text));
    }),
  );
});

test("bytes are joined in order and compared by content", () => {
  fc.assert(
    fc.property(fc.array(bytes), bytes, (parts, other) => {
      const joined = concat(...parts);
      expect([...joined]).toEqual(parts.flatMap((part) => [...part]));
      expect(equal(joined, joined.slice())).toBe(true);
      expect(equal(joined, other)).toBe(Buffer.compare(joined, other) === 0);
    }),
  );
});
