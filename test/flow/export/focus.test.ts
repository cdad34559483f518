/** The FOCUS file of a month, against the portal's and the packs' of the same, and as of any size. */
import { randomBytes } from "node:crypto";
import { mkdtempSync, rmSync } from "node:fs";
import { writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import fc from "fast-check";
import { afterAll, beforeAll, expect, onTestFinished, test } from "vitest";
import { parseSignedComputeMs } from "../../../src/core/charge.ts";
import type { Parameters } from "../../../src/core/export/manifest.ts";
import { type Page, type Row, TABLES } from "../../../src/core/export/tables.ts";
import { unscaled } from "../../../src/core/export/totals.ts";
import { ask } from "../../../src/flow/export/ask.ts";
import { contentOf } from "../../../src/flow/export/content.ts";
import { completed, focus } from "../../../src/flow/export/focus.ts";
import { packRollforward } from "../../../src/flow/export/pack-rollforward.ts";
import { portal } from "../../../src/flow/export/portal.ts";
import { snapshot } from "../../../src/flow/usage/show.ts";
import { PORTIONS } from "../../../src/format/focus/portions.ts";
import { putNames } from "../../../src/store/names.ts";
import { prices, sampleFile } from "../../format/focus/sample.ts";
import { type FreshDatabase, freshDatabase } from "../../postgres.ts";
import { clock } from "../history.ts";
import { account, adjustMonth } from "../money/entries.ts";
import { LIMIT, PACK } from "../quota/logs.ts";
import { openReader } from "./duckdb.ts";
import { histories, MINUTE, MONTHS, pageSizes, rowsOf, Telling } from "./months.ts";

type Named = Readonly<Record<string, string>>;
interface Asked {
  log: string;
  asOf: bigint;
  month: string;
  pageRows?: number;
}

const PRICES = prices();
let db: FreshDatabase;
let logs = 0;

beforeAll(async () => {
  db = await freshDatabase();
});
const folder = mkdtempSync(join(tmpdir(), "minutebook-focus-"));
afterAll(async () => {
  rmSync(folder, { recursive: true });
  await db.drop();
});

function named(columns: readonly { name: string }[], rows: readonly Row[]): Named[] {
  return rows.map((row) => {
    return Object.fromEntries(columns.map(({ name }, at) => [name, row[at] ?? ""]));
  });
}

async function focusRows(
  { log, asOf, pageRows, ...asked }: Asked & Pick<Parameters, "names">,
  known = PRICES,
): Promise<Named[]> {
  return await snapshot(db.reader, async (tx) => {
    const parameters = completed("focus", asked, PRICES);
    const { columns, pages } = focus(known)({
      ...{ tx, log, asOf, parameters },
      ...(pageRows !== undefined && { pageRows }),
    });
    const rows: Row[] = [];
    for await (const page of pages) rows.push(...page);
    return named(columns, rows);
  });
}

async function* paged(rows: readonly Row[]): AsyncGenerator<Page> {
  for (const row of rows) yield [row];
}

/** Whoever pays for everything that nobody else does. */
function payForAll({ ledger }: Telling): void {
  account(ledger, { namespace_id: "", account_id: "A-0", source_version: "1000000" });
}

function sum(rows: readonly Named[], column: string): bigint {
  return rows.reduce((all, row) => all + parseSignedComputeMs(row[column] ?? ""), 0n);
}

async function expectTied(asked: Asked): Promise<void> {
  const rows = await focusRows(asked);
  const lines = named(TABLES.portal, await rowsOf(db, portal, asked));
  const packs = named(TABLES.pack_rollforward, await rowsOf(db, packRollforward, asked));
  const of = (portion: string) => rows.filter((row) => row["x_Portion"] === portion);
  for (const portion of PORTIONS) {
    expect(sum(of(portion), "x_ComputeMs")).toBe(sum(lines, `${portion}_compute_ms`));
  }
  for (const { drawn_compute_ms, pack } of packs) {
    const draws = of("pack").filter((row) => row["x_Pack"] === pack);
    expect(sum(draws, "x_ComputeMs")).toBe(parseSignedComputeMs(drawn_compute_ms ?? ""));
  }
  const sold = sum(packs, "bought_compute_ms") - sum(packs, "refunded_compute_ms");
  expect(sum([...of("purchase"), ...of("grant")], "x_ComputeMs")).toBe(sold);
  const durations = rows.map((row) => unscaled(row["ConsumedQuantity"] || "0"));
  const measured = lines.reduce((all, row) => all + BigInt(row["duration_ms"] ?? ""), 0n);
  expect(durations.reduce((all, each) => all + each, 0n)).toBe(measured);
}

test("T53: a FOCUS file has the portal's minutes in each portion, each pack's draws, and what was bought, however few lines are read at once", async () => {
  await fc.assert(
    fc.asyncProperty(histories, pageSizes, async (choices, pageRows) => {
      logs += 1;
      const telling = new Telling(db, `f${String(logs).padStart(31, "0")}`);
      payForAll(telling);
      for (const choice of choices) telling.tell(choice);
      await telling.fold();
      const { log, size } = telling.ledger;
      for (const month of MONTHS) {
        const asked = { log, asOf: size, month };
        await expectTied(asked);
        expect(await focusRows({ ...asked, pageRows })).toEqual(await focusRows(asked));
      }
    }),
    { numRuns: 6 },
  );
});

test("a pack is drawn on in a later page than the one that its namespace begins in", async () => {
  const telling = new Telling(db, "a".repeat(32));
  const { ledger } = telling;
  payForAll(telling);
  ledger.append("quota", { ...LIMIT, namespace_id: "1", beyond: "bill", monthly_minutes: "4" });
  ledger.append("pack", { ...PACK, namespace_id: "1", minutes: "3", purchased_in: MONTHS[1] });
  for (let project = 20; project < 30; project += 1) {
    telling.build({ ...MINUTE, project });
  }
  await telling.fold();
  const asked = { log: ledger.log, asOf: ledger.size, month: MONTHS[1] };
  const rows = await focusRows({ ...asked, pageRows: 2 });
  const portions = rows.map((row) => row["x_Portion"]);
  expect(portions).toEqual([
    ...[...Array(4).fill("included"), ...Array(3).fill("pack"), ...Array(3).fill("overage")],
    "purchase",
  ]);
  expect(await focusRows(asked)).toEqual(rows);
});

test("what came late for a closed month is usage, and what corrects the same line is a row of its own", async () => {
  const telling = new Telling(db, "9".repeat(32));
  const { ledger } = telling;
  payForAll(telling);
  telling.build(MINUTE);
  const said = ledger.written.find(({ entry }) => entry.kind === "usage")?.entry;
  for (const month of MONTHS.slice(0, 2)) ledger.closeMonth(month);
  telling.build({ ...MINUTE, duration: 360_000n });
  const correction = { namespace_id: "1", project_id: "10", entry: String(said?.index) };
  adjustMonth(ledger, MONTHS[1], { ...correction, amount: "-60000.000000" });
  await telling.fold();
  const asked = { log: ledger.log, asOf: ledger.size, month: MONTHS[2] };
  const rows = await focusRows(asked);
  const columns = ["ChargeCategory", "ChargeClass", "x_ComputeMs", "ConsumedQuantity"];
  expect(rows.map((row) => columns.map((column) => row[column]))).toEqual([
    ["Usage", "", "120000.000000", "360.000"],
    ["Usage", "Correction", "-60000.000000", ""],
  ]);
  await expectTied(asked);
});

test("what is written after the index that it is of changes nothing of it", async () => {
  const telling = new Telling(db, "e".repeat(32));
  payForAll(telling);
  const [first = [], more = []] = fc.sample(histories, { numRuns: 2, seed: 6 });
  for (const choice of first) telling.tell(choice);
  await telling.fold();
  const { log, size: asOf } = telling.ledger;
  const read = () => Promise.all(MONTHS.map((month) => focusRows({ log, asOf, month })));
  const before = await read();
  expect(before.flat().length).toBeGreaterThan(10);
  for (const choice of more) telling.tell(choice);
  await telling.fold();
  expect(await read()).toEqual(before);
});

test.each(["csv", "parquet"] as const)(
  "DuckDB reads the %s file to the same cells, and to the totals of its manifest",
  async (format) => {
    const { file, rows } = sampleFile();
    const content = contentOf({ columns: file.columns, pages: paged(rows) }, format);
    const path = join(folder, `focus.${format}`);
    await writeFile(path, content.bytes);
    const { totals } = await content.figures();
    const reader = await openReader();
    onTestFinished(() => reader.close());
    const read = await reader[format](path, file.columns);
    // It writes instants with the milliseconds that this file does not have.
    const cells = read.map((row) =>
      row.map((cell) => cell?.replace(/(?<=^.{19})\.000Z$/, "Z") || null),
    );
    expect(cells).toEqual(rows);
    for (const [column, total] of Object.entries(totals)) {
      const at = file.columns.findIndex(({ name }) => name === column);
      const sum = read.reduce((all, row) => all + unscaled(row[at] || "0"), 0n);
      expect(sum, column).toBe(unscaled(total));
    }
    expect(Object.keys(totals)).toEqual(expect.arrayContaining(["BilledCost", "x_ComputeMs"]));
  },
);

test("namespaces and projects are called what the directory says, where names are asked for", async () => {
  const telling = new Telling(db, "b".repeat(32));
  payForAll(telling);
  for (const [namespace, project] of [
    [1, 10],
    [2, 11],
    [3, 12],
  ] as const) {
    telling.build({ ...MINUTE, namespace, project, finished: "2026-11-02T07:00:00.000Z" });
  }
  await telling.fold();
  const { log, size: asOf } = telling.ledger;
  await putNames(db.writer, log, [
    { kind: "namespace", id: "1", name: '=acme, "größe"' },
    { kind: "project", id: "10", name: "acme/web" },
  ]);
  const rows = await focusRows({ log, asOf, month: MONTHS[2], names: true, pageRows: 1 });
  const called = (column: string, name: string) => {
    return new Map(rows.map((row) => [row[column], row[name]]));
  };
  expect(Object.fromEntries(called("x_NamespaceId", "SubAccountName"))).toEqual({
    ...{ "1": '=acme, "größe"', "2": "Namespace 2", "3": "Namespace 3" },
  });
  expect(Object.fromEntries(called("x_ProjectId", "ResourceName"))).toEqual({
    ...{ "10": "acme/web", "11": "", "12": "" },
  });
  const bare = await focusRows({ log, asOf, month: MONTHS[2] });
  expect(new Set(bare.map((row) => row["ResourceName"]))).toEqual(new Set([""]));
});

test("a price list that is another one than it was asked for with makes no file", async () => {
  const asked = { log: "e".repeat(32), asOf: 1n, month: MONTHS[1] };
  const other = prices({ currency: "EUR" });
  await expect(focusRows(asked, other)).rejects.toMatchObject({ code: "other-prices" });
});

test("what is asked for is kept with its version and the hash of its prices, and called what it is", async () => {
  const telling = new Telling(db, "c".repeat(32));
  await telling.fold();
  const { log } = telling.ledger;
  const asking = { sql: db.writer, clock, random: randomBytes };
  const wanted = { name: "focus", format: "csv", month: MONTHS[1] } as const;
  const whose = { log, by: "p_finance" };
  const [priced, bare] = [
    await ask({ ...asking, prices: PRICES }, whose, {
      ...wanted,
      focus_version: "1.3",
      names: true,
    }),
    await ask(asking, whose, wanted),
  ];
  const { month } = wanted;
  expect(priced.parameters).toEqual({
    month,
    focus_version: "1.3",
    names: true,
    prices_sha256: PRICES.sha256,
  });
  const list = Buffer.from(PRICES.sha256, "base64").toString("hex").slice(0, 8);
  expect(priced.file).toMatch(
    new RegExp(`^focus-2026-10-[0-9]+-names-v1\\.3-priced-${list}\\.csv$`),
  );
  expect(bare.parameters).toEqual({ month, focus_version: "1.2" });
  expect(bare.file).toMatch(/^focus-2026-10-[0-9]+-v1\.2-quantities-not-conformant\.csv$/);
  await expect(ask(asking, whose, { ...wanted, focus_version: "0.5" })).rejects.toMatchObject({
    code: "invalid-request",
    extension: { members: ["focus_version"] },
  });
});

test("a charge that nobody is said to pay for makes no file, and says whose it is", async () => {
  const telling = new Telling(db, "d".repeat(32));
  const [choices = []] = fc.sample(histories, { numRuns: 1, seed: 6 });
  for (const choice of choices.filter(({ kind }) => kind === "build")) telling.tell(choice);
  await telling.fold();
  const { log, size: asOf } = telling.ledger;
  await expect(focusRows({ log, asOf, month: MONTHS[1] })).rejects.toMatchObject({
    code: "no-account",
    extension: { namespace_id: expect.stringMatching(/^[123]$/) },
  });
});
