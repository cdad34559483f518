/** What a credit run's lines are, held against sums that are made the slow way. */
import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { formatSignedComputeMs, MINUTE, parseSignedComputeMs } from "../../src/core/charge.ts";
import type { AdjustmentLine } from "../../src/core/control.ts";
import {
  adjustmentsOf,
  type CreditForm,
  creditLine,
  ofAdjustment,
  ofPack,
  packVersion,
  reversalLine,
  type SelectedUsage,
  type Selection,
  termsOf,
  wholeMinutes,
} from "../../src/core/credit-run.ts";
import { Problem } from "../../src/core/problem.ts";

const usage = (change: Partial<SelectedUsage> = {}): SelectedUsage => ({
  entry: "7",
  machine_type: "small",
  namespace_id: "1",
  project_id: "10",
  usage_month: "2026-10-01",
  left: 6n * MINUTE,
  ...change,
});
const WHOLE = { n: 1n, d: 1n };
const share = fc
  .tuple(fc.bigInt({ min: 1n, max: 1_000n }), fc.bigInt({ min: 1n, max: 1_000n }))
  .map(([a, b]) => (a < b ? { n: a, d: b } : { n: b, d: a }));

describe("a line that takes back", () => {
  test("names its usage, and takes all that is left of it where the rate becomes zero", () => {
    expect(creditLine(usage(), WHOLE, new Map())).toEqual({
      amount: "-360000.000000",
      entry: "7",
      namespace_id: "1",
      project_id: "10",
      reverses: "",
      usage_month: "2026-10-01",
    });
  });

  test("is none where nothing is left", () => {
    expect(creditLine(usage({ left: 0n }), WHOLE, new Map())).toBeUndefined();
  });

  test("takes a share that is nearest to the exact one, and never more than what is left", () => {
    fc.assert(
      fc.property(fc.bigInt({ min: 1n, max: 10n ** 15n }), share, (left, part) => {
        const line = creditLine(usage({ left }), part, new Map());
        const taken = line === undefined ? 0n : -parseSignedComputeMs(line.amount);
        const twiceOff = 2n * (taken * part.d - left * part.n);
        expect(twiceOff <= part.d && -twiceOff <= part.d).toBe(true);
        expect(taken >= 0n && taken <= left).toBe(true);
      }),
    );
  });

  test("never takes more of a month, or in it of a project, than an earlier credit of it has left", () => {
    const charges = fc.array(
      fc.record({ project: fc.constantFrom("10", "11"), left: fc.bigInt({ min: 0n, max: 50n }) }),
      { maxLength: 30 },
    );
    const bounds = fc.record({
      month: fc.bigInt({ min: -5n, max: 400n }),
      project: fc.bigInt({ min: -5n, max: 200n }),
    });
    fc.assert(
      fc.property(charges, bounds, (all, { month, project }) => {
        const room = new Map([
          ["2026-10-01 1 ", month],
          ["2026-10-01 1 11", project],
        ]);
        let [taken, ofProject] = [0n, 0n];
        for (const { left, project: project_id } of all) {
          const line = creditLine(usage({ left, project_id }), WHOLE, room);
          const amount = line === undefined ? 0n : -parseSignedComputeMs(line.amount);
          // By the sums so far, where the code keeps what is left of them.
          const bound =
            project_id === "11" ? [month - taken, project - ofProject] : [month - taken];
          const [least = 0n] = [left, ...bound].sort((a, b) => Number(a > b) - Number(a < b));
          expect(amount).toBe(least > 0n ? least : 0n);
          taken += amount;
          if (project_id === "11") ofProject += amount;
        }
      }),
    );
  });
});

test("a line that takes another back is its opposite, and names it", () => {
  const line = creditLine(usage(), WHOLE, new Map());
  if (line === undefined) throw new Error("no line");
  const back = reversalLine(line, "12/3");
  expect(back).toEqual({ ...line, amount: "360000.000000", reverses: "12/3" });
  expect(ofAdjustment(line).amount + ofAdjustment(back).amount).toBe(0n);
});

test("a pack's minutes are whole, none is cut off, and what takes them back is worth as much", () => {
  const used = fc.bigInt({ min: 0n, max: 10n ** 16n });
  const factor = fc.record({
    n: fc.bigInt({ min: 1n, max: 99n }),
    d: fc.bigInt({ min: 1n, max: 99n }),
  });
  fc.assert(
    fc.property(used, factor, (amount, part) => {
      const minutes = wholeMinutes(amount, part);
      expect(minutes * MINUTE * part.d >= amount * part.n).toBe(true);
      expect((minutes - 1n) * MINUTE * part.d < amount * part.n).toBe(true);
    }),
  );
  const months = { expires_in: "2027-09-01", namespace_id: "1", purchased_in: "2026-10-01" };
  const given = ofPack({ ...months, minutes: "30" });
  const back = ofPack({ ...months, minutes: "0" }, 30n);
  expect(given.amount).toBe(30n * MINUTE);
  expect(back.amount).toBe(-given.amount);
});

test("versions of packs count the lines that give them, then those that take them back", () => {
  const numbers = [false, true].flatMap((reverses) => {
    return [0n, 1n, 2n].map((line) => packVersion(line, { lines: 3n, reverses }));
  });
  expect(numbers).toEqual(["1", "2", "3", "4", "5", "6"]);
});

test("entries hold all lines in their order, of one posting month each, and no more than fit", () => {
  const months = fc.array(fc.constantFrom("2026-08-01", "2026-09-01", "2026-10-01"), {
    minLength: 1,
    maxLength: 600,
  });
  const first = fc.bigInt({ min: 0n, max: 1_000n });
  fc.assert(
    fc.property(months, first, fc.constantFrom("2026-08-01", "2026-09-01"), (all, from, open) => {
      const lines = all.map((usage_month, i): AdjustmentLine => {
        const amount = formatSignedComputeMs(-BigInt(i + 1));
        const named = { entry: String(i), namespace_id: "1", project_id: "10", reverses: "" };
        return { amount, usage_month, ...named };
      });
      const posting = (month: string): string => (month < open ? open : month);
      const parts = [...adjustmentsOf(lines, from, posting)];
      expect(parts.flatMap((part) => part.lines)).toEqual(lines);
      let next = from;
      for (const { billing_month, first_line, lines: own } of parts) {
        expect(first_line).toBe(String(next));
        expect(own.length <= 128).toBe(true);
        expect(own.every(({ usage_month }) => posting(usage_month) === billing_month)).toBe(true);
        next += BigInt(own.length);
      }
    }),
    { numRuns: 200 },
  );
});

describe("terms", () => {
  const of = (form: CreditForm, selection: Partial<Selection> = {}) =>
    termsOf(form, { as_of: "1", ...selection });

  test("of a zero rate are all of it, and of a pack minutes or any share", () => {
    expect(of("zero_rate")).toEqual({ kind: "credit", share: WHOLE });
    expect(of("credit", { share: "0.25" })).toEqual({ kind: "credit", share: { n: 1n, d: 4n } });
    expect(of("goodwill_pack", { share: "2" })).toEqual({ kind: "pack", share: { n: 2n, d: 1n } });
    expect(of("goodwill_pack", { minutes: "60" })).toEqual({ kind: "minutes", minutes: 60n });
  });

  const refused: [CreditForm, Partial<Selection>][] = [
    ["zero_rate", { share: "1/2" }],
    ["zero_rate", { minutes: "5" }],
    ["credit", {}],
    ["credit", { share: "0" }],
    ["credit", { share: "1.01" }],
    ["credit", { share: "half" }],
    ["goodwill_pack", {}],
    ["goodwill_pack", { share: "2", minutes: "5" }],
  ];
  test.each(refused)("of %s are not %o", (form, selection) => {
    expect(() => of(form, selection)).toThrow(Problem);
  });
});
