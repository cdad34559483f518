import fc from "fast-check";
import { expect, test } from "vitest";
import { Runs } from "../../audit/tally/runs.ts";

test("in whatever order counters come, and however often, it is known up to where none is missing", () => {
  fc.assert(
    fc.property(fc.array(fc.bigInt({ min: 0n, max: 20n })), (counters) => {
      const runs = new Runs();
      for (const counter of counters) runs.add(counter);
      for (let last = 0n; last <= 21n; last += 1n) {
        let all = true;
        for (let counter = 1n; counter <= last; counter += 1n) all &&= counters.includes(counter);
        expect(runs.reach(last)).toBe(all);
      }
    }),
    { numRuns: 500 },
  );
});
