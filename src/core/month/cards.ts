/** Rate cards by which a month's builds are charged. */
import type { Card } from "../prefix.ts";
import { nextMonth } from "../unit.ts";

/** Those in force at any instant of the month, in the order of their entries. @param cards of one tracking */
export function cardsIn(cards: readonly Card[], month: string): Card[] {
  const [start, end] = [month, nextMonth(month)].map((day) => `${day}T00:00:00.000Z`);
  if (start === undefined || end === undefined) return [];
  // Only where one begins can another come into force.
  const begins = cards.map(({ effective_from }) => effective_from);
  const instants = [start, ...begins.filter((instant) => start < instant && instant < end)];
  const inForce = new Set(
    instants.map((instant) => cards.findLast((card) => card.effective_from <= instant)),
  );
  return cards.filter((card) => inForce.has(card));
}
