/**
 * Values of stretches of a long row: [from, to) of places, each with one value; sorted, disjoint, and
 * as few as say the same. What is true of millions of reports in turn stays a handful of numbers.
 */
import { z } from "zod";

const Place = z.int().min(0);

export const Spans = z.array(z.tuple([Place, Place, Place]));
export type Span = z.infer<typeof Spans>[number];

/** The same row with `value` at `from` … `to`−1, or with nothing there. */
export function paint(
  spans: readonly Span[],
  from: number,
  to: number,
  value: number | undefined,
): Span[] {
  if (from >= to) return [...spans];
  const parts = spans.flatMap(([start, end, kept]): Span[] => [
    [start, Math.min(end, from), kept],
    [Math.max(start, to), end, kept],
  ]);
  if (value !== undefined) parts.push([from, to, value]);
  return join(parts.filter(([start, end]) => start < end).sort(([a], [b]) => a - b));
}

/** Has every place in `from` … `to`−1 a value, and none above `most`? */
export function holds(spans: readonly Span[], from: number, to: number, most: number): boolean {
  let reached = from;
  for (const [start, end, value] of spans) {
    if (start <= reached && reached < end && value <= most) reached = end;
  }
  return reached >= to;
}

/** How many places have a value. */
export function extent(spans: readonly Span[]): number {
  return spans.reduce((sum, [from, to]) => sum + to - from, 0);
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
