import fc from "fast-check";
import { expect, test } from "vitest";
import { inForceDuring } from "../../audit/prefix/state.ts";
import { InForce } from "../../src/core/effective.ts";
import { instantText } from "../../src/core/unit.ts";

test("in force is the newest entry that starts at or before the instant, of that key alone", () => {
  const day = fc.integer({ min: 0, max: 9 });
  const said = fc.array(fc.record({ key: fc.constantFrom("a", "b"), day }), { maxLength: 20 });
  const instant = (days: number): string => instantText(days * 86_400_000);
  fc.assert(
    fc.property(said, day, (lines, now) => {
      const inForce = new InForce<{ effective_from: string; place: number }>();
      const values = lines.map((line, place) => {
        const value = { effective_from: instant(line.day), place };
        inForce.add(line.key, value);
        return { key: line.key, value };
      });
      for (const key of ["a", "b", "c"]) {
        const ofKey = values.filter((line) => line.key === key).map((line) => line.value);
        const started = ofKey.filter((value) => value.effective_from <= instant(now));
        const newest = started.sort((x, y) => y.place - x.place)[0];
        expect(inForce.at(key, instant(now))).toBe(newest);
        expect(inForce.history(key)).toEqual(ofKey);
      }
    }),
  );
});

test("in force during a span is whatever is in force at any instant of it", () => {
  const day = fc.integer({ min: 0, max: 9 });
  const instant = (days: number): string => instantText(days * 86_400_000);
  fc.assert(
    fc.property(fc.array(day, { maxLength: 8 }), day, day, (days, start, more) => {
      const inForce = new InForce<{ effective_from: string }>();
      for (const from of days) inForce.add("a", { effective_from: instant(from) });
      const at = Array.from({ length: more }, (_, i) => inForce.at("a", instant(start + i)));
      const span = { start: instant(start), end: instant(start + more) };
      const found = inForce.during("a", span);
      expect(new Set(found)).toEqual(new Set(at.filter((value) => value !== undefined)));
      const said = days.map((from) => ({ effective_from: instant(from) }));
      const audited = inForceDuring(said, { start: span.start, over: span.end });
      expect(audited).toEqual(found);
    }),
  );
});

test("a later entry takes back what an earlier one had announced", () => {
  const inForce = new InForce<{ effective_from: string; place: number }>();
  inForce.add("a", { effective_from: "2027-02-01T00:00:00.000Z", place: 0 });
  inForce.add("a", { effective_from: "2027-01-01T00:00:00.000Z", place: 1 });
  expect(inForce.at("a", "2027-03-01T00:00:00.000Z")?.place).toBe(1);
});

test("a value starts at its very millisecond", () => {
  const inForce = new InForce<{ effective_from: string }>();
  inForce.add("a", { effective_from: "2027-01-01T00:00:00.000Z" });
  expect(inForce.at("a", "2026-12-31T23:59:59.999Z")).toBeUndefined();
  expect(inForce.at("a", "2027-01-01T00:00:00.000Z")).toBeDefined();
});
