/** What accounts pay for, against a naive recount in plain fractions, and as of any size. */
import fc from "fast-check";
import { afterAll, beforeAll, expect, test } from "vitest";
import { parseSignedComputeMs } from "../../../src/core/charge.ts";
import type { Body, Entry, EntryOf } from "../../../src/core/entry.ts";
import { ORDER, type Row, TABLES } from "../../../src/core/export/tables.ts";
import { allocation } from "../../../src/flow/export/allocation.ts";
import { packRollforward } from "../../../src/flow/export/pack-rollforward.ts";
import { portal } from "../../../src/flow/export/portal.ts";
import type { TestLedger } from "../../ledger.ts";
import { type FreshDatabase, freshDatabase } from "../../postgres.ts";
import { reportIn } from "../door.ts";
import { histories, MONTHS, rowsOf, Telling } from "./months.ts";

const SOURCES = { portal, allocation, pack_rollforward: packRollforward } as const;
type Name = keyof typeof SOURCES;
const NAMES = Object.keys(SOURCES) as Name[];

let db: FreshDatabase;
let logs = 0;

beforeAll(async () => {
  db = await freshDatabase();
});
afterAll(() => db.drop());

function newTelling(): Telling {
  logs += 1;
  return new Telling(db, `e${String(logs).padStart(31, "0")}`);
}

/** A row by the names of its columns. */
function named(name: Name, row: Row): Record<string, string> {
  return Object.fromEntries(TABLES[name].map((column, at) => [column.name, row[at] ?? ""]));
}

async function sheets(log: string, asOf: bigint): Promise<Record<string, Row[]>> {
  const all: Record<string, Row[]> = {};
  for (const month of MONTHS) {
    for (const name of NAMES) {
      all[`${name} ${month}`] = await rowsOf(db, SOURCES[name], { log, asOf, month });
    }
  }
  return all;
}

/** Where entries before `asOf` cut the month off, or would now. */
function cutOff({ written }: TestLedger, month: string, asOf: bigint): bigint {
  const standing: EntryOf<"month_closing">[] = [];
  for (const { entry } of written.slice(0, Number(asOf))) {
    if (entry.kind === "month_closing") standing.push(entry);
    else if (entry.kind === "month_closing_withdrawn") standing.pop();
  }
  return standing.find(({ body }) => body.month === month)?.index ?? asOf;
}

interface Part {
  key: string[];
  figures: Record<"jobs" | "duration_ms" | "gross" | "charged" | "billable" | "adjustment", bigint>;
}

/** One for each usage and each line of an adjustment that is posted to the month. */
function partsOf({ written }: TestLedger, month: string, below: bigint): Part[] {
  const entries = written.slice(0, Number(below)).map(({ entry }) => entry);
  return entries.flatMap((entry) => {
    if (entry.kind === "usage" && entry.body.billing_month === month)
      return usagePart(entries, entry);
    if (entry.kind !== "adjustment" || entry.body.billing_month !== month) return [];
    return entry.body.lines.map((line) => {
      const about = line.entry === "" ? undefined : entries[Number(line.entry)];
      const { machine_type = "" } = about?.kind === "usage" ? about.body : {};
      const day = about?.kind === "usage" ? dayOf(about.body) : "";
      const key = [line.namespace_id, line.usage_month, day, line.project_id || "0", machine_type];
      const none = { jobs: 0n, duration_ms: 0n, gross: 0n, charged: 0n, billable: 0n };
      return {
        key: [...key, "hosted"],
        figures: { ...none, adjustment: parseSignedComputeMs(line.amount) },
      };
    });
  });
}

function usagePart(entries: readonly Entry[], { body }: EntryOf<"usage">): Part {
  const { job, usage } = reportIn(body.jws);
  const card = entries[Number(body.card)];
  if (card?.kind !== "rate_card") throw new Error("no card");
  const { runner_factors: rates } = card.body;
  const text = rates[body.machine_type] ?? rates["*"] ?? "";
  const [n = 0n, d = 1n] = text.split("/").map(BigInt);
  const charged = parseSignedComputeMs(body.compute_ms);
  const key = [job.root_namespace_id, body.usage_month, dayOf(body), job.project_id];
  return {
    key: [...key, body.machine_type, body.tracking],
    figures: {
      jobs: 1n,
      duration_ms: BigInt(usage.duration_ms),
      gross: nearest(BigInt(usage.duration_ms) * n * 1_000_000n, d),
      charged,
      billable: body.billable ? charged : 0n,
      adjustment: 0n,
    },
  };
}

function dayOf({ jws }: Body<"usage">): string {
  return reportIn(jws).usage.finished_at.slice(0, 10);
}

/** The whole number nearest to n/d; of two the even one. */
function nearest(n: bigint, d: bigint): bigint {
  const around = [n / d, n / d + 1n];
  const distance = (at: bigint): bigint => (n > at * d ? n - at * d : at * d - n);
  const [low = 0n, high = 0n] = around.map(distance);
  if (low === high) return around.find((at) => at % 2n === 0n) ?? 0n;
  return (low < high ? around[0] : around[1]) ?? 0n;
}

/** By key, in no order. */
function summed(parts: readonly Part[]): Map<string, Part> {
  const sums = new Map<string, Part>();
  for (const { key, figures } of parts) {
    const before = sums.get(key.join("\n"))?.figures;
    const names = Object.keys(figures) as (keyof Part["figures"])[];
    const sum = names.map((name) => [name, figures[name] + (before?.[name] ?? 0n)]);
    sums.set(key.join("\n"), { key, figures: Object.fromEntries(sum) });
  }
  return sums;
}

/** By the entries before an index that begin before the month ends: all begin at once here. */
function payerOf({ written }: TestLedger, namespace: string, below: bigint) {
  const accounts = written
    .slice(0, Number(below))
    .flatMap(({ entry }) => (entry.kind === "account" ? [entry.body] : []));
  const own = accounts.findLast(({ namespace_id }) => namespace_id === namespace);
  return own ?? accounts.findLast(({ namespace_id }) => namespace_id === "");
}

const amount = (row: Record<string, string>, part: string): bigint =>
  parseSignedComputeMs(row[`${part}_compute_ms`] ?? "");

function expectRecounted(
  ledger: TestLedger,
  month: string,
  asOf: bigint,
  rows: readonly Row[],
): void {
  const below = cutOff(ledger, month, asOf);
  const expected = summed(partsOf(ledger, month, below));
  expect(rows).toHaveLength(expected.size);
  for (const row of rows.map((each) => named("portal", each))) {
    const key = ["namespace_id", "usage_month", "day", "project_id", "machine_type", "tracking"];
    const part = expected.get(key.map((name) => row[name]).join("\n"))?.figures;
    if (part === undefined) throw new Error("a line of nothing");
    const { adjustment, billable, charged, gross } = part;
    expect([row["jobs"], row["duration_ms"]]).toEqual([
      String(part.jobs),
      String(part.duration_ms),
    ]);
    const figures = ["gross", "discount", "adjustment", "net", "billable", "not_billable"];
    expect(figures.map((name) => amount(row, name))).toEqual([
      ...[gross, gross - charged, adjustment, charged + adjustment],
      ...[billable + adjustment, charged - billable],
    ]);
    const parts = ["included", "pack", "overage", "absorbed"].map((name) => amount(row, name));
    expect(parts.reduce((sum, each) => sum + each, 0n)).toBe(amount(row, "billable"));
    const payer = payerOf(ledger, row["namespace_id"] ?? "", below);
    expect([row["account_id"], row["subscription_id"]]).toEqual([
      payer?.account_id ?? "",
      payer?.subscription_id ?? "",
    ]);
  }
}

/** As core/export/tables.ts says. */
function expectOrdered(name: Name, rows: readonly Row[]): void {
  const keys = rows.map((row) => {
    const cells = named(name, row);
    return ORDER[name].map((column) => {
      const { type } = TABLES[name].find((each) => each.name === column) ?? {};
      const cell = cells[column] ?? "";
      if (type === "integer") return cell.padStart(20, "0");
      return column === "day" && cell === "" ? "~" : cell;
    });
  });
  const lines = keys.map((key) => key.join("\u0000"));
  expect(lines).toEqual(lines.toSorted());
  expect(new Set(lines).size).toBe(lines.length);
}

/** By namespace and usage month, what lines come to. */
function expectAllocated(lines: readonly Row[], shares: readonly Row[]): void {
  const sums = new Map<string, bigint[]>();
  const PARTS = ["net", "not_billable", "included", "pack", "overage", "absorbed"];
  for (const row of lines.map((each) => named("portal", each))) {
    const key = `${row["namespace_id"]} ${row["usage_month"]}`;
    const before = sums.get(key);
    sums.set(
      key,
      PARTS.map((part, at) => amount(row, part) + (before?.[at] ?? 0n)),
    );
  }
  const parts = ["usage", "not_billable", "included", "drawn", "overage", "absorbed"];
  const expected = shares.map((each) => {
    const row = named("allocation", each);
    const key = `${row["namespace_id"]} ${row["usage_month"]}`;
    return [key, parts.map((part) => amount(row, part))] as const;
  });
  expect(Object.fromEntries(sums)).toEqual(Object.fromEntries(expected));
}

test("T51, T53: each line of the portal is a recount of entries in fractions, its parts add up to the allocation, and whatever comes later changes nothing", async () => {
  await fc.assert(
    fc.asyncProperty(histories, async (history) => {
      const telling = newTelling();
      const { ledger } = telling;
      const asked = new Map<bigint, Record<string, Row[]>>();
      for (const choice of history) {
        telling.tell(choice);
        if (choice.kind === "refresh") await telling.fold();
        if (choice.kind !== "ask") continue;
        await telling.load();
        asked.set(ledger.size, await sheets(ledger.log, ledger.size));
      }
      await telling.fold();
      asked.set(ledger.size, await sheets(ledger.log, ledger.size));
      for (const [asOf, before] of asked) {
        expect(await sheets(ledger.log, asOf)).toEqual(before);
        for (const month of MONTHS) {
          const lines = before[`portal ${month}`] ?? [];
          expectRecounted(ledger, month, asOf, lines);
          expectAllocated(lines, before[`allocation ${month}`] ?? []);
          for (const name of NAMES) expectOrdered(name, before[`${name} ${month}`] ?? []);
        }
      }
    }),
    { numRuns: 6 },
  );
}, 120_000);
