import canonicalize from "canonicalize";
import fc from "fast-check";
import { expect, test } from "vitest";
import { canonical, type Json, parseCanonical } from "../../src/core/json.ts";
import { encodeUtf8 } from "../../src/core/text.ts";

const text = fc.oneof(
  fc.string({ unit: "grapheme", maxLength: 8 }),
  fc.string({ unit: "binary", maxLength: 8 }),
  fc.constantFrom("", "10", "9", "\u2028", "\\u0041", '"', "\u007f", "\u0000", "é", "\ud83d\ude02"),
);
const name = text.filter((candidate) => candidate !== "__proto__");

/** Any value that signed JSON can hold. */
const json: fc.Arbitrary<Json> = fc.letrec<{ value: Json }>((tie) => ({
  value: fc.oneof(
    { depthSize: "small" },
    text,
    fc.boolean(),
    fc.array(tie("value"), { maxLength: 4 }),
    fc.dictionary(name, tie("value"), { maxKeys: 5 }),
  ),
})).value;

test("canonical text is what the published RFC 8785 implementation writes", () => {
  fc.assert(
    fc.property(json, (value) => {
      expect(canonical(value)).toBe(canonicalize(value));
    }),
    { numRuns: 1000 },
  );
});

test("canonical text is read back as the same value", () => {
  fc.assert(
    fc.property(json, (value) => {
      expect(canonical(parseCanonical(encodeUtf8(canonical(value))) ?? "")).toBe(canonical(value));
    }),
  );
});

test("names are ordered by UTF-16 code units, also those that look like integers", () => {
  expect(canonical({ "9": "a", "10": "b", "\ufb33": "c", "\ud83d\ude02": "d" })).toBe(
    '{"10":"b","9":"a","\ud83d\ude02":"d","\ufb33":"c"}',
  );
});

test("one changed byte is refused, or is the canonical text of another value", () => {
  fc.assert(
    fc.property(json, fc.nat(), fc.nat(255), (value, position, byte) => {
      const bytes = encodeUtf8(canonical(value));
      bytes[position % bytes.length] = byte;
      const read = parseCanonical(bytes);
      if (read !== undefined) expect(encodeUtf8(canonical(read))).toEqual(bytes);
    }),
    { numRuns: 2000 },
  );
});

test.each([
  ["nothing", ""],
  ["a number", '{"a":1}'],
  ["null", '{"a":null}'],
  ["a duplicate member", '{"a":"1","a":"1"}'],
  ["another order", '{"b":"1","a":"1"}'],
  ["a space", '{"a": "1"}'],
  ["a trailing newline", '{"a":"1"}\n'],
  ["a needless escape", '{"a":"\\u0041"}'],
  ["an escaped slash", '{"a":"\\/"}'],
  ["an uppercase escape", '{"a":"\\u001F"}'],
  ["a long escape where there is a short one", '{"a":"\\u000a"}'],
  ["a lone surrogate", '{"a":"\\ud800"}'],
  ["a byte order mark", '\ufeff{"a":"1"}'],
  ["a member __proto__", '{"__proto__":"1"}'],
  ["more after the value", '"a""b"'],
  ["arrays 33 deep", "[".repeat(33) + "]".repeat(33)],
  ["arrays past any stack", "[".repeat(60_000) + "]".repeat(60_000)],
])("%s is no canonical JSON here", (_, candidate) => {
  expect(parseCanonical(encodeUtf8(candidate))).toBeUndefined();
});

test("bytes that are no UTF-8 are no canonical JSON", () => {
  expect(parseCanonical(Uint8Array.of(0x22, 0xff, 0x22))).toBeUndefined();
});

test("32 levels are read", () => {
  const deep = "[".repeat(32) + "]".repeat(32);
  expect(canonical(parseCanonical(encodeUtf8(deep)) ?? "")).toBe(deep);
});

test.each<[string, unknown]>([
  ["a number", 1],
  ["a bigint", 1n],
  ["null", null],
  ["undefined", undefined],
  ["an undefined member", { a: undefined }],
  ["a hole", new Array(1)],
  ["a date", new Date(0)],
  ["a map", new Map()],
  ["bytes", new Uint8Array(2)],
  ["a function", () => "a"],
  ["a lone surrogate", "\ud800"],
  ["a lone surrogate in a name", { "\udc00": "a" }],
  ["a member __proto__", JSON.parse('{"__proto__":"a"}')],
])("%s is refused rather than written as something else", (_, value) => {
  expect(() => canonical(value as Json)).toThrow("canonical:");
});

test("an object that holds itself is refused", () => {
  const loop: Json[] = [];
  loop.push(loop);
  expect(() => canonical(loop)).toThrow("canonical: nested too deep");
});

test("objects without a prototype are written like others", () => {
  expect(canonical(Object.assign(Object.create(null), { a: "1" }))).toBe('{"a":"1"}');
});
