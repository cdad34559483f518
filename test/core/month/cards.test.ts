import fc from "fast-check";
import { expect, test } from "vitest";
import { cardsIn } from "../../../src/core/month/cards.ts";
import type { Card } from "../../../src/core/prefix.ts";
import { instantText } from "../../../src/core/unit.ts";

const START = Date.UTC(2026, 9, 1);
const HOURS = 31 * 24;

test("a card is one of the month's if some build that finished in it was charged by that card", () => {
  fc.assert(
    fc.property(
      fc.array(fc.integer({ min: -100, max: HOURS + 100 }), { maxLength: 8 }),
      (hours) => {
        const cards = hours.map((hour, index) => {
          return {
            index: BigInt(index),
            effective_from: instantText(START + hour * 3_600_000),
          } as Card;
        });
        const used = new Set<Card>();
        for (let hour = 0; hour < HOURS; hour += 1) {
          const finished = instantText(START + hour * 3_600_000);
          const card = cards.findLast(({ effective_from }) => effective_from <= finished);
          if (card !== undefined) used.add(card);
        }
        expect(cardsIn(cards, "2026-10-01")).toEqual(cards.filter((card) => used.has(card)));
      },
    ),
  );
});
