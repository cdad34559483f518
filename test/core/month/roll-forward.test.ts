/** The roll of packs against counting, over random histories. */
import fc from "fast-check";
import { expect, test } from "vitest";
import { MINUTE } from "../../../src/core/charge.ts";
import { type PackRoll, rollForward } from "../../../src/core/month/roll-forward.ts";
import { epochMs, instantText, nextMonth } from "../../../src/core/unit.ts";
import { count, events, factsOf, monthAt, TOKEN } from "../quota/ledger.ts";
import { cutOffs } from "./cut-offs.ts";

const RUNS = { numRuns: 3_000 };

test("opening + bought − drawn − expired − refunded = closing, and no figure is below zero", () => {
  fc.assert(
    fc.property(events, (seen) => {
      for (const { index, month } of cutOffs(seen)) {
        for (const roll of rollForward(factsOf(seen.slice(0, index + 1)), month)) {
          const { index: _, closing, ...figures } = roll;
          const { opening, bought, drawn, expired, refunded } = figures;
          expect(opening + bought - drawn - expired - refunded).toBe(closing);
          for (const figure of [closing, ...Object.values(figures)])
            expect(figure >= 0n).toBe(true);
        }
      }
    }),
    RUNS,
  );
});

test("a month opens with what the month before closed with, pack by pack", () => {
  fc.assert(
    fc.property(events, (seen) => {
      let before = new Map<string, bigint>();
      for (const { index, month } of cutOffs(seen)) {
        const facts = factsOf(seen.slice(0, index + 1));
        const nameOf = (roll: PackRoll): string =>
          facts.packs.find((pack) => pack.index === roll.index)?.pack ?? "";
        const rolls = rollForward(facts, month);
        const openings = rolls.filter(({ opening }) => opening > 0n);
        expect(new Map(openings.map((roll) => [nameOf(roll), roll.opening]))).toEqual(before);
        const closings = rolls.filter(({ closing }) => closing > 0n);
        before = new Map(closings.map((roll) => [nameOf(roll), roll.closing]));
      }
    }),
    RUNS,
  );
});

test("what is drawn, and what is left for the month after, is what counting gives", () => {
  fc.assert(
    fc.property(events, (seen) => {
      for (const { index, month } of cutOffs(seen)) {
        const until = seen.slice(0, index + 1);
        const facts = factsOf(until);
        const rolls = rollForward(facts, month);
        const end = epochMs(`${nextMonth(month)}T00:00:00.000Z`) - 1;
        const { packs } = count(until, instantText(end));
        const drawn = rolls.reduce((sum, roll) => sum + roll.drawn, 0n);
        expect(drawn).toBe(packs.reduce((sum, { taken }) => sum + BigInt(taken), 0n) * TOKEN);
        const after = count(until, `${monthAt(Number(month.slice(5, 7)) + 1)}`);
        for (const { pack, left } of packs) {
          const fact = facts.packs.findLast((each) => each.pack === pack);
          const isLast = fact?.expires_in === month;
          const closing = rolls.find((roll) => nameIn(facts, roll) === pack)?.closing ?? 0n;
          const still = after.packs.find((other) => other.pack === pack)?.left ?? 0;
          expect(left >= still).toBe(true);
          expect(closing).toBe(isLast ? 0n : BigInt(still) * TOKEN);
        }
      }
    }),
    RUNS,
  );
});

function nameIn({ packs }: ReturnType<typeof factsOf>, { index }: PackRoll): string | undefined {
  return packs.find((pack) => pack.index === index)?.pack;
}

const pack = { kind: "pack", pack: "a", purchased_in: monthAt(3) } as const;
const [march, april] = [
  { kind: "closing", month: monthAt(3) },
  { kind: "closing", month: monthAt(4) },
] as const;
const used = { kind: "usage", usage_month: monthAt(3), billing_month: monthAt(3) } as const;
const FIGURES = { opening: 0n, bought: 0n, drawn: 0n, expired: 0n, refunded: 0n, closing: 0n };
const minutes = (count: number): bigint => BigInt(count) * MINUTE;

test.each([
  [
    "bought and drawn",
    [
      { ...pack, minutes: 5n, expires_in: monthAt(6), source_version: 0n },
      { ...used, tokens: 8 },
      march,
    ],
    { index: 0n, ...FIGURES, bought: minutes(5), drawn: minutes(2), closing: minutes(3) },
  ],
  [
    "expired with its last month",
    [
      { ...pack, minutes: 5n, expires_in: monthAt(3), source_version: 0n },
      { ...used, tokens: 8 },
      march,
    ],
    { index: 0n, ...FIGURES, bought: minutes(5), drawn: minutes(2), expired: minutes(3) },
  ],
  [
    "taken back",
    [
      { ...pack, minutes: 5n, expires_in: monthAt(6), source_version: 0n },
      march,
      { ...pack, minutes: 0n, expires_in: monthAt(6), source_version: 1n },
      april,
    ],
    { index: 2n, ...FIGURES, opening: minutes(5), refunded: minutes(5) },
  ],
  [
    "made smaller than what is drawn",
    [
      { ...pack, minutes: 5n, expires_in: monthAt(6), source_version: 0n },
      { ...used, tokens: 8 },
      march,
      { ...pack, minutes: 1n, expires_in: monthAt(6), source_version: 1n },
      april,
    ],
    { index: 3n, ...FIGURES, opening: minutes(3), refunded: minutes(3) },
  ],
  [
    "made larger",
    [
      { ...pack, minutes: 5n, expires_in: monthAt(6), source_version: 0n },
      march,
      { ...pack, minutes: 9n, expires_in: monthAt(6), source_version: 1n },
      april,
    ],
    { index: 2n, ...FIGURES, opening: minutes(5), bought: minutes(4), closing: minutes(9) },
  ],
  [
    "ended before the month",
    [
      { ...pack, minutes: 5n, expires_in: monthAt(6), source_version: 0n },
      march,
      { ...pack, minutes: 5n, expires_in: monthAt(3), source_version: 1n },
      april,
    ],
    { index: 2n, ...FIGURES, opening: minutes(5), expired: minutes(5) },
  ],
] as const)("a pack that is %s", (_, seen, expected) => {
  const last = cutOffs(seen).at(-1);
  expect(rollForward(factsOf(seen), last?.month ?? "")).toEqual([expected]);
});
