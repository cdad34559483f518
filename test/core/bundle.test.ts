import fc from "fast-check";
import { expect, test } from "vitest";
import { decodeBundle, encodeBundle } from "../../src/core/bundle.ts";

const entries = fc.array(fc.uint8Array({ maxLength: 300 }), { maxLength: 6 });

test("a bundle holds each entry behind its length in two bytes, the higher first", () => {
  expect(encodeBundle([])).toEqual(new Uint8Array());
  const bundle = encodeBundle([Uint8Array.of(7), new Uint8Array(258).fill(9)]);
  expect([...bundle.subarray(0, 6)]).toEqual([0, 1, 7, 1, 2, 9]);
});

test("a bundle gives back its entries; cut anywhere else than between two, nothing", () => {
  fc.assert(
    fc.property(entries, fc.nat(), (list, place) => {
      const bundle = encodeBundle(list);
      expect(decodeBundle(bundle)).toEqual(list);
      const end = place % (bundle.length + 1);
      const whole = list.filter((_, i) => encodeBundle(list.slice(0, i + 1)).length <= end);
      const expected = encodeBundle(whole).length === end ? whole : undefined;
      expect(decodeBundle(bundle.subarray(0, end))).toEqual(expected);
    }),
    { numRuns: 500 },
  );
});

test("an entry of 65,535 bytes fits, a longer one is refused", () => {
  const longest = new Uint8Array(65_535).fill(1);
  expect(decodeBundle(encodeBundle([longest]))).toEqual([longest]);
  expect(() => encodeBundle([new Uint8Array(65_536)])).toThrow("bundle:");
});
