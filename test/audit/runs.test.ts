import fc from "fast-check";
import { expect, test } from "vitest";
import { Runs } from "../../audit/tally/runs.ts";

test("in whatever order counters come, and however often, it is known up to where none is missing", () => {
  fc.assert(
    fc.property(fc.array(fc.bigInt({ min: 0n, max: 20n })), (counters) => {
      const runs = new Runs();
      for (const counter of counters) runs.add(counter);
      for (const first of [1n, 2n, 9n]) {
        let all = true;
        for (let last = first - 1n; last <= 21n; last += 1n) {
          all &&= last < first || counters.includes(last);
          expect(runs.reach(first, last)).toBe(all);
        }
      }
      expect(runs.last).toBe(counters.toSorted((a, b) => Number(a - b)).at(-1) ?? 0n);
    }),
    { numRuns: 500 },
  );
});
