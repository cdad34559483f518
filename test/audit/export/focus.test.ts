/** A FOCUS file says of each line of the portal what the log says, and each of its rows adds up. */
import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { afterAll, beforeAll, expect, test } from "vitest";
import type { Parameters } from "../../../src/core/export/manifest.ts";
import type { Format, Row } from "../../../src/core/export/tables.ts";
import { Totals } from "../../../src/core/export/totals.ts";
import { Prices } from "../../../src/core/price.ts";
import { type Charge, chargesOf, saleOf } from "../../../src/format/focus/charge.ts";
import { FocusFile } from "../../../src/format/focus/file.ts";
import { PackDeal } from "../../../src/format/focus/packs.ts";
import { lineOf, partsOf } from "../../../src/format/focus/portions.ts";
import { filesOf, vkeyText } from "../archive.ts";
import { command, type Ended, openHome, store } from "../command.ts";
import type { TestLog } from "../log.ts";
import { CLOSED, honestRows, OPEN, richLog, signed, WRITE } from "./case.ts";

const home = openHome();
afterAll(() => home.remove());
const archive = join(home.folder, "archive");
let log: TestLog;

beforeAll(() => {
  log = richLog();
  store(archive, filesOf(log));
});

const PRICES = new Prices(
  JSON.stringify({
    ...{ currency: "EUR", provider: "GitLab", v: "1" },
    contracted: [{ effective_from: "2026-01-01", sku: "runner/*", unit_price: "0.0071" }],
    list: [
      { effective_from: "2026-01-01", sku: "runner/*", unit_price: "0.01" },
      { effective_from: "2026-01-01", sku: "pack", unit_price: "0.0000000001" },
    ],
  }),
);

/** From the honest files of the same month. */
function charges(month: string): Charge[] {
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

interface Asked {
  month?: string;
  prices?: Prices;
  format?: Format;
  change?: (row: Row, at: number, place: (column: string) => number) => Row | undefined;
}

let written = 0;

async function check({ change, format = "csv", month = CLOSED, prices }: Asked): Promise<Ended> {
  const focus = new FocusFile({ version: "1.2", prices, month, instance: "instance" });
  const { columns } = focus;
  const place = (name: string): number => columns.findIndex((column) => column.name === name);
  const honest = focus.rows(charges(month), { namespaces: new Map(), projects: new Map() });
  const rows = honest.flatMap((row, at) => {
    const changed = change === undefined ? row : change(row, at, place);
    return changed === undefined ? [] : [changed];
  });
  const pages = async function* () {
    yield rows;
  };
  const chunks: Uint8Array[] = [];
  for await (const chunk of WRITE[format](columns, pages())) chunks.push(chunk);
  const totals = new Totals(columns);
  totals.add(rows);
  const parameters: Parameters = {
    ...{ month, focus_version: "1.2" },
    ...(prices && { prices_sha256: prices.sha256 }),
  };
  const { file, json, note } = signed(log, Buffer.concat(chunks), {
    ...{ as_of: String(log.size), columns: columns.map(({ name }) => name), format, parameters },
    ...{ name: "focus", rows: String(rows.length), totals: totals.figures.totals },
    range: { from: "0", to: String(log.size) },
  });
  written += 1;
  const at = (name: string): string => join(home.folder, `${written}.${name}`);
  writeFileSync(at("file"), file);
  writeFileSync(at("json"), json);
  writeFileSync(at("note"), note);
  const given = ["--manifest", at("json"), "--note", at("note"), "--vkey", vkeyText()];
  return await command("check-export", at("file"), archive, ...given);
}

test.each([
  ["quantities of a closed month", {}],
  ["quantities of a month that is open, as NDJSON", { month: OPEN, format: "ndjson" }],
  ["a closed month's money", { prices: PRICES }],
  ["an open month's money, as NDJSON", { month: OPEN, prices: PRICES, format: "ndjson" }],
] as const)("%s are what the log gives", async (_, asked) => {
  const ended = await check(asked);
  expect(ended).toMatchObject({ exit: 0, out: expect.stringContaining("SAME") });
  expect(ended.out).toContain("does not say it: ");
});

const PLANTED: [string, string, Asked][] = [
  [
    "a digit of the compute time of one row",
    "PricingQuantity",
    { change: (row, at, place) => (at === 0 ? row.with(place("x_ComputeMs"), "1.000000") : row) },
  ],
  [
    "less than a quantity shows",
    "compute-ms, not",
    {
      change: (row, at, place) => {
        const amount = row[place("x_ComputeMs")]?.replace(/.$/, (digit) =>
          String((Number(digit) + 1) % 10),
        );
        return at === 0 ? row.with(place("x_ComputeMs"), amount ?? "") : row;
      },
    },
  ],
  [
    "a row that is left out",
    "no row has what the log gives",
    { change: (row, at) => (at === 3 ? undefined : row) },
  ],
  [
    "a discount that is said to be included",
    "no row has what the log gives",
    {
      change: (row, _, place) =>
        row[place("x_Portion")] === "discount" ? row.with(place("x_Portion"), "included") : row,
    },
  ],
  [
    "another pack",
    "no row has what the log gives",
    {
      change: (row, _, place) =>
        row[place("x_Pack")] === null ? row : row.with(place("x_Pack"), "1"),
    },
  ],
  [
    "another project",
    "no row has what the log gives",
    { change: (row, at, place) => (at === 0 ? row.with(place("x_ProjectId"), "99") : row) },
  ],
  [
    "a cost that is not quantity times price",
    "ListCost",
    {
      prices: PRICES,
      change: (row, at, place) =>
        at === 1 ? row.with(place("ListCost"), "7.0000000000000000") : row,
    },
  ],
  [
    "what is no amount",
    "row 1: x_ComputeMs 1.5",
    { change: (row, at, place) => (at === 0 ? row.with(place("x_ComputeMs"), "1.5") : row) },
  ],
];

test.each(PLANTED)("%s is found", async (_, said, asked) => {
  expect(await check(asked)).toMatchObject({ exit: 1, out: expect.stringContaining(said) });
});
