/** Months and accounts as files: what the public views and the log say, as of one index. */
import fc from "fast-check";
import { afterAll, beforeAll, expect, test } from "vitest";
import { type Row, TABLES } from "../../../src/core/export/tables.ts";
import { accountMap } from "../../../src/flow/export/account-map.ts";
import { monthly } from "../../../src/flow/export/monthly.ts";
import type { Source } from "../../../src/flow/export/source.ts";
import { refresh } from "../../../src/flow/usage/fold.ts";
import type { MonthlyName } from "../../../src/store/export-monthly.ts";
import { closeMonth } from "../../../src/store/months.ts";
import { transact } from "../../../src/store/transact.ts";
import type { Agent, Build } from "../../builds.ts";
import type { TestLedger } from "../../ledger.ts";
import { type FreshDatabase, freshDatabase } from "../../postgres.ts";
import { clock, HOSTED, OWN } from "../history.ts";
import { account, adjustMonth, closedMonth } from "../money/entries.ts";
import { newLedger } from "../quota/logs.ts";
import { compareRows, expectInOrder } from "./order.ts";
import { inSnapshot, made, rowsOf } from "./usages.ts";

const VIEWS = {
  monthly_namespace: "ci_namespace_monthly_usages",
  monthly_project: "ci_project_monthly_usages",
  monthly_hosted_runner: "ci_gitlab_hosted_runner_monthly_usages",
} as const satisfies Record<MonthlyName, string>;
const NAMES = Object.keys(VIEWS) as MonthlyName[];

let db: FreshDatabase;

beforeAll(async () => {
  db = await freshDatabase();
});
afterAll(async () => {
  await db.drop();
});

const sheetRows = async (source: Source, log: string, asOf: bigint, month?: string) =>
  await inSnapshot(db.reader, async (tx) => {
    const parameters = month === undefined ? {} : { month };
    return await rowsOf(source({ tx, log, asOf, parameters }));
  });

/** As the view has them now, ordered here. */
async function viewRows(name: MonthlyName, log: string): Promise<Row[]> {
  const columns = TABLES[name].map((column) => `${column.name}::text`).join(", ");
  const rows = await db.reader<Record<string, string>[]>`
    select ${db.reader.unsafe(columns)} from ${db.reader(VIEWS[name])} where log = ${log}`;
  return rows
    .map((row) => TABLES[name].map((column) => row[column.name] ?? null))
    .sort((a, b) => compareRows(name, a, b));
}

const build = fc.record({
  runner: fc.constantFrom(HOSTED, HOSTED, OWN),
  namespace: fc.integer({ min: 8, max: 11 }),
  project: fc.integer({ min: 98, max: 101 }),
  duration: fc.bigInt({ min: 0n, max: 100_000_000n }),
  finished: fc.constantFrom("2026-09-30T23:59:59.999Z", "2026-10-31T12:00:00.000Z"),
  reason: fc.constantFrom("", "script_failure", "runner_system_failure"),
}) satisfies fc.Arbitrary<Omit<Build, "job">>;

/** Builds, and what takes part of them back: of a build's own, or of a namespace's month. */
function write(
  { ledger, agent }: { ledger: TestLedger; agent: Agent },
  builds: readonly Omit<Build, "job">[],
): void {
  for (const each of builds) {
    const { index } = ledger.report(agent, { job: Number(ledger.size), ...each });
    const namespace_id = String(each.namespace);
    if (each.runner !== HOSTED) continue;
    const month = `${each.finished?.slice(0, 7)}-01`;
    if (index % 3n === 0n) adjustMonth(ledger, month, { namespace_id, amount: "-0.500001" });
    if (index % 4n === 0n) {
      const project_id = String(each.project);
      adjustMonth(ledger, month, { entry: String(index), namespace_id, project_id });
    }
  }
}

async function sealed(ledger: TestLedger): Promise<bigint> {
  await ledger.load(db.owner);
  await ledger.seal(db.owner);
  await refresh({ sql: db.writer, clock });
  return ledger.size;
}

test("T50: months as of an index are, in every column, what the views show there; later entries change no byte", async () => {
  const builds = fc.array(build, { minLength: 10, maxLength: 25 });
  await fc.assert(
    fc.asyncProperty(builds, builds, builds, async (first, second, third) => {
      const made_ = newLedger();
      const { ledger } = made_;
      const { log } = ledger;
      write(made_, first);
      ledger.closeMonth("2026-09-01");
      write(made_, second);
      const asOf = await sealed(ledger);
      const files = new Map<MonthlyName, Buffer>();
      for (const name of NAMES) {
        const rows = await sheetRows(monthly(name), log, asOf);
        expect(rows).toEqual(await viewRows(name, log));
        expectInOrder(name, rows);
        const { bytes } = await made(db.reader, monthly(name), { log, asOf, parameters: {} });
        files.set(name, bytes);
      }
      write(made_, third);
      const closing = ledger.prefix.lastClosing;
      if (closing === undefined) throw new Error("no month is cut off");
      closedMonth(ledger, closing);
      ledger.closeMonth("2026-10-01");
      await sealed(ledger);
      await transact(db.writer, (tx) => closeMonth(tx, log, closing.month, closing.index));
      await refresh({ sql: db.writer, clock });
      for (const name of NAMES) {
        const { bytes } = await made(db.reader, monthly(name), { log, asOf, parameters: {} });
        expect(bytes.equals(files.get(name) ?? Buffer.alloc(0))).toBe(true);
        expect(await sheetRows(monthly(name), log, ledger.size)).toEqual(await viewRows(name, log));
      }
    }),
    { numRuns: 3 },
  );
});

test("a month's file has the rows that are posted to it, the same before its cut-off is passed and after", async () => {
  const made_ = newLedger();
  const { ledger } = made_;
  const runs = fc.sample(fc.array(build, { minLength: 15, maxLength: 15 }), 2);
  write(made_, runs[0] ?? []);
  const cut = ledger.size;
  ledger.closeMonth("2026-09-01");
  write(made_, runs[1] ?? []);
  await ledger.load(db.owner);
  for (const name of NAMES) {
    const at = TABLES[name].findIndex(({ name }) => name === "date" || name === "billing_month");
    const all = await sheetRows(monthly(name), ledger.log, ledger.size);
    for (const month of ["2026-09-01", "2026-10-01"]) {
      const rows = await sheetRows(monthly(name), ledger.log, ledger.size, month);
      expect(rows).toEqual(all.filter((row) => row[at] === month));
    }
    const september = await sheetRows(monthly(name), ledger.log, ledger.size, "2026-09-01");
    expect(september).toEqual(await sheetRows(monthly(name), ledger.log, cut, "2026-09-01"));
  }
});

test("who pays for whom has all that was said up to the index, the instance first, ids as numbers", async () => {
  const { ledger } = newLedger();
  const first = "2026-01-01T00:00:00.000Z";
  const later = "2026-11-15T00:00:00.000Z";
  account(ledger, { namespace_id: "10", account_id: '=A "1"', subscription_id: "S-1" });
  account(ledger, { namespace_id: "9", account_id: "A-2" });
  account(ledger, { namespace_id: "", account_id: "A-3", effective_from: later });
  account(ledger, { namespace_id: "10", effective_from: later, source_version: "2" });
  const asOf = ledger.size;
  account(ledger, { namespace_id: "8" });
  await ledger.load(db.owner);
  const rows = await sheetRows(accountMap, ledger.log, asOf);
  expect(rows).toEqual([
    [null, later, "A-3", null, "portal", "1", "7"],
    ["9", first, "A-2", null, "portal", "1", "6"],
    ["10", first, '=A "1"', "S-1", "portal", "1", "5"],
    ["10", later, "A-1", null, "portal", "2", "8"],
  ]);
  expectInOrder("account_map", rows);
});
