/** A FOCUS file says what the log and its price list say, cell by cell, and the auditor finds where it does not. */
import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { afterAll, beforeAll, expect, test } from "vitest";
import { Book } from "../../../audit/export/book.ts";
import { checkFocus } from "../../../audit/export/focus/check.ts";
import { openPriceList } from "../../../audit/export/focus/price-list.ts";
import { Rated } from "../../../audit/export/rated.ts";
import { Findings } from "../../../audit/finding.ts";
import { memoryPiles } from "../../../audit/tally/memory.ts";
import type { Column } from "../../../src/core/export/tables.ts";
import { sha256 } from "../../../src/core/hash.ts";
import { Prices } from "../../../src/core/price.ts";
import { encodeBase64, encodeUtf8 } from "../../../src/core/text.ts";
import { focusColumns } from "../../../src/format/focus/columns.ts";
import { filesOf, vkeyText } from "../archive.ts";
import { decoded } from "../closing.ts";
import { command, type Ended, openHome, store } from "../command.ts";
import type { TestLog } from "../log.ts";
import { CLOSED, OPEN, richLog } from "./case.ts";
import { type Asked, type Change, LIST, made, PRICES, RESOLD } from "./focus-file.ts";

const home = openHome();
afterAll(() => home.remove());
const archive = join(home.folder, "archive");
let log: TestLog;

beforeAll(() => {
  log = richLog();
  store(archive, filesOf(log));
});

let written = 0;

/** @param given the price list of the auditor, if any */
async function check(asked: Asked, given: string | null = asked.prices ?? null): Promise<Ended> {
  const { file, json, note } = await made(log, asked);
  written += 1;
  const at = (name: string): string => join(home.folder, `${written}.${name}`);
  writeFileSync(at("file"), file);
  writeFileSync(at("json"), json);
  writeFileSync(at("note"), note);
  writeFileSync(at("prices"), given ?? "");
  const list = given === null ? [] : ["--price-list", at("prices")];
  const args = ["--manifest", at("json"), "--note", at("note"), "--vkey", vkeyText(), ...list];
  return await command("check-export", at("file"), archive, ...args);
}

test.each([
  ["quantities of a closed month", {}],
  ["quantities of a month that is open, as NDJSON", { month: OPEN, format: "ndjson" }],
  ["a closed month's money", { prices: PRICES }],
  ["an open month's money, as NDJSON", { month: OPEN, prices: PRICES, format: "ndjson" }],
  ["money of FOCUS 1.3, as Parquet", { prices: PRICES, version: "1.3", format: "parquet" }],
  ["credits that a reseller invoices", { prices: RESOLD, month: OPEN, version: "1.3" }],
] as const)(
  "%s are what the log and the list give, and nothing is left unlooked at",
  async (_, asked) => {
    const ended = await check(asked);
    expect(ended).toMatchObject({ exit: 0, out: expect.stringContaining("SAME") });
    expect(ended.out).not.toContain("NOT CHECKED");
  },
);

test("the log that files are made of has every portion, corrections, and prices of several days", async () => {
  const { rows } = await made(log, { prices: PRICES });
  const { rows: later } = await made(log, { prices: PRICES, month: OPEN });
  const columns = focusColumns("1.2", true);
  const said = (name: string) => {
    const at = columns.findIndex((column) => column.name === name);
    return new Set([...rows, ...later].map((row) => row[at]));
  };
  expect([...said("x_Portion")]).toEqual(
    expect.arrayContaining(["included", "pack", "overage", "not_billable", "discount", "purchase"]),
  );
  expect(said("ChargeClass")).toContain("Correction");
  expect(said("ListUnitPrice").size).toBeGreaterThan(3);
  // For nothing, of packs, and of the account's own contract.
  expect(said("ContractedUnitPrice")).toEqual(
    new Set(["0.0000000000", "0.0040000000", "0.0069000000"]),
  );
});

/** Of the same form, and not the same. */
function another(cell: string | null, { places = 6, type }: Column): string {
  if (type === "decimal") {
    return cell === null
      ? `1.${"0".repeat(places)}`
      : cell.replace(/.$/, (d) => (d === "7" ? "8" : "7"));
  }
  if (type === "instant") return "2026-02-03T00:00:00Z";
  if (type === "day") return "2026-02-01";
  if (type === "integer") return "99";
  return `${cell ?? ""}x`;
}

async function findingsOf(asked: Asked, given = asked.prices): Promise<Findings> {
  const { manifest, rows } = await made(log, asked);
  const book = new Book(memoryPiles);
  const rated = new Rated();
  for (const entry of log.entries.map(decoded)) book.take(entry, rated.take(entry));
  const priced =
    given === undefined ? undefined : openPriceList(encodeUtf8(given), manifest, sha256);
  const file = {
    name: "focus",
    digest: () => Promise.reject(new Error("nobody asks")),
    rows: async function* () {
      yield* rows;
    },
  };
  const findings = new Findings();
  await checkFocus(book, { file, manifest, priced }, findings);
  return findings;
}

const PRICED = { prices: RESOLD, version: "1.3" } as const;
const QUANTITIES = { prices: undefined, version: "1.2" } as const;
const CELLS = [
  ...focusColumns("1.3", true).map((column) => ({ column, ...PRICED })),
  ...focusColumns("1.2", false).map((column) => ({ column, ...QUANTITIES })),
];

test.each(CELLS)(
  "another $column.name in one row is found, with what it should be ($version)",
  async ({ column, prices, version }) => {
    let expected = "";
    const change: Change = (rows, place) => {
      const at = place(column.name);
      const row = 2;
      const cell = rows[row]?.[at] ?? null;
      const wrong = another(cell, column);
      expected = `row ${row + 1}: ${column.name} ${wrong}, not ${cell ?? "(nothing)"}`;
      return rows.map((each, number) => (number === row ? each.with(at, wrong) : each));
    };
    const { listed } = await findingsOf({ prices, version, change });
    expect(listed.map(({ code, detail }) => [code, detail])).toEqual([["export-row", expected]]);
  },
);

test.each<[string, Change, string[]]>([
  [
    "a row that is left out",
    (rows) => rows.toSpliced(3, 1),
    ["row 4: a row is missing before it: "],
  ],
  [
    "a row that stands twice",
    (rows) => rows.toSpliced(3, 0, ...rows.slice(3, 4)),
    ["row 5: the log gives no such row here: "],
  ],
  [
    "two rows that stand in the other's place",
    (rows) => [...rows.slice(0, 3), ...rows.slice(3, 5).reverse(), ...rows.slice(5)],
    ["row 4: a row is missing before it: ", "row 5: the log gives no such row here: "],
  ],
  ["an end that is cut off", (rows) => rows.slice(0, -1), [": a row is missing before it: "]],
])("%s is one finding where it stands", async (_, change, details) => {
  const { listed } = await findingsOf({ prices: PRICES, change });
  expect(listed.map(({ detail }) => detail)).toEqual(
    details.map((detail) => expect.stringContaining(detail)),
  );
});

test("a total of the manifest that its rows do not come to is found", async () => {
  const { manifest } = await made(log, { prices: PRICES });
  const { BilledCost: _, ...others }: Record<string, string> = manifest.totals;
  const totals = { ...others, ListCost: "1.0000000000000000" };
  const { listed } = await findingsOf({ prices: PRICES, said: { totals, rows: "7" } });
  expect(listed.map(({ code, detail }) => `${code} ${detail}`)).toEqual([
    expect.stringMatching(/^export-totals 7 rows, not [0-9]+$/),
    expect.stringMatching(/^export-totals BilledCost undefined, not /),
    expect.stringMatching(/^export-totals ListCost 1\.0{16}, not /),
  ]);
});

test("columns that such a file does not have, or lacks, are a finding", async () => {
  const { manifest } = await made(log, {});
  const columns = manifest.columns.with(0, "BilledCost");
  const { listed } = await findingsOf({ said: { columns } });
  expect(listed).toMatchObject([{ code: "export-manifest" }]);
});

const sha256Of = (text: string): string => new Prices(text).sha256;

test("a file that no price list of its hash can have made is a finding", async () => {
  const poor = JSON.stringify({ ...LIST, list: LIST.list.slice(0, 3) });
  const parameters = { month: CLOSED, focus_version: "1.2", prices_sha256: sha256Of(poor) };
  const { listed } = await findingsOf({ prices: PRICES, said: { parameters } }, poor);
  expect(listed.map(({ detail }) => detail)).toEqual([
    "no such file can be made: the price list has no price of pack on 2026-11-01",
  ]);
});

test("without the price list all else is checked, and what is not is named with the reason", async () => {
  const asked = { prices: PRICES };
  const ended = await check(asked, null);
  expect(ended).toMatchObject({ exit: 0, out: expect.stringContaining("SAME") });
  const said = ended.out.slice(ended.out.indexOf("NOT CHECKED"));
  expect(said).toMatch(/^NOT CHECKED, for no price list was given \(--price-list\): /);
  for (const column of ["BilledCost", "ListUnitPrice", "BillingAccountName"]) {
    expect(said).toContain(column);
  }
  for (const column of ["PricingQuantity", "SkuId", "InvoiceId"])
    expect(said).not.toContain(column);
  const change: Change = (rows, place) =>
    rows.map((row, at) => (at === 1 ? row.with(place("ListCost"), "7.0000000000000000") : row));
  const changed = await check({ ...asked, change }, null);
  expect(changed).toMatchObject({ exit: 1, out: expect.stringContaining("row 2: ListCost 7.0") });
});

test("names are on no log: where a file has them, they are not checked, and that is said", async () => {
  const parameters = { month: CLOSED, focus_version: "1.2", names: true } as const;
  const change: Change = (rows, place) =>
    rows.map((row) => row.with(place("SubAccountName"), "acme").with(place("ResourceName"), "web"));
  const ended = await check({ change, said: { parameters } });
  expect(ended).toMatchObject({ exit: 0, out: expect.stringContaining("SAME") });
  expect(ended.out).toContain(
    "NOT CHECKED, for the log does not say it: ResourceName, SubAccountName",
  );
});

test.each<[string, Asked, string, string]>([
  ["another price list", { prices: PRICES }, RESOLD, `made with ${sha256Of(PRICES)}`],
  ["a price list for a file without money", {}, PRICES, "made without a price list"],
  [
    "a version of the specification that is not known",
    { said: { parameters: { month: CLOSED, focus_version: "9.9" } } },
    "",
    "FOCUS 9.9 is not known here",
  ],
])("%s is no verdict, and no accusation", async (_, asked, given, said) => {
  const ended = await check(asked, given || null);
  expect(ended).toMatchObject({ exit: 2, err: expect.stringContaining(said) });
});

test("what is named as the price list and is none is no verdict", async () => {
  const text = '{"v":"1"}';
  const prices_sha256 = encodeBase64(sha256(encodeUtf8(text)));
  const parameters = { month: CLOSED, focus_version: "1.2", prices_sha256 };
  const ended = await check({ prices: PRICES, said: { parameters } }, text);
  expect(ended).toMatchObject({ exit: 2, err: expect.stringContaining("is none that") });
});
