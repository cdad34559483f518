import fc from "fast-check";
import { expect, test } from "vitest";
import { type Column, ORDER, TABLES } from "../../../src/core/export/tables.ts";
import { Totals } from "../../../src/core/export/totals.ts";

const COLUMNS: readonly Column[] = [
  { name: "id", type: "integer" },
  { name: "jobs", type: "integer", summed: true },
  { name: "amount", type: "decimal", nullable: true, summed: true },
  { name: "credits", type: "decimal", places: 10, summed: true },
];

/** A number of millionths, or what `places` says, written by string alone. */
function written(value: bigint, places: number): string {
  const sign = value < 0n ? "-" : "";
  const digits = String(value).replace("-", "");
  const whole = digits.length > places ? digits.slice(0, -places) : "0";
  return `${sign}${whole}.${digits.slice(-places).padStart(places, "0")}`;
}

const figure = fc.bigInt({ min: -(10n ** 30n), max: 10n ** 30n });
const row = fc.record({ jobs: figure, amount: fc.option(figure), credits: figure });

test("control totals are exact sums of what the cells say, whatever the pages are", () => {
  fc.assert(
    fc.property(fc.array(fc.array(row)), (pages) => {
      const totals = new Totals(COLUMNS);
      for (const page of pages) {
        totals.add(
          page.map(({ jobs, amount, credits }) => [
            ...["7", String(jobs), amount === null ? null : written(amount, 6)],
            written(credits, 10),
          ]),
        );
      }
      const rows = pages.flat();
      const sum = (name: "jobs" | "amount" | "credits") =>
        rows.reduce((total, each) => total + (each[name] ?? 0n), 0n);
      expect(totals.figures).toEqual({
        rows: BigInt(rows.length),
        totals: {
          jobs: String(sum("jobs")),
          amount: written(sum("amount"), 6),
          credits: written(sum("credits"), 10),
        },
      });
    }),
  );
});

test("every table is ordered by columns that it has", () => {
  for (const [name, order] of Object.entries(ORDER)) {
    const columns = TABLES[name as keyof typeof TABLES].map((column) => column.name);
    expect(columns).toEqual(expect.arrayContaining([...order]));
  }
});
