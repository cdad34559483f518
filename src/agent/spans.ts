/**
 * Values of stretches of a long row: [from, to) of places, each with one value; sorted, disjoint, and
 * as few as say the same. What is true of millions of reports in turn stays a handful of numbers; what
 * is true of every other one is a long row, so it is changed in place, found by halves.
 */
import { z } from "zod";

const Place = z.int().min(0);

export const Spans = z.array(z.tuple([Place, Place, Place]));
export type Span = z.infer<typeof Spans>[number];

/** Puts `value` at `from` … `to`−1, or nothing there. */
export function paint(spans: Span[], from: number, to: number, value: number | undefined): void {
  if (from >= to) return;
  const first = reaching(spans, from);
  const parts: Span[] = value === undefined ? [] : [[from, to, value]];
  let next = first;
  for (let span = spans[next]; span !== undefined && span[0] <= to; span = spans[++next]) {
    const [start, end, kept] = span;
    if (start < from) parts.unshift([start, Math.min(end, from), kept]);
    if (end > to) parts.push([Math.max(start, to), end, kept]);
  }
  spans.splice(first, next - first, ...join(parts));
}

/** One more than it was, from nothing to 1, and never above `most`. */
export function raise(spans: Span[], from: number, to: number, most: number): void {
  const before = within(spans, from, to);
  paint(spans, from, to, 1);
  for (const [start, end, value] of before) paint(spans, start, end, Math.min(value + 1, most));
}

/** The highest value in `from` … `to`−1; 0 where there is none. */
export function highest(spans: readonly Span[], from: number, to: number): number {
  return within(spans, from, to).reduce((most, [, , value]) => Math.max(most, value), 0);
}

/** Has every place in `from` … `to`−1 a value, and none above `most`? */
export function holds(spans: readonly Span[], from: number, to: number, most: number): boolean {
  let reached = from;
  for (let i = reaching(spans, from); reached < to; i++) {
    const span = spans[i];
    if (span === undefined || span[0] > reached) return false;
    if (span[1] > reached && span[2] > most) return false;
    reached = Math.max(reached, span[1]);
  }
  return true;
}

/** How many places have a value. */
export function extent(spans: readonly Span[]): number {
  return spans.reduce((sum, [from, to]) => sum + to - from, 0);
}

function within(spans: readonly Span[], from: number, to: number): Span[] {
  const parts: Span[] = [];
  for (let i = reaching(spans, from); ; i++) {
    const span = spans[i];
    if (span === undefined || span[0] >= to) return parts;
    const part: Span = [Math.max(span[0], from), Math.min(span[1], to), span[2]];
    if (part[0] < part[1]) parts.push(part);
  }
}

/** The first span that ends at `place` or beyond. */
function reaching(spans: readonly Span[], place: number): number {
  let [low, high] = [0, spans.length];
  while (low < high) {
    const middle = (low + high) >> 1;
    if ((spans[middle]?.[1] ?? 0) < place) low = middle + 1;
    else high = middle;
  }
  return low;
}

function join(parts: readonly Span[]): Span[] {
  const joined: Span[] = [];
  for (const part of parts) {
    const last = joined.at(-1);
    if (last?.[1] === part[0] && last[2] === part[2])
      joined[joined.length - 1] = [last[0], part[1], part[2]];
    else joined.push(part);
  }
  return joined;
}
