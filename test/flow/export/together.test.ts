/** What the service's database gives for each file is what the auditor makes of the entries, cell by cell. */
import fc from "fast-check";
import { afterAll, beforeAll, expect, test } from "vitest";
import { Book } from "../../../audit/export/book.ts";
import { entryRows } from "../../../audit/export/entries.ts";
import { Priced } from "../../../audit/export/focus/price-list.ts";
import { focusRows } from "../../../audit/export/focus/rows.ts";
import { Unmade } from "../../../audit/export/focus/unmade.ts";
import { Rated } from "../../../audit/export/rated.ts";
import { memoryPiles } from "../../../audit/tally/memory.ts";
import type { Parameters } from "../../../src/core/export/manifest.ts";
import type { Row, TableName } from "../../../src/core/export/tables.ts";
import { PriceList, Prices } from "../../../src/core/price.ts";
import { Problem } from "../../../src/core/problem.ts";
import { completed, focus } from "../../../src/flow/export/focus.ts";
import { SOURCES } from "../../../src/flow/export/sources.ts";
import { snapshot } from "../../../src/flow/usage/show.ts";
import type { TestLedger } from "../../ledger.ts";
import { type FreshDatabase, freshDatabase } from "../../postgres.ts";
import { account, adjustMonth } from "../money/entries.ts";
import { LIMIT, PACK } from "../quota/logs.ts";
import { histories, MINUTE, MONTHS, Telling } from "./months.ts";

let db: FreshDatabase;
beforeAll(async () => {
  db = await freshDatabase();
});
afterAll(() => db.drop());

type Asked = readonly [TableName, Parameters];
const MONTHLY = ["monthly_namespace", "monthly_project", "monthly_hosted_runner"] as const;
const OF_MONTH = ["portal", "allocation", "pack_rollforward", ...MONTHLY] as const;
const ASKED: readonly Asked[] = [
  ["entries", {}],
  ["entries", { from: "9" }],
  ["account_map", {}],
  ...MONTHLY.map((name): Asked => [name, {}]),
  ...OF_MONTH.flatMap((name) => MONTHS.map((month): Asked => [name, { month }])),
];

async function serviceRows(log: string, asOf: bigint, [name, parameters]: Asked): Promise<Row[]> {
  return await snapshot(db.reader, async (tx) => {
    const rows: Row[] = [];
    const { pages } = SOURCES[name]({ tx, log, asOf, parameters });
    for await (const page of pages) rows.push(...page);
    return rows;
  });
}

function auditorRows(
  { written }: TestLedger,
  asOf: bigint,
  [name, { from = "0", month }]: Asked,
): Row[] {
  const rated = new Rated();
  const book = new Book(memoryPiles);
  const rows = written.slice(0, Number(asOf)).flatMap(({ entry, leaf }) => {
    const built = rated.take(entry);
    if (name !== "entries") book.take(entry, built);
    else if (entry.index >= BigInt(from)) return entryRows(entry, leaf, built);
    return [];
  });
  return name === "entries" ? rows : [...book.rows(name, month)];
}

const LIST = {
  ...{ v: "1", currency: "USD", provider: "GitLab", accounts: { "A-1": { name: "Acme" } } },
  list: [
    { sku: "runner/*", effective_from: "2020-01-01", unit_price: "0.01" },
    { sku: "runner/*", effective_from: "2026-11-01", unit_price: "0.0123456789" },
    { sku: "runner/small", effective_from: "2026-10-31", unit_price: "0.02" },
    { sku: "pack", effective_from: "2020-01-01", unit_price: "0.009" },
  ],
  contracted: [
    { sku: "runner/*", effective_from: "2026-10-31", unit_price: "0.008" },
    { sku: "runner/small", effective_from: "2020-01-01", account_id: "A-1", unit_price: "0.007" },
    { sku: "pack", effective_from: "2026-10-01", account_id: "A-2", unit_price: "0.006" },
  ],
};
const PRICES = new Prices(JSON.stringify(LIST));
type Made = readonly Row[] | "no-account" | "no-price";

interface FocusAsked {
  asOf: bigint;
  month: string;
  prices: Prices | undefined;
}

async function serviceFocus(log: string, { asOf, month, prices }: FocusAsked) {
  return await snapshot(db.reader, async (tx) => {
    const parameters = completed("focus", { month, focus_version: "1.3" }, prices);
    const { columns, pages } = focus(prices)({ tx, log, asOf, parameters });
    const rows: Row[] = [];
    try {
      for await (const page of pages) rows.push(...page);
    } catch (error) {
      if (!(error instanceof Problem)) throw error;
      return { columns, made: error.code };
    }
    return { columns, made: rows };
  });
}

function auditorFocus(
  { log, written }: TestLedger,
  { asOf, month, prices }: FocusAsked,
  columns: readonly string[],
): Made {
  const rated = new Rated();
  const book = new Book(memoryPiles);
  for (const { entry } of written.slice(0, Number(asOf))) book.take(entry, rated.take(entry));
  const priced = prices && new Priced(PriceList.parse(LIST));
  const about = { columns, month, instance: log, withMoney: prices !== undefined, priced };
  try {
    return [...focusRows(book, about)];
  } catch (error) {
    if (!(error instanceof Unmade)) throw error;
    return error.message.startsWith("no account pays") ? "no-account" : "no-price";
  }
}

async function expectSameFocus(ledger: TestLedger, asOf: bigint): Promise<void> {
  for (const month of MONTHS) {
    for (const prices of [PRICES, undefined]) {
      const asked = { asOf, month, prices };
      const { columns, made } = await serviceFocus(ledger.log, asked);
      const names = columns.map(({ name }) => name);
      expect(made, `focus ${month}`).toEqual(auditorFocus(ledger, asked, names));
    }
  }
}

test("whatever happened, both sides make the same files of it, as of any entry", async () => {
  let logs = 0;
  await fc.assert(
    fc.asyncProperty(histories, fc.nat(99), async (history, share) => {
      logs += 1;
      const telling = new Telling(db, `f${String(logs).padStart(31, "0")}`);
      // Of the others what somebody owes may have nobody to pay for it.
      if (logs % 2 === 0) {
        account(telling.ledger, { namespace_id: "", account_id: "A-0", source_version: "1000000" });
      }
      for (const choice of history) {
        if (choice.kind === "refresh") await telling.fold();
        else telling.tell(choice);
      }
      await telling.fold();
      const { log, size } = telling.ledger;
      for (const asOf of [size, (size * BigInt(share)) / 100n + 1n]) {
        for (const asked of ASKED) {
          const ours = auditorRows(telling.ledger, asOf, asked);
          expect(
            await serviceRows(log, asOf, asked),
            `${asked[0]} ${asked[1].month ?? ""} as of ${asOf}`,
          ).toEqual(ours);
        }
        await expectSameFocus(telling.ledger, asOf);
      }
    }),
    { numRuns: 4 },
  );
});

test("both sides tell usage that came late for a closed month from what corrects it", async () => {
  const telling = new Telling(db, "d".repeat(32));
  const { ledger } = telling;
  account(ledger, { namespace_id: "", account_id: "A-2", source_version: "1000000" });
  ledger.append("quota", { ...LIMIT, beyond: "bill", monthly_minutes: "1" });
  telling.build(MINUTE);
  const said = ledger.written.find(({ entry }) => entry.kind === "usage")?.entry;
  for (const month of MONTHS.slice(0, 2)) ledger.closeMonth(month);
  telling.build({ ...MINUTE, duration: 360_001n });
  const correction = { namespace_id: "1", project_id: "10", entry: String(said?.index) };
  adjustMonth(ledger, MONTHS[1], { ...correction, amount: "-60000.000001" });
  await telling.fold();
  await expectSameFocus(ledger, ledger.size);
});

test("both sides round what is given back of packs by account, in whatever order accounts come", async () => {
  const telling = new Telling(db, "c".repeat(32));
  const { ledger } = telling;
  const namespaces = [1, 2, 3, 4, 5, 6];
  const packs = (minutes: string): void => {
    for (const namespace of namespaces) {
      const source_version = `${minutes === "0" ? 2 : 1}`;
      const pack = { namespace_id: String(namespace), pack_id: String(namespace), source_version };
      ledger.append("pack", { ...PACK, ...pack, minutes, purchased_in: MONTHS[1] });
    }
  };
  for (const namespace of namespaces) {
    const namespace_id = String(namespace);
    const account_id = `A-${namespace % 2}`;
    account(ledger, { namespace_id, account_id, source_version: String(100 + namespace) });
    ledger.append("quota", { ...LIMIT, namespace_id, beyond: "bill", monthly_minutes: "1" });
  }
  packs("10");
  for (const namespace of namespaces) telling.build({ ...MINUTE, namespace, duration: 1_000_005n });
  for (const month of MONTHS.slice(0, 2)) ledger.closeMonth(month);
  packs("0");
  await telling.fold();
  await expectSameFocus(ledger, ledger.size);
});

test("both sides say the same of packs that were bought, granted, and given back a month later", async () => {
  const telling = new Telling(db, "e".repeat(32));
  account(telling.ledger, { namespace_id: "", account_id: "A-2", source_version: "1000000" });
  const [told] = fc.sample(histories, { numRuns: 1, seed: 1 });
  const [any] = told ?? [];
  if (any === undefined) throw new Error("a history has choices");
  const pack = { ...any, kind: "pack", namespace: 1 } as const;
  const build = { ...any, kind: "build", namespace: 1, duration: 60_001n, reason: "" } as const;
  const close = { ...any, kind: "close" } as const;
  for (const project of [11, 12]) telling.tell({ ...pack, project, minutes: "7" });
  telling.tell({ ...build, finished: "2026-10-31T12:00:00.000Z" });
  for (let months = 0; months < 2; months += 1) telling.tell(close);
  for (const project of [11, 12]) telling.tell({ ...pack, project, minutes: "0" });
  await telling.fold();
  const { ledger } = telling;
  await expectSameFocus(ledger, ledger.size);
  const asked = { asOf: ledger.size, month: MONTHS[2], prices: PRICES };
  const { columns, made } = await serviceFocus(ledger.log, asked);
  const at = (name: string) => columns.findIndex((column) => column.name === name);
  const [portion, kind] = [at("x_Portion"), at("ChargeClass")];
  const rows = typeof made === "string" ? [] : made.map((row) => [row[portion], row[kind]]);
  expect(rows).toEqual([
    ["purchase", "Correction"],
    ["grant", "Correction"],
  ]);
});
