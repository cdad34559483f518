/** Lines of the portal's file of November 2026, and a price list: each kind of charge that there is. */

import type { Row } from "../../../src/core/export/tables.ts";
import { TABLES } from "../../../src/core/export/tables.ts";
import { Prices } from "../../../src/core/price.ts";
import type { Sale } from "../../../src/format/focus/charge.ts";
import { chargesOf, saleOf } from "../../../src/format/focus/charge.ts";
import { type About, FocusFile, type Names } from "../../../src/format/focus/file.ts";
import { type Draw, PackDeal } from "../../../src/format/focus/packs.ts";
import { lineOf, partsOf } from "../../../src/format/focus/portions.ts";

export const MONTH = "2026-11-01";
const BEFORE = "2026-10-01";

export const PRICE_LIST = {
  v: "1",
  currency: "USD",
  provider: "GitLab",
  host_provider: "Example Cloud",
  accounts: { "A-1": { name: "Acme, Inc." }, "A-2": { name: "Bolt" } },
  list: [
    { sku: "runner/*", effective_from: "2026-01-01", unit_price: "0.01" },
    { sku: "runner/macos-m1", effective_from: "2026-01-01", unit_price: "0.0125" },
    { sku: "pack", effective_from: "2026-01-01", unit_price: "0.01" },
  ],
  contracted: [
    { sku: "runner/*", effective_from: "2026-01-01", account_id: "A-1", unit_price: "0.0087654" },
    { sku: "pack", effective_from: "2026-01-01", account_id: "A-1", unit_price: "0.008" },
  ],
};

export function prices(change: Record<string, unknown> = {}): Prices {
  return new Prices(JSON.stringify({ ...PRICE_LIST, ...change }));
}

export const BOUGHT = { index: 40n, purchased_in: MONTH, isGranted: false };
export const GRANTED = { index: 41n, purchased_in: MONTH, isGranted: true };
const FORMER = { index: 12n, purchased_in: BEFORE, isGranted: false };

export const NO_NAMES: Names = { namespaces: new Map(), projects: new Map() };
export const NAMES: Names = {
  namespaces: new Map([["7", "acme"]]),
  projects: new Map([["70", "acme/web"]]),
};

type Cells = Readonly<Record<string, string | null>>;

const NOTHING: Cells = Object.fromEntries(
  TABLES.portal.map(({ name, summed, type }) => {
    if (!summed) return [name, null];
    return [name, type === "integer" ? "0" : "0.000000"];
  }),
);

/** A row of the portal's file; amounts that are not said are nothing. */
export function portalRow(cells: Cells): Row {
  const all: Cells = { ...NOTHING, ...cells };
  return TABLES.portal.map(({ name }) => all[name] ?? null);
}

const HOSTED = {
  ...{ account_id: "A-1", subscription_id: "S-1", namespace_id: "7", project_id: "70" },
  ...{ machine_type: "linux-small", tracking: "hosted", usage_month: MONTH, day: "2026-11-03" },
};
const ADJUSTED = { ...HOSTED, project_id: "0", machine_type: null, day: null };
const OWN = { ...HOSTED, machine_type: "own", tracking: "self_managed" };

/** In the order of the file. */
export const LINES: readonly Row[] = [
  // What came late for October, and what was given back of it.
  portalRow({
    ...{ ...ADJUSTED, usage_month: BEFORE, adjustment_compute_ms: "-90000.000001" },
    ...{ net_compute_ms: "-90000.000001", billable_compute_ms: "-90000.000001" },
    overage_compute_ms: "-90000.000001",
  }),
  portalRow({
    ...{ ...HOSTED, usage_month: BEFORE, day: "2026-10-31", jobs: "1", duration_ms: "1234" },
    ...{ gross_compute_ms: "1234.000000", overage_compute_ms: "1234.000000" },
  }),
  // Included, packs and overage in one line, and a part that a class of projects discounts.
  portalRow({
    ...{ ...HOSTED, jobs: "9", duration_ms: "700000", gross_compute_ms: "700000.333333" },
    ...{ discount_compute_ms: "100000.000001", included_compute_ms: "200000.333331" },
    ...{ pack_compute_ms: "250000.000001", overage_compute_ms: "150000.000000" },
  }),
  portalRow({
    ...{ ...HOSTED, day: "2026-11-04", machine_type: "macos-m1", jobs: "1", duration_ms: "90000" },
    ...{ gross_compute_ms: "540000.000000", absorbed_compute_ms: "540000.000000" },
  }),
  // A system failure: nothing of it is charged.
  portalRow({
    ...{ ...HOSTED, day: "2026-11-05", jobs: "1", duration_ms: "60000" },
    ...{ gross_compute_ms: "60000.000000", discount_compute_ms: "60000.000000" },
  }),
  // A machine that costs nothing.
  portalRow({
    ...HOSTED,
    day: "2026-11-05",
    machine_type: "trial",
    jobs: "2",
    duration_ms: "5000",
  }),
  portalRow({
    ...{ ...OWN, day: "2026-11-05", jobs: "4", duration_ms: "80000" },
    ...{ gross_compute_ms: "80000.000000", not_billable_compute_ms: "80000.000000" },
  }),
  // A credit of the month itself, and a charge.
  portalRow({
    ...{ ...ADJUSTED, adjustment_compute_ms: "-60000.000000" },
    overage_compute_ms: "-60000.000000",
  }),
  portalRow({
    ...{ ...ADJUSTED, account_id: "A-2", subscription_id: null, namespace_id: "8" },
    ...{ adjustment_compute_ms: "45000.000000", overage_compute_ms: "45000.000000" },
  }),
];

export const DRAWS: readonly Draw[] = [
  { pack: FORMER, drawn: 100_000_000_000n },
  { pack: BOUGHT, drawn: 150_000_000_001n },
];

const OWNER = { account_id: "A-1", subscription_id: "S-1", namespace_id: "7" };

export const SALES: readonly Sale[] = [
  { ...OWNER, pack: FORMER, amount: -600_000_000_000n },
  { ...OWNER, pack: BOUGHT, amount: 60_000_000_000_000n },
  { ...OWNER, pack: GRANTED, amount: 3_000_000_000_000n },
];

export const ABOUT: About = {
  version: "1.2",
  prices: prices(),
  month: MONTH,
  instance: "6dff8a46",
};

/** The rows of a file of all of the above. */
export function sampleFile(about: About = ABOUT): { file: FocusFile; rows: Row[] } {
  const file = new FocusFile(about);
  const rows = LINES.flatMap((row) => {
    const line = lineOf(row);
    const parts = partsOf(line, new PackDeal(DRAWS));
    return file.rows(chargesOf(line, parts, MONTH), NAMES);
  });
  const sales = SALES.map((sale) => saleOf(sale, MONTH));
  return { file, rows: [...rows, ...file.rows(sales, NAMES)] };
}
