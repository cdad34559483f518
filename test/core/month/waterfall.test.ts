/** Dealing against handing out single units one after the other. */
import fc from "fast-check";
import { expect, test } from "vitest";
import { allocate } from "../../../src/core/month/allocation.ts";
import { type Dealt, Waterfall } from "../../../src/core/month/waterfall.ts";
import { events, factsOf, monthAt } from "../quota/ledger.ts";

const RUNS = { numRuns: 1_000 };
const PARTS = ["included", "pack", "overage", "absorbed"] as const;
const NOTHING: Dealt = { included: 0n, pack: 0n, overage: 0n, absorbed: 0n };

const sumOf = (dealt: Dealt): bigint => PARTS.reduce((sum, part) => sum + dealt[part], 0n);
const added = (all: readonly Dealt[]): Dealt =>
  all.reduce((sum, each) => {
    const entries = PARTS.map((part) => [part, sum[part] + each[part]] as const);
    return Object.fromEntries(entries) as unknown as Dealt;
  }, NOTHING);

/** Few enough to be counted, of one sign as all of an allocation's. */
const shares = fc.record({
  sign: fc.constantFrom(1, -1),
  sizes: fc.tuple(fc.nat(6), fc.nat(6), fc.nat(6), fc.nat(6)),
});
const lines = fc.array(fc.integer({ min: -9, max: 9 }), { maxLength: 8 });

/** The last line makes the lines come to the whole. */
function completed(billable: readonly number[], whole: number): number[] {
  return [...billable, whole - billable.reduce((sum, each) => sum + each, 0)];
}

test("each unit of a line is where handing them out one by one puts it, and takes it back from", () => {
  fc.assert(
    fc.property(shares, lines, ({ sign, sizes }, some) => {
      const [included, pack, overage, absorbed] = sizes.map((size) => BigInt(sign * size));
      const share = { included, overage, absorbed, packs: [{ index: 1n, drawn: pack }] };
      const waterfall = new Waterfall(share as ConstructorParameters<typeof Waterfall>[0]);
      const places = PARTS.flatMap((part, at) =>
        Array<(typeof PARTS)[number]>(sizes[at] ?? 0).fill(part),
      );
      if (sign < 0) places.reverse();
      let level = 0;
      for (const billable of completed(some, sign * places.length)) {
        const expected = { ...NOTHING };
        for (let unit = 0; unit < Math.abs(billable); unit += 1) {
          const up = Math.sign(billable) === sign;
          const at = Math.min(Math.max(up ? level : level - 1, 0), places.length - 1);
          expected[places[at] ?? "included"] += BigInt(Math.sign(billable));
          level += up ? 1 : -1;
        }
        expect(waterfall.deal(BigInt(billable))).toEqual(expected);
      }
    }),
    RUNS,
  );
});

test("whatever the lines of an allocation are, they add up to it, and each to its billable usage", () => {
  fc.assert(
    fc.property(events, lines, fc.bigInt({ min: -99n, max: 999n }), (seen, some, late) => {
      const month = monthAt(12);
      const facts = factsOf(seen);
      const posted = [monthAt(3), month].map((usage_month, at) => {
        const billable = at === 0 ? late * 10n ** 9n : (facts.used.get(month) ?? 0n);
        return { usage_month, billable, not_billable: 5n };
      });
      for (const share of allocate({ facts, month, posted, earlier: new Map(facts.used) })) {
        const whole = share.usage - share.not_billable;
        const first = some.map((part) => (whole * BigInt(part)) / 7n);
        const billable = [...first, whole - first.reduce((sum, each) => sum + each, 0n)];
        const waterfall = new Waterfall(share);
        const dealt = billable.map((each) => waterfall.deal(each));
        expect(dealt.map(sumOf)).toEqual(billable);
        const pack = share.packs.reduce((sum, { drawn }) => sum + drawn, 0n);
        const { included, overage, absorbed } = share;
        expect(added(dealt)).toEqual({ included, pack, overage, absorbed });
      }
    }),
    RUNS,
  );
});

test("of lines that take nothing back none has more of a part than the allocation, nor any below zero", () => {
  const positive = fc.array(fc.nat(9), { minLength: 1, maxLength: 8 });
  fc.assert(
    fc.property(positive, fc.nat(20), fc.nat(20), (some, first, second) => {
      const whole = BigInt(some.reduce((sum, each) => sum + each, 0));
      const included = whole < BigInt(first) ? whole : BigInt(first);
      const rest = whole - included;
      const pack = rest < BigInt(second) ? rest : BigInt(second);
      const share = { included, overage: rest - pack, absorbed: 0n };
      const waterfall = new Waterfall({ ...share, packs: [{ index: 1n, drawn: pack }] });
      for (const billable of some) {
        const dealt = waterfall.deal(BigInt(billable));
        for (const part of PARTS) expect(dealt[part] >= 0n).toBe(true);
        expect(dealt.included <= included && dealt.pack <= pack).toBe(true);
      }
    }),
    RUNS,
  );
});

test("lines that come to nothing are dealt to included minutes, and back", () => {
  const waterfall = new Waterfall({ included: 0n, packs: [], overage: 0n, absorbed: 0n });
  expect(waterfall.deal(30n)).toEqual({ ...NOTHING, included: 30n });
  expect(waterfall.deal(-30n)).toEqual({ ...NOTHING, included: -30n });
});
