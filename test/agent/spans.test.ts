import fc from "fast-check";
import { expect, test } from "vitest";
import { extent, holds, paint, type Span, Spans } from "../../src/agent/spans.ts";

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
      let spans: Span[] = [];
      const row: (number | undefined)[] = Array.from({ length: PLACES });
      for (const { from, to, value } of strokes) {
        spans = paint(spans, from, to, value);
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
