/** What accounts pay for, against a naive recount in plain fractions, and as of any size. */
import fc from "fast-check";
import { afterAll, beforeAll, expect, test } from "vitest";
import { parseSignedComputeMs } from "../../../src/core/charge.ts";
import { ORDER, type Row, TABLES } from "../../../src/core/export/tables.ts";
import { allocation } from "../../../src/flow/export/allocation.ts";
import { focus } from "../../../src/flow/export/focus.ts";
import { packRollforward } from "../../../src/flow/export/pack-rollforward.ts";
import { portal } from "../../../src/flow/export/portal.ts";
import { snapshot } from "../../../src/flow/usage/show.ts";
import type { TestLedger } from "../../ledger.ts";
import { type FreshDatabase, freshDatabase } from "../../postgres.ts";
import { LIMIT, PACK } from "../quota/logs.ts";
import { histories, MONTHS, pageSizes, rowsOf, Telling } from "./months.ts";
import { cutOff, partsOf, payerOf, summed } from "./portal-recount.ts";

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

/** As many usages of namespace 1 in October, each of another project, past the door and all that is beside. */
async function manyProjects({ ledger }: Telling, count: number, card = "1"): Promise<bigint> {
  const { log, size } = ledger;
  const hash = new Uint8Array(32);
  const begin = `{"at":"2026-11-20T00:00:00.000Z","body":{"billable":true,"billing_month":"${MONTHS[1]}"`;
  const bytes = new TextEncoder().encode(`${begin},"card":"${card}","class":"standard"}}`);
  await db.owner`
    insert into entries (
      log, index, kind, at, prev, leaf, bytes, tracking, job_id, project_id, namespace_id,
      runner_uuid, runner_id, machine_type, duration_ms, compute_ms, not_billable, usage_month,
      billing_month, finished_at
    )
    select
      ${log}, ${size} + n, 'usage', '2026-11-20T00:00:00Z', ${hash}, ${hash}, ${bytes}, 'hosted', n, n, 1,
      'r-1', 7, 'small', 180000, 60000.000000, '', ${MONTHS[1]}, ${MONTHS[1]}, '2026-10-09T00:00:00Z'
    from generate_series(0, ${count - 1}) as n`;
  const grown = size + BigInt(count);
  await db.owner`update heads set size = ${grown} where log = ${log}`;
  return grown;
}

test("a namespace of more lines than are in memory at once is dealt as one, in the order of its lines", async () => {
  const telling = newTelling();
  const said = { beyond: "bill", monthly_minutes: "1500", namespace_id: "1" } as const;
  telling.ledger.append("quota", { ...LIMIT, ...said });
  await telling.load();
  const asOf = await manyProjects(telling, 2_500);
  const lines = await rowsOf(db, portal, { log: telling.ledger.log, asOf, month: MONTHS[1] });
  const parts = lines.map((line) => {
    const row = named("portal", line);
    return ["included", "overage"].map((part) => row[`${part}_compute_ms`]);
  });
  const minute = ["60000.000000", "0.000000"];
  expect(parts).toEqual([...Array(1_500).fill(minute), ...Array(1_000).fill(minute.toReversed())]);
});

test.each([
  ["portal", portal],
  ["focus", focus(undefined)],
] as const)(
  "%s reads what is not folded yet once for a namespace, and not for each page of its lines",
  async (_, source) => {
    const telling = newTelling();
    const said = { beyond: "bill", monthly_minutes: "500", namespace_id: "1" } as const;
    telling.ledger.append("quota", { ...LIMIT, ...said });
    const bought = { minutes: "700", namespace_id: "1", purchased_in: MONTHS[1] };
    telling.ledger.append("pack", { ...PACK, ...bought });
    await telling.load();
    const asOf = await manyProjects(telling, 2_000);
    const { log } = telling.ledger;
    /** Rows of `entries` that it takes to make all of the file. */
    const read = async (pageRows: number): Promise<number> =>
      await snapshot(db.reader, async (tx) => {
        const sofar = async (): Promise<number> => {
          const [row] = await tx<[{ read: number }]>`
          select (seq_tup_read + coalesce(idx_tup_fetch, 0))::int as read
          from pg_stat_xact_user_tables
          where relname = 'entries'`;
          return row.read;
        };
        const before = await sofar();
        let rows = 0;
        const parameters = { month: MONTHS[1] };
        for await (const page of source({ tx, log, asOf, parameters, pageRows }).pages) {
          rows += page.length;
        }
        expect(rows).toBeGreaterThanOrEqual(2_000);
        return (await sofar()) - before;
      });
    const once = await read(5_000);
    expect((await read(50)) - once).toBeLessThan(2_000);
  },
);

test("a usage that no card has a rate for is no line, and nothing is said of its month", async () => {
  const telling = newTelling();
  await telling.load();
  const asOf = await manyProjects(telling, 1, "0");
  const of = { log: telling.ledger.log, asOf, month: MONTHS[1] };
  await expect(rowsOf(db, portal, of)).rejects.toThrow("no rate for its machine");
});

test("credits are the billable usage of a line, where it is said how many minutes one is", async () => {
  const telling = newTelling();
  await telling.load();
  const asOf = await manyProjects(telling, 1);
  const { log } = telling.ledger;
  await snapshot(db.reader, async (tx) => {
    const parameters = { month: MONTHS[1], credit_minutes: "7" };
    const { columns, pages } = portal({ tx, log, asOf, parameters });
    expect(columns.at(-1)).toEqual({ name: "credits", type: "decimal", places: 10 });
    for await (const page of pages) expect(page.map((row) => row.at(-1))).toEqual(["0.1428571429"]);
  });
});

test("a file that is of a month is not made without one", async () => {
  const telling = newTelling();
  await telling.load();
  const { log, size: asOf } = telling.ledger;
  await snapshot(db.reader, async (tx) => {
    for (const source of Object.values(SOURCES)) {
      const { pages } = source({ tx, log, asOf, parameters: {} });
      await expect(pages[Symbol.asyncIterator]().next()).rejects.toThrow("invalid-request");
    }
  });
});

test("T51, T53: each line of the portal is a recount of entries in fractions, its parts add up to the allocation, and whatever comes later changes nothing", async () => {
  await fc.assert(
    fc.asyncProperty(histories, pageSizes, async (history, pageRows) => {
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
          const paged = { log: ledger.log, asOf, month, pageRows };
          expect(await rowsOf(db, portal, paged)).toEqual(lines);
          expectRecounted(ledger, month, asOf, lines);
          expectAllocated(lines, before[`allocation ${month}`] ?? []);
          for (const name of NAMES) expectOrdered(name, before[`${name} ${month}`] ?? []);
        }
      }
    }),
    { numRuns: 5 },
  );
});
