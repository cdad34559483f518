/** Adjustments and closed months in what is checked, rebuilt and served. */
import { afterEach, beforeEach, expect, test } from "vitest";
import { formatSignedComputeMs } from "../../../src/core/charge.ts";
import { check } from "../../../src/flow/check/check.ts";
import type { Finding } from "../../../src/flow/check/event.ts";
import { sha256 } from "../../../src/flow/report/signature.ts";
import { refresh } from "../../../src/flow/usage/fold.ts";
import { rebuild } from "../../../src/flow/usage/rebuild.ts";
import { usage, usageCsv } from "../../../src/flow/usage/usage.ts";
import { readMonthFigures } from "../../../src/store/adjustments.ts";
import { CLOSED_TABLES } from "../../../src/store/closed.ts";
import { closeMonth, type MonthUsage, readMonthUsage } from "../../../src/store/months.ts";
import { transact } from "../../../src/store/transact.ts";
import type { Agent } from "../../builds.ts";
import type { TestLedger } from "../../ledger.ts";
import { type FreshDatabase, freshDatabase } from "../../postgres.ts";
import { clock, HOSTED, notaryOf, OWN } from "../history.ts";
import { newLedger } from "../quota/logs.ts";
import { recountOf, sumBy } from "../recount.ts";
import { account, adjustMonth, closedMonth } from "./entries.ts";

const OCTOBER = "2026-10-01";
const NOVEMBER = "2026-11-01";
const VIEWS = ["namespace", "project", "gitlab_hosted_runner"].map(
  (name) => `ci_${name}_monthly_usages`,
);

let db: FreshDatabase;
let ledger: TestLedger;
let agent: Agent;

beforeEach(async () => {
  db = await freshDatabase();
  ({ ledger, agent } = newLedger());
  ledger.now = Date.UTC(2026, 10, 20);
});
afterEach(() => db.drop());

/** Twelve builds of two namespaces, hosted and not, in two months; an account beside. */
function build(): void {
  for (let job = 1; job <= 12; job += 1) {
    const finished = job % 2 === 0 ? "2026-10-31T12:00:00.000Z" : "2026-11-02T12:00:00.000Z";
    const runner = job % 5 === 0 ? OWN : HOSTED;
    const [namespace, project] = [1 + (job % 3 === 0 ? 1 : 0), 10 + (job % 4)];
    ledger.report(agent, { job, runner, namespace, project, finished, duration: 30_001n });
  }
  account(ledger, {});
}

async function publish(): Promise<void> {
  await ledger.load(db.owner);
  await ledger.seal(db.owner);
  await refresh({ sql: db.writer, clock });
}

/** October is cut off, corrected in November, and closed. */
async function lifeOfMonths(): Promise<void> {
  build();
  adjustMonth(ledger, OCTOBER, { amount: "-2000.250000" }, { amount: "-10.000000" });
  ledger.closeMonth(OCTOBER);
  const october = ledger.prefix.lastClosing;
  if (october === undefined) throw new Error("no cut-off");
  ledger.report(agent, { job: 21, runner: HOSTED, finished: "2026-10-31T13:00:00.000Z" });
  adjustMonth(ledger, OCTOBER, { amount: "-3000.000001", project_id: "12" });
  adjustMonth(ledger, NOVEMBER, ofUsage("1", "-4.500000"), { amount: "7.000000" });
  await publish();
  closedMonth(ledger, october);
  await publish();
  await transact(db.writer, (tx) => closeMonth(tx, ledger.log, OCTOBER, october.index));
}

/** A line about the hosted usage of a job. */
function ofUsage(job: string, amount: string) {
  const found = ledger.written.find(({ entry }) => {
    return (
      entry.kind === "usage" && entry.body.tracking === "hosted" && jobOf(entry.body.jws) === job
    );
  });
  if (found === undefined) throw new Error("no such usage");
  const namespace_id = String(1 + (Number(job) % 3 === 0 ? 1 : 0));
  const project_id = String(10 + (Number(job) % 4));
  return { amount, entry: String(found.entry.index), namespace_id, project_id };
}

function jobOf(jws: string): string {
  const [, payload = ""] = jws.split(".");
  return JSON.parse(Buffer.from(payload, "base64url").toString()).job.id;
}

async function findings(): Promise<Finding[]> {
  const found: Finding[] = [];
  const options = { hash: sha256, notary: notaryOf(ledger) };
  for await (const event of check({ sql: db.reader }, options)) {
    if (event.kind === "finding") found.push(event);
  }
  return found;
}

async function rowsOf(relation: string): Promise<string[]> {
  const rows = await db.superuser<{ row: string }[]>`
    select r::text as row from ${db.superuser(relation)} as r order by 1`;
  return rows.map(({ row }) => row);
}

async function everything(): Promise<Record<string, string[]>> {
  const relations = ["adjustments", "accounts", "usage_buckets", ...CLOSED_TABLES, ...VIEWS];
  const all: Record<string, string[]> = {};
  for (const relation of relations) all[relation] = await rowsOf(relation);
  return all;
}

test("invariant 1: adjustments, accounts and closed months are dropped and rebuilt to the last digit, and the check agrees", async () => {
  await lifeOfMonths();
  expect(await findings()).toEqual([]);
  const before = await everything();
  expect(Object.values(before).every((rows) => rows.length > 0)).toBe(true);
  const tables = ["adjustments", "accounts", "month_ends", "usage_buckets", ...CLOSED_TABLES];
  for (const table of tables) await db.superuser`truncate ${db.superuser(table)}`;
  await db.superuser`refresh materialized view open_namespace_monthly_usages`;
  const options = { sql: db.owner, clock, hash: sha256 };
  const { months, tables: rebuilt } = await rebuild(options, { write: true });
  expect(rebuilt.every(({ state }) => state === "written" || state === "equal")).toBe(true);
  // The ledger's `month_closed` is made up: what is kept of that month is given up, and nothing else.
  const first = { log: ledger.log, month: OCTOBER, why: "accounts_sha256 is not what was signed" };
  expect(months).toEqual({ count: 1, first });
  expect(await everything()).toEqual(before);
  expect(await findings()).toEqual([]);
});

test("invariant 11: a closed month is served as it was, from rows that nobody can change", async () => {
  await lifeOfMonths();
  const asked = { log: ledger.log, group: ["namespace", "usage_month", "tracking"] } as const;
  const answer = await usage({ sql: db.reader, clock }, asked);
  const keys = ["billing_month", "namespace", "usage_month", "tracking"];
  expect(sumBy(answer.rows, keys)).toEqual(sumBy(recountOf(ledger, ledger.size), keys));
  const open = await db.reader`
    select from open_namespace_monthly_usages where log = ${ledger.log} and date = ${OCTOBER}`;
  expect(open).toHaveLength(0);
  for (const table of CLOSED_TABLES) {
    await expect(db.owner`delete from ${db.owner(table)}`).rejects.toThrow(/append-only/);
    await expect(db.writer`update ${db.writer(table)} set log = log`).rejects.toThrow();
  }
});

test("a closed month closes again without a change, and not before figures reach its cut-off", async () => {
  await lifeOfMonths();
  const before = await everything();
  const again = (upTo: bigint) =>
    transact(db.writer, (tx) => closeMonth(tx, ledger.log, OCTOBER, upTo));
  const { index } = ledger.prefix.lastClosing ?? { index: 0n };
  await again(index);
  expect(await everything()).toEqual(before);
  await expect(again(ledger.size + 1n)).rejects.toThrow("do not reach the cut-off");
});

test("what a month is allocated from is a recount of its entries before the cut-off, in one order", async () => {
  await lifeOfMonths();
  for (const [month, upTo] of [
    [OCTOBER, ledger.size],
    [NOVEMBER, ledger.size],
    [NOVEMBER, ledger.size - 2n],
  ] as const) {
    const read: MonthUsage[] = [];
    await db.reader.begin(async (tx) => {
      for await (const row of readMonthUsage(tx, ledger.log, month, upTo)) read.push(row);
    });
    const rows = read.map((row) => ({
      ...{ namespace: row.namespace_id, usage_month: row.usage_month },
      ...{ tracking: row.tracking, machine_type: row.machine_type },
      ...{ jobs: row.jobs, duration_ms: row.duration_ms },
      gross_compute_ms: row.compute_ms,
      adjustment_compute_ms: row.adjustment,
      compute_ms: row.compute_ms + row.adjustment,
      billable_compute_ms: row.billable_compute_ms + row.adjustment,
    }));
    const keys = ["namespace", "usage_month", "tracking", "machine_type"];
    const counted = recountOf(ledger, upTo).filter(({ billing_month }) => billing_month === month);
    expect(sumBy(rows, keys)).toEqual(sumBy(counted, keys));
    const named = rows.map((row) => keys.map((key) => Reflect.get(row, key)).join(" "));
    expect(named).toEqual(named.toSorted());
  }
});

test("a correction of a closed month stands in the open one, and may be below zero there", async () => {
  build();
  ledger.closeMonth(OCTOBER);
  adjustMonth(ledger, OCTOBER, { amount: "-1.250000" });
  await publish();
  const asked = { log: ledger.log, group: ["usage_month"], from: NOVEMBER, namespace: 1n } as const;
  const answer = await usage({ sql: db.reader, clock }, asked);
  expect(answer.rows[0]).toEqual({
    ...{ billing_month: NOVEMBER, usage_month: OCTOBER, jobs: "0", duration_ms: "0" },
    ...{ gross_compute_ms: "0.000000", adjustment_compute_ms: "-1.250000" },
    ...{ compute_ms: "-1.250000", billable_compute_ms: "-1.250000" },
    ...{ compute_minutes: "0.0000", amount_used: "0.00", shared_runners_duration: "0" },
  });
  const [header, line] = usageCsv(answer).split("\r\n");
  expect(header).toContain("gross_compute_ms,adjustment_compute_ms,compute_ms");
  expect(line).toContain("0.000000,-1.250000,-1.250000");
});

test("T31: shown figures of a net below zero are rounded half away from zero, in answers and in views", async () => {
  build();
  ledger.closeMonth(OCTOBER);
  adjustMonth(ledger, OCTOBER, { amount: "-300.000000" });
  await publish();
  const asked = { log: ledger.log, group: ["usage_month"], from: NOVEMBER, namespace: 1n } as const;
  const answer = await usage({ sql: db.reader, clock }, asked);
  expect(answer.rows[0]).toMatchObject({ amount_used: "-0.01", compute_minutes: "-0.0050" });
  const [view] = await db.reader`
    select amount_used, net_compute_ms, billable_compute_ms
    from ci_namespace_monthly_usages
    where log = ${ledger.log} and date = ${NOVEMBER} and usage_month = ${OCTOBER}`;
  expect(view).toEqual({
    amount_used: "-0.01",
    net_compute_ms: "-300.000000",
    billable_compute_ms: "-300.000000",
  });
  expect(await findings()).toEqual([]);
});

test("what is left of months is the same wherever figures have come to", async () => {
  build();
  const scopes = [
    { namespace_id: "1", project_id: "", usage_month: OCTOBER },
    { namespace_id: "1", project_id: "12", usage_month: OCTOBER },
    { namespace_id: "2", project_id: "", usage_month: NOVEMBER },
  ];
  adjustMonth(ledger, OCTOBER, { amount: "-5.000000", project_id: "12" }, { amount: "-2.000000" });
  await ledger.load(db.owner);
  const unfolded = await readMonthFigures(db.reader, ledger.log, scopes);
  await ledger.seal(db.owner, 10n);
  await refresh({ sql: db.writer, clock });
  expect(await readMonthFigures(db.reader, ledger.log, scopes)).toEqual(unfolded);
  await publish();
  expect(await readMonthFigures(db.reader, ledger.log, scopes)).toEqual(unfolded);
  const [whole, project] = [...unfolded.values()].map(({ adjusted }) => adjusted);
  expect([whole, project].map((amount) => formatSignedComputeMs(amount ?? 0n)).sort()).toEqual([
    "-5.000000",
    "-7.000000",
  ]);
});

test("an adjustment that takes more than there was is found, whatever wrote it", async () => {
  build();
  const more = adjustMonth(ledger, NOVEMBER, ofUsage("3", "-999999999.000000"));
  const nothing = adjustMonth(ledger, NOVEMBER, { namespace_id: "99", amount: "5.000000" });
  const fine = adjustMonth(ledger, NOVEMBER, { ...ofUsage("7", "-1.000000") });
  const reversal = { ...ofUsage("7", "1.000000"), reverses: `${fine.index}/0` };
  const again = adjustMonth(ledger, NOVEMBER, { ...reversal, amount: "2.000000" });
  await publish();
  const found = (await findings()).map(({ index, table, found }) => [index, table, found]);
  expect(found).toContainEqual([String(more.index), "entries", "exceeds-original"]);
  expect(found).toContainEqual([String(again.index), "entries", "exceeds-original"]);
  const left = found.filter(([, table]) => table === "adjustments").map(([index]) => index);
  expect(left).toContain(String(more.index));
  expect(left).toContain(String(nothing.index));
  expect(left).not.toContain(String(fine.index));
});
