/**
 * A FOCUS file, held to the log: what each line's minutes were charged for and which packs paid, to the last
 * digit; and each row to itself. What a minute costs is on no log, and is not looked at.
 */
import type { Manifest } from "../../../src/core/export/manifest.ts";
import type { Column, Row } from "../../../src/core/export/tables.ts";
import { CannotLook, type Findings } from "../../finding.ts";
import type { OpenPiles } from "../../tally/piles.ts";
import { writeMicro } from "../../tally/record.ts";
import type { Book } from "../book.ts";
import type { ExportFile } from "../export-file.ts";
import { Unreadable } from "../unreadable.ts";
import { type CellOf, chargedIn, chargedInPortal, chargedInShare } from "./charges.ts";
import { decimal, faultsIn } from "./row.ts";
import { FocusSums } from "./sums.ts";

/** All that is looked at. */
const ALWAYS = [
  ...["BillingAccountId", "ChargePeriodEnd", "ChargePeriodStart", "PricingQuantity", "SkuId"],
  ...["x_ComputeMs", "x_NamespaceId", "x_Pack", "x_Portion", "x_ProjectId", "x_SubscriptionId"],
  ...["x_Tracking", "x_UsageMonth"],
];
const WITH_MONEY = ["ContractedCost", "ContractedUnitPrice", "ListCost", "ListUnitPrice"];
const AMOUNT = /^-?(?:0|[1-9][0-9]{0,30})\.[0-9]{6}$/;

interface Checking {
  file: ExportFile;
  manifest: Manifest;
  openPiles: OpenPiles;
}

/** @returns columns of the file that were not looked at */
export async function checkFocus(
  book: Book,
  checking: Checking,
  findings: Findings,
): Promise<string[]> {
  const { file, manifest, openPiles } = checking;
  const { columns, format, parameters } = manifest;
  if (format === "parquet") throw new CannotLook("FOCUS is checked as CSV and as NDJSON");
  const withMoney = parameters.prices_sha256 !== undefined;
  const needed = withMoney ? [...ALWAYS, ...WITH_MONEY] : ALWAYS;
  const missing = needed.filter((name) => !columns.includes(name));
  if (missing.length > 0) {
    findings.add("export-manifest", {}, `it has no ${missing.join(", ")}`);
    return columns.filter((name) => !needed.includes(name));
  }
  const sums = new FocusSums(openPiles);
  await sumFile(checking, { sums, withMoney }, findings);
  const month = parameters.month ?? "";
  const rows = book.rows("portal", month, (namespace, share, terms) => {
    for (const { amount, of } of chargedInShare(namespace, share, terms)) sums.given(of, amount);
  });
  for (const row of rows) {
    for (const { amount, of } of chargedInPortal(row, withMoney)) sums.given(of, amount);
  }
  for (const { file: said, log, row } of sums.unequal()) {
    const what = row === undefined ? "no row has what the log gives" : `row ${row} and its like`;
    const detail = `${what}: ${writeMicro(said)} compute-ms, not ${writeMicro(log)}`;
    findings.add("export-row", { path: file.name }, detail);
  }
  return columns.filter((name) => !needed.includes(name));
}

interface Summing {
  sums: FocusSums;
  withMoney: boolean;
}

async function sumFile(
  { file, manifest }: Checking,
  { sums, withMoney }: Summing,
  findings: Findings,
): Promise<void> {
  const { columns, format } = manifest;
  const texts = columns.map((name): Column => ({ name, type: "text", nullable: true }));
  const totals = new Map(Object.keys(manifest.totals).map((name) => [name, 0n]));
  const cellsIn = cellsOf(columns);
  let number = 0n;
  try {
    for await (const row of file.rows(format, texts)) {
      number += 1n;
      const cell = cellsIn(row);
      for (const [name, sum] of totals) totals.set(name, sum + (decimal(cell(name))?.digits ?? 0n));
      const isAmount = AMOUNT.test(cell("x_ComputeMs"));
      const faults = isAmount ? faultsIn(cell, withMoney) : [`x_ComputeMs ${cell("x_ComputeMs")}`];
      for (const fault of faults)
        findings.add("export-row", { path: file.name }, `row ${number}: ${fault}`);
      if (!isAmount) continue;
      for (const { amount, of } of chargedIn(cell)) sums.said(of, number, amount);
    }
  } catch (error) {
    if (!(error instanceof Unreadable)) throw error;
    findings.add("export-file", { path: file.name }, error.message);
  }
  compareTotals(manifest, { rows: number, totals }, findings);
}

function compareTotals(
  manifest: Manifest,
  { rows, totals }: { rows: bigint; totals: ReadonlyMap<string, bigint> },
  findings: Findings,
): void {
  if (manifest.rows !== String(rows)) {
    findings.add("export-totals", {}, `${manifest.rows} rows, and there are ${rows}`);
  }
  for (const [name, sum] of totals) {
    const said = manifest.totals[name] ?? "";
    if (decimal(said)?.digits === sum) continue;
    findings.add("export-totals", {}, `${name} ${said}, and its rows have another sum`);
  }
}

function cellsOf(columns: readonly string[]): (row: Row) => CellOf {
  const places = new Map(columns.map((name, at) => [name, at]));
  return (row) => (name) => row[places.get(name) ?? -1] ?? "";
}
