import fc from "fast-check";
import { expect, test } from "vitest";
import { canonical, parseCanonical } from "../../../src/core/json.ts";
import { figuresOf, readFigures } from "../../../src/core/quota/figures.ts";
import { quotaAt } from "../../../src/core/quota/quota.ts";
import { encodeUtf8 } from "../../../src/core/text.ts";
import { events, factsOf, instants } from "./ledger.ts";

const KNOWN = { asOf: 2n ** 63n - 1n, touched: 7n, readAt: 1_700_000_000_000 };

test("what a text shows is the quota that it was made of, and its bounds stand beside it", () => {
  fc.assert(
    fc.property(events, instants, (seen, instant) => {
      const quota = quotaAt(factsOf(seen), instant);
      const { text, ...figures } = figuresOf(quota, KNOWN);
      const { from, until, startBound, runBound, ...shown } = quota;
      expect(figures).toEqual({ ...KNOWN, from, until, startBound, runBound });
      // Not only alike: a limit without a cap has that member, and it is undefined.
      expect(readFigures(text)).toStrictEqual(shown);
    }),
  );
});

test("the text is canonical, so that equal quotas have equal texts", () => {
  fc.assert(
    fc.property(events, instants, (seen, instant) => {
      const { text } = figuresOf(quotaAt(factsOf(seen), instant), KNOWN);
      const value = parseCanonical(encodeUtf8(text));
      expect(value && canonical(value)).toBe(text);
    }),
  );
});

test("no text but one of ours is read as figures", () => {
  const { text } = figuresOf(quotaAt(factsOf([]), "2026-11-20T12:00:00.000Z"), KNOWN);
  expect(text).toContain('"available":"0"');
  for (const other of [
    "",
    "{}",
    ` ${text}`,
    text.replace('"0"', '"-0"'),
    text.replace('"0"', '"1e3"'),
    text.replace('"0"', '""'),
    text.replace('"used":"0"', '"used":"-1"'),
    text.replace('"month":', '"mouth":'),
  ]) {
    expect(other).not.toBe(text);
    expect(() => readFigures(other)).toThrow();
  }
});
