import fc from "fast-check";
import { expect, test } from "vitest";
import { extent, highest, holds, paint, raise, type Span, Spans } from "../../src/agent/spans.ts";

const PLACES = 20;
const place = fc.integer({ min: 0, max: PLACES });
const stroke = fc.record({
  from: place,
  to: place,
  value: fc.option(fc.integer({ min: 0, max: 2 }), { nil: undefined }),
});

test("whatever is painted, a place has the value that was painted there last, in the fewest spans", () => {
  fc.assert(
    fc.property(fc.array(stroke, { maxLength: 20 }), place, place, (strokes, start, end) => {
      const spans: Span[] = [];
      const row: (number | undefined)[] = Array.from({ length: PLACES });
      for (const { from, to, value } of strokes) {
        paint(spans, from, to, value);
        if (from < to) row.fill(value, from, to);
      }
      expect(Spans.parse(spans)).toEqual(spans);
      expect(row.map((_, i) => spans.find(([from, to]) => from <= i && i < to)?.[2])).toEqual(row);
      const edges = row.filter((value, i) => value !== undefined && value !== row[i - 1]);
      expect(spans).toHaveLength(edges.length);
      expect(extent(spans)).toBe(row.filter((value) => value !== undefined).length);
      const all = row.slice(start, end).every((value) => value !== undefined && value <= 1);
      expect(holds(spans, start, end, 1)).toBe(all);
    }),
  );
});

test("whatever is raised, a place has how often it was raised, and no more than was said", () => {
  const stretch = fc.record({ from: place, to: place });
  fc.assert(
    fc.property(fc.array(stretch, { maxLength: 20 }), place, place, (stretches, start, end) => {
      const spans: Span[] = [];
      const row: number[] = Array.from({ length: PLACES }, () => 0);
      for (const { from, to } of stretches) {
        raise(spans, from, to, 3);
        for (let at = from; at < to; at++) row[at] = Math.min((row[at] ?? 0) + 1, 3);
      }
      expect(row.map((_, i) => spans.find(([from, to]) => from <= i && i < to)?.[2] ?? 0)).toEqual(
        row,
      );
      expect(highest(spans, start, end)).toBe(Math.max(0, ...row.slice(start, end)));
    }),
  );
});

test("a row of every other place of a million takes no more than a moment for each stroke", () => {
  const spans: Span[] = Array.from({ length: 500_000 }, (_, i) => [2 * i, 2 * i + 1, 7]);
  const before = process.cpuUsage();
  for (let i = 0; i < 2_000; i++) {
    paint(spans, 1_000_000 + 2 * i, 1_000_001 + 2 * i, 7);
    expect(holds(spans, 2 * i, 2 * i + 1, 7)).toBe(true);
  }
  expect(spans).toHaveLength(502_000);
  // Of this process alone: what else the machine does is not measured.
  const { system, user } = process.cpuUsage(before);
  expect((system + user) / 1_000).toBeLessThan(2_000);
});
