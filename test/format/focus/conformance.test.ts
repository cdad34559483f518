import { parse } from "csv-parse/sync";
import { describe, expect, test } from "vitest";
import { importedCell, writeCsv } from "../../../src/format/csv.ts";
import { type FocusVersion, focusColumns } from "../../../src/format/focus/columns.ts";
import type { About } from "../../../src/format/focus/file.ts";
import type { Cells, Sheet } from "./checks.ts";
import { breaking, RULES } from "./rules.ts";
import { ABOUT, prices, sampleFile } from "./sample.ts";

/** As whoever gets the file reads it: an empty cell is nothing. */
async function readBack(about: About): Promise<Sheet> {
  const { file, rows } = sampleFile(about);
  const chunks: Uint8Array[] = [];
  for await (const chunk of writeCsv(file.columns, pages())) chunks.push(chunk);
  const [columns = [], ...lines] = parse(Buffer.concat(chunks)) as string[][];
  return {
    columns,
    rows: lines.map((line) => {
      const cells = line.map((cell) => (cell === "" ? null : importedCell(cell)));
      return Object.fromEntries(columns.map((column, at) => [column, cells[at] ?? null]));
    }),
  };

  async function* pages() {
    yield rows;
  }
}

const credits = { name: "GitLab Credits", unit_price: "0.01" };
const SHEETS = {
  "with prices": await readBack(ABOUT),
  "with prices in credits": await readBack({
    ...ABOUT,
    prices: prices({ pricing_currency: credits }),
  }),
  "that somebody else invoices": await readBack({
    ...ABOUT,
    prices: prices({ invoice_issuer: "Reseller" }),
  }),
  "of version 1.3": await readBack({ ...ABOUT, version: "1.3" }),
};

test.each([...RULES])("%s holds, for each kind of charge", (_, check) => {
  const broken = Object.entries(SHEETS).filter(([, sheet]) => breaking(check, sheet).length > 0);
  expect(broken.map(([name]) => name)).toEqual([]);
});

test("the files that rules are held to have each kind of charge", () => {
  const kinds = SHEETS["with prices"].rows.map((row) => {
    return [row["ChargeCategory"], row["ChargeClass"] ?? "", row["x_Portion"]].join(" ");
  });
  const portions = ["included", "pack", "overage", "absorbed", "not_billable", "discount"];
  expect(new Set(kinds)).toEqual(
    new Set([
      ...portions.map((portion) => `Usage  ${portion}`),
      ...["Usage Correction overage", "Credit  overage", "Adjustment  overage", "Credit  grant"],
      ...["Purchase  purchase", "Purchase Correction purchase"],
    ]),
  );
});

test("each column of the specification in a file with money has a rule that names it", () => {
  const named = new Set([...RULES.keys()].map((id) => id.split("-")[0]));
  const columns = focusColumns("1.2", true).filter(({ name }) => !name.startsWith("x_"));
  expect(columns.filter(({ name }) => !named.has(name))).toEqual([]);
});

test("columns are Pascal case, those of the specification first, and ours begin with x_", () => {
  for (const [version, withMoney] of [
    ["1.2", true],
    ["1.3", true],
    ["1.2", false],
  ] as const satisfies [FocusVersion, boolean][]) {
    const names = focusColumns(version, withMoney).map(({ name }) => name);
    const own = names.findIndex((name) => name.startsWith("x_"));
    expect(names.slice(0, own).filter((name) => !/^[A-Z][A-Za-z]+$/.test(name))).toEqual([]);
    expect(names.slice(own).filter((name) => !/^x_[A-Z][A-Za-z]+$/.test(name))).toEqual([]);
    expect(new Set(names).size).toBe(names.length);
  }
});

test("version 1.3 adds who serves and whose machines they are, and takes nothing away", () => {
  const [before, after] = (["1.2", "1.3"] as const).map((version) =>
    focusColumns(version, true).map(({ name }) => name),
  );
  const added = ["HostProviderName", "ServiceProviderName"];
  expect(after?.filter((name) => !added.includes(name))).toEqual(before);
  expect(after).toEqual(expect.arrayContaining(added));
});

describe("a rule finds", () => {
  const faults: readonly (readonly [string, Cells])[] = [
    ["ListCost-C-009-C", { ListCost: "0.0000000000000001" }],
    ["ContractedUnitPrice-C-011-C", { ContractedCost: "1.0000000000000000" }],
    ["PricingQuantity-C-002-M", { PricingQuantity: "+1.000000" }],
    ["PricingQuantity-C-005-C", { PricingQuantity: null }],
    ["BilledCost-C-002-M", { BilledCost: "1,000.00" }],
    ["BilledCost-C-005-C", { InvoiceIssuerName: "Reseller" }],
    ["BillingCurrency-C-006-M", { BillingCurrency: "GitLab Credits" }],
    ["BillingAccountId-C-001-M", { BillingAccountId: null }],
    ["ChargeCategory-C-003-M", { ChargeCategory: "usage" }],
    ["ChargeClass-C-005-C", { ChargeClass: "Late" }],
    ["ChargeFrequency-C-003-M", { ChargeFrequency: "Once" }],
    ["ChargePeriodStart-C-002-M", { ChargePeriodStart: "2026-11-01T00:00:00.000Z" }],
    ["CommitmentDiscountStatus-C-005-M", { CommitmentDiscountStatus: "Used" }],
    ["ConsumedQuantity-C-006-C", { ConsumedQuantity: null }],
    ["ConsumedUnit-C-006-C", { ConsumedUnit: null }],
    ["EffectiveCost-C-005-C", { ChargeCategory: "Purchase", EffectiveCost: "8.0" }],
    ["InvoiceId-C-004-C", { InvoiceId: "I-1" }],
    ["PricingQuantity-C-008-M", { PricingQuantity: null }],
    ["PricingUnit-C-003-O", { PricingUnit: "minute" }],
    ["ServiceName-C-005-C", { ServiceCategory: "Compute" }],
    ["SkuPriceDetails-C-001-M", { SkuPriceDetails: '{"x_Portion":{}}' }],
    ["SkuPriceId-C-008-M", { SkuId: "runner/other" }],
    ["SubAccountName-C-005-C", { SubAccountName: null }],
  ];
  test.each(faults)("what breaks %s", (id, cells) => {
    const sheet = SHEETS["with prices"];
    const at = sheet.rows.findIndex(
      (row) => row["x_Portion"] === "overage" && row["SkuId"] !== null,
    );
    const rows = sheet.rows.map((row, i) => (i === at ? { ...row, ...cells } : row));
    const check = RULES.get(id);
    expect(check && breaking(check, { ...sheet, rows })).toContainEqual(rows[at]);
  });
});

test("without a price list no column is about money, and the first of ours says what the file is not", async () => {
  const { columns, rows } = await readBack({ ...ABOUT, prices: undefined });
  expect(
    columns.filter((name) => /Cost|Price|Currency|Pricing(?!Quantity|Unit)/.test(name)),
  ).toEqual([]);
  expect(columns.find((name) => name.startsWith("x_"))).toBe("x_NotConformant");
  expect(new Set(rows.map((row) => row["x_NotConformant"]))).toEqual(
    new Set(["no price list: quantities without cost"]),
  );
  const quantities = (sheet: Sheet) => sheet.rows.map((row) => row["PricingQuantity"]);
  expect(quantities({ columns, rows })).toEqual(quantities(SHEETS["with prices"]));
});
