import fc from "fast-check";
import { expect, test } from "vitest";
import { rangeOf } from "../../src/http/range.ts";

const FILE = { bytes: 100, etag: '"abc"' };

test.each<[string, ReturnType<typeof rangeOf>]>([
  ["bytes=0-9", { from: 0, to: 10 }],
  ["bytes=90-", { from: 90, to: 100 }],
  ["bytes=-10", { from: 90, to: 100 }],
  ["bytes=-1000", { from: 0, to: 100 }],
  ["bytes=99-1000", { from: 99, to: 100 }],
  ["BYTES=0-0", { from: 0, to: 1 }],
  ["bytes=100-", "unsatisfiable"],
  ["bytes=-0", "unsatisfiable"],
  // Of these RFC 9110 §14.2 lets the whole be the answer.
  ["bytes=9-0", "whole"],
  ["bytes=0-1,5-6", "whole"],
  ["bytes=-", "whole"],
  ["lines=0-9", "whole"],
  ["nothing", "whole"],
])("%s of a hundred bytes", (range, answer) => {
  expect(rangeOf({ range }, FILE)).toEqual(answer);
});

test("of an empty file no range is satisfiable", () => {
  for (const range of ["bytes=0-", "bytes=-1"]) {
    expect(rangeOf({ range }, { ...FILE, bytes: 0 })).toBe("unsatisfiable");
  }
});

test("If-Range with this entity tag keeps the range; with another, a weak one or a date it gives the whole", () => {
  const range = "bytes=1-2";
  expect(rangeOf({ range, "if-range": '"abc"' }, FILE)).toEqual({ from: 1, to: 3 });
  for (const other of ['"abd"', 'W/"abc"', "Wed, 21 Oct 2026 07:28:00 GMT", ""]) {
    expect(rangeOf({ range, "if-range": other }, FILE)).toBe("whole");
  }
});

test("whatever is asked for, what is answered lies within the file", () => {
  fc.assert(
    fc.property(fc.string(), fc.nat(200), fc.nat(), fc.nat(), (text, bytes, from, to) => {
      for (const range of [text, `bytes=${text}`, `bytes=${from}-${to}`, `bytes=-${to}`]) {
        const answer = rangeOf({ range }, { ...FILE, bytes });
        if (typeof answer === "string") continue;
        expect(answer.from).toBeGreaterThanOrEqual(0);
        expect(answer.to).toBeGreaterThan(answer.from);
        expect(answer.to).toBeLessThanOrEqual(bytes);
      }
    }),
    { numRuns: 2_000 },
  );
});
