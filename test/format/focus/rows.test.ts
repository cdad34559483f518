import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { parseSignedComputeMs } from "../../../src/core/charge.ts";
import type { Row } from "../../../src/core/export/tables.ts";
import { unscaled } from "../../../src/core/export/totals.ts";
import { chargesOf, saleOf } from "../../../src/format/focus/charge.ts";
import { FocusFile } from "../../../src/format/focus/file.ts";
import { PackDeal } from "../../../src/format/focus/packs.ts";
import { lineOf, PORTIONS, partsOf } from "../../../src/format/focus/portions.ts";
import { Quantities } from "../../../src/format/focus/quantities.ts";
import {
  ABOUT,
  BOUGHT,
  GRANTED,
  LINES,
  MONTH,
  NO_NAMES,
  portalRow,
  prices,
  sampleFile,
} from "./sample.ts";

type Named = Readonly<Record<string, string | null>>;

function namedBy({ columns }: FocusFile, rows: readonly Row[]): Named[] {
  return rows.map((row) =>
    Object.fromEntries(columns.map(({ name }, at) => [name, row[at] ?? null])),
  );
}

/** Units of 10⁻⁶. */
const amount = fc.bigInt({ min: 0n, max: 10n ** 15n });
const signed = fc.bigInt({ min: -(10n ** 15n), max: 10n ** 15n });

function decimal(units: bigint): string {
  const digits = String(units < 0n ? -units : units).padStart(7, "0");
  return `${units < 0n ? "-" : ""}${digits.slice(0, -6)}.${digits.slice(-6)}`;
}

/** Of two accounts, of one namespace each. */
const portalLine = fc
  .record({
    ...{ account: fc.constantFrom("A-1", "A-2"), jobs: fc.integer({ min: 0, max: 9 }) },
    ...{
      duration: fc.bigInt({ min: 0n, max: 10n ** 12n }),
      machine: fc.constantFrom("linux", "macos-m1"),
    },
    ...{ included: signed, pack: amount, overage: signed, absorbed: signed },
    ...{ not_billable: amount, discount: amount, day: fc.integer({ min: 10, max: 30 }) },
  })
  .map(({ account, day, duration, jobs, machine, ...amounts }) =>
    portalRow({
      ...{ account_id: account, subscription_id: "S", namespace_id: account.slice(2) },
      ...{ project_id: "5", machine_type: machine, tracking: "hosted", usage_month: MONTH },
      ...{ day: `2026-11-${day}`, jobs: String(jobs), duration_ms: String(duration) },
      ...Object.fromEntries(
        Object.entries(amounts).map(([name, units]) => [`${name}_compute_ms`, decimal(units)]),
      ),
    }),
  );
const lines = fc
  .array(portalLine, { minLength: 1, maxLength: 8 })
  .map((rows) => [...rows].sort((a, b) => ((a[0] ?? "") < (b[0] ?? "") ? -1 : 1)));

function told(rows: readonly Row[], about = ABOUT): Named[] {
  const file = new FocusFile(about);
  const charges = rows.map(lineOf).flatMap((line) => {
    const draws = [{ pack: BOUGHT, drawn: 10n ** 16n }];
    return chargesOf(line, partsOf(line, new PackDeal(draws)), MONTH);
  });
  return namedBy(file, file.rows(charges, NO_NAMES));
}

describe("of any lines of the portal", () => {
  test("the parts of a line are its amounts, and their durations the line's", () => {
    fc.assert(
      fc.property(portalLine, (row) => {
        const line = lineOf(row);
        const rows = told([row]);
        for (const portion of PORTIONS) {
          const parts = rows.filter((each) => each["x_Portion"] === portion);
          const sum = parts.reduce(
            (all, each) => all + parseSignedComputeMs(each["x_ComputeMs"] ?? ""),
            0n,
          );
          expect(sum).toBe(line.amounts[portion]);
        }
        const seconds = rows.reduce(
          (all, each) => all + unscaled(each["ConsumedQuantity"] ?? "0"),
          0n,
        );
        if (rows.length > 0 && line.jobs > 0n) expect(seconds).toBe(line.duration_ms);
        expect(rows.every((each) => !(each["ConsumedQuantity"] ?? "").startsWith("-"))).toBe(true);
      }),
    );
  });

  test("quantities of an account and portion add up to its minutes, rounded once", () => {
    fc.assert(
      fc.property(lines, (rows) => {
        const shown = told(rows);
        for (const account of ["A-1", "A-2"]) {
          for (const portion of PORTIONS) {
            const of = shown.filter(
              (each) => each["BillingAccountId"] === account && each["x_Portion"] === portion,
            );
            const exact = of.reduce(
              (all, each) => all + parseSignedComputeMs(each["x_ComputeMs"] ?? ""),
              0n,
            );
            const sum = of.reduce((all, each) => all + unscaled(each["PricingQuantity"] ?? ""), 0n);
            // A millionth of a minute is 60,000 units: the sum is the nearest.
            const off = sum * 60_000n - exact;
            expect(off >= -30_000n && off <= 30_000n).toBe(true);
          }
        }
      }),
    );
  });

  test("each cost is the quantity times its unit price, to the last digit, and overage alone is billed", () => {
    fc.assert(
      fc.property(lines, (rows) => {
        for (const row of told(rows)) {
          const digits = (name: string) => unscaled(row[name] ?? "");
          const quantity = digits("PricingQuantity");
          expect(digits("ListCost")).toBe(quantity * digits("ListUnitPrice"));
          expect(digits("ContractedCost")).toBe(quantity * digits("ContractedUnitPrice"));
          expect(digits("EffectiveCost")).toBe(digits("ContractedCost"));
          const isOverage = row["x_Portion"] === "overage";
          expect(digits("BilledCost")).toBe(isOverage ? digits("ContractedCost") : 0n);
        }
      }),
    );
  });
});

test("quantities of packs, whose accounts come in no order, add up to an account's minutes, rounded once", () => {
  const sales = fc.array(fc.record({ account_id: fc.constantFrom("A-1", "A-2"), amount: signed }));
  fc.assert(
    fc.property(sales, (each) => {
      const file = new FocusFile(ABOUT);
      const whose = { subscription_id: "S-1", namespace_id: "7", pack: BOUGHT };
      const charges = each.map((sale) => saleOf({ ...whose, ...sale }, MONTH));
      const shown = namedBy(file, file.rows(charges, NO_NAMES));
      for (const account of ["A-1", "A-2"]) {
        const of = shown.filter((row) => row["BillingAccountId"] === account);
        const exact = sum(of.map((row) => parseSignedComputeMs(row["x_ComputeMs"] ?? "")));
        const off = sum(of.map((row) => unscaled(row["PricingQuantity"] ?? ""))) * 60_000n - exact;
        expect(off >= -30_000n && off <= 30_000n).toBe(true);
      }
    }),
  );
});

test("rounding a running sum is off by less than a digit in each row, and never in the sum", () => {
  fc.assert(
    fc.property(fc.array(signed, { maxLength: 30 }), (amounts) => {
      const quantities = new Quantities();
      const shown = amounts.map((each) => quantities.next("", each));
      for (const [at, each] of shown.entries()) {
        const off = each * 60_000n - (amounts[at] ?? 0n);
        expect(off >= -60_000n && off <= 60_000n).toBe(true);
      }
      const off = sum(shown) * 60_000n - sum(amounts);
      expect(off >= -30_000n && off <= 30_000n).toBe(true);
    }),
  );
});

test("packs are dealt in the order in which they were drawn, whatever the lines between", () => {
  fc.assert(
    fc.property(
      fc.array(amount, { minLength: 1, maxLength: 6 }),
      fc.array(signed),
      (drawn, steps) => {
        const packs = drawn.map((each, at) => ({
          pack: { index: BigInt(at), purchased_in: MONTH, isGranted: false },
          drawn: each,
        }));
        const deal = new PackDeal(packs);
        const rest = sum(drawn) - sum(steps);
        const dealt = [...steps, rest].flatMap((step) => {
          const shares = deal.deal(step);
          expect(sum(shares.map((share) => share.drawn))).toBe(step);
          return shares;
        });
        for (const { pack, drawn } of packs) {
          const shares = dealt.filter((share) => share.pack.index === pack.index);
          expect(sum(shares.map((share) => share.drawn))).toBe(drawn);
        }
      },
    ),
  );
});

test("what a granted pack pays for costs nothing, and what a bought one does costs what it was bought for", () => {
  const { file, rows } = sampleFile();
  const shown = namedBy(file, rows);
  const paid = shown.filter((row) => row["x_Portion"] === "pack");
  expect(paid.map((row) => row["ContractedUnitPrice"])).toEqual(["0.0080000000", "0.0080000000"]);
  const line = lineOf(LINES[2] ?? []);
  const [pack] = partsOf(line, new PackDeal([{ pack: GRANTED, drawn: 10n ** 16n }])).filter(
    ({ portion }) => portion === "pack",
  );
  const charges = chargesOf(line, pack === undefined ? [] : [pack], MONTH);
  const granted = new FocusFile(ABOUT);
  const [row] = namedBy(granted, granted.rows(charges, NO_NAMES));
  expect(row).toMatchObject({ EffectiveCost: "0.0000000000000000", x_Pack: "41" });
});

test("a charge without an account is refused, and what nobody owes is no charge; quantities are told of both", () => {
  const nobody = { account_id: null, namespace_id: "9", project_id: "90", day: "2026-11-03" };
  const own = { ...nobody, machine_type: "own", tracking: "self_managed", usage_month: MONTH };
  const unpaid = portalRow({ ...own, jobs: "1", not_billable_compute_ms: "60000.000000" });
  const owed = portalRow({ ...own, tracking: "hosted", jobs: "1", overage_compute_ms: "1.000000" });
  expect(told([unpaid])).toEqual([]);
  expect(() => told([owed])).toThrow("no-account");
  const quantities = { ...ABOUT, prices: undefined };
  expect(told([unpaid, owed], quantities)).toMatchObject([
    { BillingAccountId: null, PricingQuantity: "1.000000" },
    { BillingAccountId: null, PricingQuantity: "0.000017" },
  ]);
});

test("in credits a minute is as many everywhere, and free where it is free in money", () => {
  const inCredits = prices({ pricing_currency: { name: "GitLab Credits", unit_price: "0.01" } });
  const { file, rows } = sampleFile({ ...ABOUT, prices: inCredits });
  for (const row of namedBy(file, rows)) {
    expect(row["PricingCurrency"]).toBe("GitLab Credits");
    const free = row["ContractedUnitPrice"] === "0.0000000000";
    expect(row["PricingCurrencyContractedUnitPrice"]).toBe(free ? "0.0000000000" : "0.0100000000");
  }
});

function sum(amounts: readonly bigint[]): bigint {
  return amounts.reduce((all, each) => all + each, 0n);
}
