/** FOCUS files of a log as an honest service makes them, and as one that is not does. */
import type { Manifest, Parameters } from "../../../src/core/export/manifest.ts";
import type { Format, Row } from "../../../src/core/export/tables.ts";
import { Totals } from "../../../src/core/export/totals.ts";
import { Prices } from "../../../src/core/price.ts";
import { type Charge, chargesOf, saleOf } from "../../../src/format/focus/charge.ts";
import type { FocusVersion } from "../../../src/format/focus/columns.ts";
import { FocusFile } from "../../../src/format/focus/file.ts";
import { PackDeal } from "../../../src/format/focus/packs.ts";
import { lineOf, partsOf } from "../../../src/format/focus/portions.ts";
import type { TestLog } from "../log.ts";
import { CLOSED, type Exported, honestRows, signed, WRITE } from "./case.ts";

/** Prices that differ by account, by machine type and by day. */
export const LIST = {
  ...{ currency: "EUR", provider: "GitLab", host_provider: "Example Cloud", v: "1" },
  accounts: { "A-1": { name: "Acme, Inc." } },
  contracted: [
    { effective_from: "2026-01-01", sku: "runner/*", unit_price: "0.0071" },
    { account_id: "A-1", effective_from: "2026-11-04", sku: "runner/*", unit_price: "0.0069" },
    { account_id: "A-1", effective_from: "2026-01-01", sku: "pack", unit_price: "0.004" },
  ],
  list: [
    { effective_from: "2026-11-04", sku: "runner/*", unit_price: "0.0123456789" },
    { effective_from: "2026-01-01", sku: "runner/*", unit_price: "0.01" },
    { effective_from: "2026-01-01", sku: "runner/'quoted", unit_price: "3" },
    { effective_from: "2026-01-01", sku: "pack", unit_price: "0.0050000001" },
  ],
};
export const PRICES = JSON.stringify(LIST);
/** Thought of in credits, and invoiced by another. */
export const RESOLD = JSON.stringify({
  ...{ ...LIST, invoice_issuer: "Reseller" },
  pricing_currency: { name: "GitLab Credits", unit_price: "0.01" },
});

/** From the honest files of the same month. */
function charges(log: TestLog, month: string): Charge[] {
  const packs = honestRows(log, log.size, "pack_rollforward", month).map(
    ([namespace, index, ...rest]) => {
      const [, purchased_in, , , bought, drawn, , refunded] = rest;
      const digits = (text: string | null | undefined): bigint =>
        BigInt(text?.replace(".", "") ?? "");
      const pack = {
        index: BigInt(index ?? ""),
        purchased_in: purchased_in ?? "",
        isGranted: false,
      };
      return {
        namespace: namespace ?? "",
        pack,
        drawn: digits(drawn),
        sold: digits(bought) - digits(refunded),
      };
    },
  );
  const deals = new Map(
    packs.map(({ drawn, namespace, pack }) => [namespace, new PackDeal([{ pack, drawn }])]),
  );
  const lines = honestRows(log, log.size, "portal", month).map(lineOf);
  const used = lines.flatMap((line) => {
    return chargesOf(line, partsOf(line, deals.get(line.namespace_id) ?? new PackDeal([])), month);
  });
  const sales = packs.flatMap(({ namespace, pack, sold }) => {
    const payer = lines.find((line) => line.namespace_id === namespace);
    const { account_id = null, subscription_id = null } = payer ?? {};
    const sale = { account_id, subscription_id, namespace_id: namespace, pack, amount: sold };
    return sold === 0n ? [] : [saleOf(sale, month)];
  });
  return [...used, ...sales];
}

export type Change = (rows: Row[], place: (column: string) => number) => Row[];
export interface Asked {
  month?: string;
  /** That the file is made with. */
  prices?: string | undefined;
  format?: Format;
  version?: FocusVersion;
  change?: Change;
  /** That the manifest says, whatever the file is. */
  said?: Partial<Manifest>;
}

export async function made(log: TestLog, asked: Asked): Promise<Exported & { rows: Row[] }> {
  const { change, format = "csv", month = CLOSED, said, version = "1.2" } = asked;
  const prices = asked.prices === undefined ? undefined : new Prices(asked.prices);
  const focus = new FocusFile({ version, prices, month, instance: "instance" });
  const { columns } = focus;
  const place = (name: string): number => columns.findIndex((column) => column.name === name);
  const honest = focus.rows(charges(log, month), { namespaces: new Map(), projects: new Map() });
  const rows = change === undefined ? honest : change(honest, place);
  const pages = async function* () {
    yield rows;
  };
  const chunks: Uint8Array[] = [];
  for await (const chunk of WRITE[format](columns, pages())) chunks.push(chunk);
  const totals = new Totals(columns);
  totals.add(rows);
  const parameters: Parameters = {
    ...{ month, focus_version: version },
    ...(prices && { prices_sha256: prices.sha256 }),
  };
  const exported = signed(log, Buffer.concat(chunks), {
    ...{ as_of: String(log.size), columns: columns.map(({ name }) => name), format, parameters },
    ...{ name: "focus", rows: String(rows.length), totals: totals.figures.totals },
    ...{ range: { from: "0", to: String(log.size) }, ...said },
  });
  return { ...exported, rows };
}
