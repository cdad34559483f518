/** The function against counting, over random histories. */
import fc from "fast-check";
import { expect, test } from "vitest";
import { MINUTE } from "../../../src/core/charge.ts";
import { figuresOf } from "../../../src/core/quota/figures.ts";
import { type QuotaFacts, quotaAt } from "../../../src/core/quota/quota.ts";
import { computeMs, epochMs, instantText } from "../../../src/core/unit.ts";
import { count, events, Folded, factsOf, instants, monthAt, TOKEN } from "./ledger.ts";

const RUNS = { numRuns: 2_000 };
const KNOWN = { asOf: 0n, touched: -1n, readAt: 0 };

test("limit, packs and use are what counting single quarters of a minute gives, whatever came when", () => {
  fc.assert(
    fc.property(events, instants, (seen, instant) => {
      const counted = count(seen, instant);
      const quota = quotaAt(factsOf(seen), instant);
      const left = counted.packs.reduce((sum, pack) => sum + pack.left, 0);
      expect(quota.used).toBe(BigInt(counted.used) * TOKEN);
      expect(quota.available).toBe(BigInt(counted.limit + left - counted.used) * TOKEN);
      expect(quota.unlimited).toBe(counted.limit === 0 && counted.packs.length === 0);
      const packs = quota.packs.map(({ pack, capacity, drawnBefore, drawn }) => {
        const undrawn = capacity > drawnBefore ? capacity - drawnBefore : 0n;
        return { pack, left: Number(undrawn / TOKEN), taken: Number(drawn / TOKEN) };
      });
      expect(packs).toEqual(counted.packs);
    }),
    RUNS,
  );
});

test("two rebuilds from entries in any batching agree to the last digit", () => {
  fc.assert(
    fc.property(events, instants, fc.array(fc.nat(5)), (seen, instant, sizes) => {
      const folded = new Folded();
      let from = 0;
      for (const size of sizes) {
        folded.take(seen.slice(from, from + size));
        from += size;
      }
      folded.take(seen.slice(from));
      const once = figuresOf(quotaAt(factsOf(seen), instant), KNOWN);
      expect(figuresOf(quotaAt(folded.facts(), instant), KNOWN)).toEqual(once);
    }),
    RUNS,
  );
});

test("figures hold from `from` until `until` and no instant longer", () => {
  fc.assert(
    fc.property(events, instants, (seen, instant) => {
      const facts = factsOf(seen);
      const figures = figuresOf(quotaAt(facts, instant), KNOWN);
      const at = (epoch: number) => figuresOf(quotaAt(facts, instantText(epoch)), KNOWN);
      const now = epochMs(instant);
      expect(figures.from <= now && now < figures.until).toBe(true);
      const moments = facts.limits.map(({ effective_from }) => epochMs(effective_from));
      const near = [figures.from, figures.until, ...moments].flatMap((epoch) => [epoch - 1, epoch]);
      for (const epoch of near) {
        const holds = figures.from <= epoch && epoch < figures.until;
        if (holds) expect(at(epoch)).toEqual(figures);
      }
      expect(at(figures.until).text).not.toBe(figures.text);
      expect(at(figures.from - 1).text).not.toBe(figures.text);
    }),
    RUNS,
  );
});

test("an amount is as exact at 10^30 times the size", () => {
  const many = 10n ** 30n;
  const grown = (facts: QuotaFacts): QuotaFacts => ({
    ...facts,
    limits: facts.limits.map((limit) => {
      return { ...limit, monthly_minutes: limit.monthly_minutes * many };
    }),
    packs: facts.packs.map((pack) => ({ ...pack, minutes: pack.minutes * many })),
    used: new Map([...facts.used].map(([month, used]) => [month, computeMs(used * many)])),
  });
  fc.assert(
    fc.property(events, instants, (seen, instant) => {
      const facts = factsOf(seen);
      const small = quotaAt(facts, instant);
      const large = quotaAt(grown(facts), instant);
      expect(large.available).toBe(small.available * many);
      expect(large.packs.map(({ drawn }) => drawn)).toEqual(
        small.packs.map(({ drawn }) => drawn * many),
      );
    }),
  );
});

test("invariant 11: what comes after a month was closed changes none of its figures", () => {
  fc.assert(
    fc.property(events, events, (seen, later) => {
      const closings = factsOf(seen).closings;
      const last = closings.at(-1)?.month;
      fc.pre(last !== undefined);
      // No withdrawal, which opens a month again; what is used then is posted to months that are open.
      const more = later.filter(({ kind }) => kind === "quota" || kind === "pack");
      for (const { month } of closings) {
        const instant = `${month.slice(0, 8)}28T00:00:00.000Z`;
        expect(quotaAt(factsOf([...seen, ...more]), instant)).toEqual(
          quotaAt(factsOf(seen), instant),
        );
      }
    }),
    RUNS,
  );
});

test("G11: every namespace starts every month with nothing used, and no job made it so", () => {
  fc.assert(
    fc.property(events, fc.integer({ min: 1, max: 9 }), (seen, number) => {
      const month = monthAt(number);
      const before = seen.filter((event) => event.kind !== "usage" || event.usage_month < month);
      const facts = factsOf(before);
      const first = quotaAt(facts, `${month}T00:00:00.000Z`);
      const last = quotaAt(facts, instantText(epochMs(`${month}T00:00:00.000Z`) - 1));
      expect([first.month, first.used]).toEqual([month, 0n]);
      expect(last.month < month).toBe(true);
      const limit = (first.limit?.monthly_minutes ?? 0n) * MINUTE;
      expect(first.available >= limit).toBe(true);
    }),
    RUNS,
  );
});

test("bounds are available plus cap or grace, and there are none without a limit or without a cap", () => {
  fc.assert(
    fc.property(events, instants, (seen, instant) => {
      const quota = quotaAt(factsOf(seen), instant);
      const { available, beyond, limit, runBound, startBound, unlimited } = quota;
      const grace = limit === undefined ? 1_000n : limit.grace_minutes;
      const bounds = [startBound, runBound];
      if (unlimited) expect(bounds).toEqual([undefined, undefined]);
      else if (beyond === "stop") expect(bounds).toEqual([available, available + grace * MINUTE]);
      else if (limit?.cap === undefined) expect(bounds).toEqual([undefined, undefined]);
      else {
        const bound = available + limit.cap * MINUTE;
        expect(bounds).toEqual([bound, bound]);
      }
      const dedicated = quotaAt(factsOf(seen, "dedicated"), instant);
      expect([dedicated.startBound, dedicated.runBound]).toEqual([undefined, undefined]);
      expect(dedicated.available).toBe(available);
    }),
    RUNS,
  );
});
