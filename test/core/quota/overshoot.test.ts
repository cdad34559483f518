import fc from "fast-check";
import { expect, test } from "vitest";
import { charge, MINUTE } from "../../../src/core/charge.ts";
import type { Factor } from "../../../src/core/factor.ts";
import { beyondAtMost, impliedFactor, startsAtMost } from "../../../src/core/quota/overshoot.ts";
import { milliseconds } from "../../../src/core/unit.ts";

const COMPUTE_MS = MINUTE / 60_000n;
const factor = fc.record({
  n: fc.bigInt({ min: 0n, max: 10n ** 6n }),
  d: fc.oneof(fc.bigInt({ min: 1n, max: 10n ** 6n }), fc.constantFrom(1n, 125n, 300_000n)),
});
const elapsed = fc.bigInt({ min: 1n, max: 10n ** 10n });
const charged = (ms: bigint, by: Factor): bigint => charge(milliseconds(ms), by);

test("with one minute left and a minute reserved by each, one job starts; of a second left, one too", () => {
  expect(startsAtMost(MINUTE, MINUTE)).toBe(1n);
  expect(startsAtMost(MINUTE / 60n, MINUTE)).toBe(1n);
  expect(startsAtMost(MINUTE + 1n, MINUTE)).toBe(2n);
});

test("with nothing left nothing starts, and without a reserve there is no bound", () => {
  expect([startsAtMost(0n, MINUTE), startsAtMost(-1n, 0n)]).toEqual([0n, 0n]);
  expect(startsAtMost(1n, 0n)).toBeUndefined();
});

test("the bound on starts is the count of grants that are handed out one after the other", () => {
  const amount = fc.bigInt({ min: 1n, max: 10n ** 6n });
  fc.assert(
    fc.property(fc.bigInt({ min: -10n, max: 10n ** 6n }), amount, (left, reserve) => {
      fc.pre(left / reserve < 1_000n);
      let granted = 0n;
      while (granted * reserve < left) granted += 1n;
      expect(startsAtMost(left, reserve)).toBe(granted);
    }),
  );
});

test("fifty jobs at factor 1 and no grace overshoot by 75 minutes at most; at twelve times that, 900", () => {
  const pace = { heartbeatMs: 30_000n, roundMs: 60_000n };
  const fifty = (n: bigint) => Array.from({ length: 50 }, () => ({ n, d: 1n }));
  expect(beyondAtMost(0n, fifty(1n), pace)).toBe(75n * MINUTE);
  expect(beyondAtMost(1_000n * MINUTE, fifty(12n), pace)).toBe(1_900n * MINUTE);
});

test("what a job adds after what was heard is never more than its share, however charges are rounded", () => {
  const part = fc.bigInt({ min: 0n, max: 200_000n });
  fc.assert(
    fc.property(elapsed, factor, part, part, (heard, by, heartbeatMs, roundMs) => {
      const pace = { heartbeatMs, roundMs };
      const added = charged(heard + heartbeatMs + roundMs, by) - charged(heard, by);
      const bound = beyondAtMost(0n, [by], pace);
      expect(added <= bound).toBe(true);
      // Two roundings of half a unit lie between them, and nothing else.
      expect(bound - added <= 2n).toBe(true);
    }),
  );
});

test("an implied factor makes just that amount of just that time, and none is simpler", () => {
  fc.assert(
    fc.property(elapsed, factor, (ms, by) => {
      const amount = charged(ms, by);
      const found = impliedFactor(ms, amount);
      if (found === undefined) throw new Error("no factor");
      expect(charged(ms, found)).toBe(amount);
      // Of two factors half a unit away either may be the simpler one.
      const tie =
        (2n * ms * COMPUTE_MS * by.n) % by.d === 0n && (ms * COMPUTE_MS * by.n) % by.d !== 0n;
      expect(tie || found.d <= by.d).toBe(true);
    }),
  );
});

test.each([
  [3n, 1n],
  [1n, 30n],
  [1n, 125n],
  [0n, 1n],
] as const)("ten seconds at %d/%d are told again as that factor", (n, d) => {
  expect(impliedFactor(10_000n, charged(10_000n, { n, d }))).toEqual({ n, d });
});

test("no time at all implies no factor", () => {
  expect(impliedFactor(0n, 0n)).toBeUndefined();
});
