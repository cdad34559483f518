/** The split against counting single quarters of a minute, over random histories. */
import fc from "fast-check";
import { expect, test } from "vitest";
import {
  allocate,
  type Posted,
  quotaOfMonth,
  type Share,
} from "../../../src/core/month/allocation.ts";
import type { QuotaFacts } from "../../../src/core/quota/quota.ts";
import { epochMs, instantText, nextMonth } from "../../../src/core/unit.ts";
import { count, type Event, events, factsOf, monthAt, TOKEN } from "../quota/ledger.ts";
import { cutOffs } from "./cut-offs.ts";

const RUNS = { numRuns: 2_000 };
const lastOf = (month: string): string =>
  instantText(epochMs(`${nextMonth(month)}T00:00:00.000Z`) - 1);

type Parts = Pick<Share, "included" | "overage" | "absorbed">;
const NOTHING: Parts = { included: 0n, overage: 0n, absorbed: 0n };

/** One quarter of a minute more, or less, of a month whose packs are drawn already. */
function step({ included, overage, absorbed }: Parts, terms: Terms, sign: number): Parts {
  const parts = { included, overage, absorbed };
  if (sign > 0) {
    if (overage < 0n) parts.overage += TOKEN;
    else if (terms.unlimited || included < terms.limit) parts.included += TOKEN;
    else if (terms.cap === undefined || overage < terms.cap) parts.overage += TOKEN;
    else parts.absorbed += TOKEN;
  } else if (absorbed > 0n) {
    parts.absorbed -= TOKEN;
  } else if (overage > 0n) {
    parts.overage -= TOKEN;
  } else if (included > 0n) {
    parts.included -= TOKEN;
  } else {
    parts.overage -= TOKEN;
  }
  return parts;
}

interface Terms {
  limit: bigint;
  unlimited: boolean;
  /** The most that is charged beyond the limit. */
  cap: bigint | undefined;
}

function termsOf(facts: QuotaFacts, month: string): Terms {
  const { beyond, limit, unlimited } = quotaOfMonth(facts, month);
  const minutes = (limit?.monthly_minutes ?? 0n) * 4n * TOKEN;
  const most = limit?.cap === undefined ? undefined : limit.cap * 4n * TOKEN;
  return { limit: minutes, unlimited, cap: beyond === "bill" ? most : 0n };
}

/** Signed quarters of a minute, by usage month. */
const late = fc.array(
  fc.record({
    usage_month: fc.integer({ min: 1, max: 3 }).map(monthAt),
    sign: fc.constantFrom(1, -1),
  }),
  { maxLength: 40 },
);

function postedTo(seen: readonly Event[], month: string, cutOff: number): Posted[] {
  const sums = new Map<string, bigint>();
  for (const event of seen.slice(0, cutOff)) {
    if (event.kind !== "usage" || event.billing_month !== month) continue;
    const sum = (sums.get(event.usage_month) ?? 0n) + BigInt(event.tokens) * TOKEN;
    sums.set(event.usage_month, sum);
  }
  return Array.from(sums, ([usage_month, billable]) => ({
    usage_month,
    billable,
    not_billable: 7n,
  }));
}

/** By usage month, what was posted to months before. */
function earlierThan(seen: readonly Event[], month: string): Map<string, bigint> {
  const sums = new Map<string, bigint>();
  for (const event of seen) {
    if (event.kind !== "usage" || event.billing_month >= month) continue;
    const sum = (sums.get(event.usage_month) ?? 0n) + BigInt(event.tokens) * TOKEN;
    sums.set(event.usage_month, sum);
  }
  return sums;
}

const sum = (share: Share): bigint =>
  share.included +
  share.packs.reduce((total, { drawn }) => total + drawn, 0n) +
  share.overage +
  share.absorbed +
  share.not_billable;

test("the parts of every line add up to its usage, and packs are drawn as the quota draws them", () => {
  fc.assert(
    fc.property(events, (seen) => {
      for (const { index, month } of cutOffs(seen)) {
        const facts = factsOf(seen.slice(0, index + 1));
        const posted = postedTo(seen, month, index);
        const shares = allocate({ facts, month, posted, earlier: earlierThan(seen, month) });
        expect(shares.map(({ usage_month }) => usage_month)).toEqual(
          posted.map(({ usage_month }) => usage_month).sort(),
        );
        for (const share of shares) expect(sum(share)).toBe(share.usage);
        const drawn = shares.flatMap(({ packs }) => packs.map((pack) => pack.drawn));
        const counted = count(seen.slice(0, index + 1), lastOf(month));
        const taken = counted.packs.filter((pack) => pack.taken > 0);
        expect(drawn).toEqual(taken.map((pack) => BigInt(pack.taken) * TOKEN));
      }
    }),
    RUNS,
  );
});

test("every quarter of a minute is where counting them one by one puts it, whenever it came", () => {
  fc.assert(
    fc.property(events, (seen) => {
      for (const { index, month } of cutOffs(seen)) {
        const facts = factsOf(seen.slice(0, index + 1));
        const earlier = earlierThan(seen, month);
        const posted = postedTo(seen, month, index);
        for (const share of allocate({ facts, month, posted, earlier })) {
          const terms = termsOf(facts, share.usage_month);
          const packs = quotaOfMonth(facts, share.usage_month).packs;
          let fromPacks = packs.reduce((total, { drawn }) => total + drawn, 0n);
          let parts = NOTHING;
          let before = NOTHING;
          const stood = earlier.get(share.usage_month) ?? 0n;
          const grown = stood + share.usage - share.not_billable;
          for (let at = 0n; at < grown; at += TOKEN) {
            if (at === stood) before = parts;
            // What is over the limit comes from packs first, as long as they have any.
            const isOver = !terms.unlimited && parts.included >= terms.limit;
            if (isOver && fromPacks > 0n) fromPacks -= TOKEN;
            else parts = step(parts, terms, 1);
          }
          if (grown === stood) before = parts;
          const { included, overage, absorbed } = share;
          expect({ included, overage, absorbed }).toEqual({
            included: parts.included - before.included,
            overage: parts.overage - before.overage,
            absorbed: parts.absorbed - before.absorbed,
          });
        }
      }
    }),
    RUNS,
  );
});

test("what comes late or is taken back moves the parts as it would one by one, in any order", () => {
  fc.assert(
    fc.property(events, late, (seen, steps) => {
      const facts = factsOf(seen);
      const month = monthAt(12);
      const amounts = new Map<string, bigint>();
      const expected = new Map<string, Parts>();
      for (const { usage_month, sign } of steps) {
        amounts.set(usage_month, (amounts.get(usage_month) ?? 0n) + BigInt(sign) * TOKEN);
        const terms = termsOf(facts, usage_month);
        const parts = expected.get(usage_month) ?? startOf(facts, usage_month);
        expected.set(usage_month, step(parts, terms, sign));
      }
      const posted = Array.from(amounts, ([usage_month, billable]) => {
        return { usage_month, billable, not_billable: 0n };
      });
      const input = { facts, month, earlier: new Map(facts.used) };
      const shares = allocate({ ...input, posted });
      expect(allocate({ ...input, posted: posted.toReversed() })).toEqual(shares);
      for (const share of shares) {
        const from = startOf(facts, share.usage_month);
        const to = expected.get(share.usage_month) ?? NOTHING;
        expect(share.packs).toEqual([]);
        expect(share.included).toBe(to.included - from.included);
        expect(share.overage).toBe(to.overage - from.overage);
        expect(share.absorbed).toBe(to.absorbed - from.absorbed);
        expect(sum(share)).toBe(share.usage);
      }
    }),
    RUNS,
  );
});

/** The month's own line. */
function startOf(facts: QuotaFacts, month: string): Parts {
  const posted = [{ usage_month: month, billable: facts.used.get(month) ?? 0n, not_billable: 0n }];
  const [own] = allocate({ facts, month, posted, earlier: new Map() });
  if (own === undefined) throw new Error("no line");
  const { included, overage, absorbed } = own;
  return { included, overage, absorbed };
}

test("the lines of a usage month, over all the months it was posted to, are those of its sum", () => {
  fc.assert(
    fc.property(
      events,
      fc.array(fc.bigInt({ min: -99n, max: 99n }), { maxLength: 5 }),
      (seen, parts) => {
        const facts = factsOf(seen);
        const usage_month = monthAt(2);
        let stood = facts.used.get(usage_month) ?? 0n;
        const total = { ...startOf(facts, usage_month) };
        for (const [at, billable] of parts.entries()) {
          const earlier = new Map([[usage_month, stood]]);
          const posted = [{ usage_month, billable, not_billable: 0n }];
          const [share] = allocate({ facts, month: monthAt(at + 3), posted, earlier });
          total.included += share?.included ?? 0n;
          total.overage += share?.overage ?? 0n;
          total.absorbed += share?.absorbed ?? 0n;
          stood += billable;
        }
        const whole = stood - (facts.used.get(usage_month) ?? 0n);
        const posted = [{ usage_month, billable: whole, not_billable: 0n }];
        const [share] = allocate({
          facts,
          month: monthAt(12),
          posted,
          earlier: new Map(facts.used),
        });
        const from = startOf(facts, usage_month);
        expect(total).toEqual({
          included: from.included + (share?.included ?? 0n),
          overage: from.overage + (share?.overage ?? 0n),
          absorbed: from.absorbed + (share?.absorbed ?? 0n),
        });
      },
    ),
    RUNS,
  );
});
