/** What the service's database gives for each file is what the auditor makes of the entries, cell by cell. */
import fc from "fast-check";
import { afterAll, beforeAll, expect, test } from "vitest";
import { Book } from "../../../audit/export/book.ts";
import { entryRows } from "../../../audit/export/entries.ts";
import { Rated } from "../../../audit/export/rated.ts";
import { memoryPiles } from "../../../audit/tally/memory.ts";
import type { Parameters } from "../../../src/core/export/manifest.ts";
import type { Row, TableName } from "../../../src/core/export/tables.ts";
import { SOURCES } from "../../../src/flow/export/sources.ts";
import { snapshot } from "../../../src/flow/usage/show.ts";
import type { TestLedger } from "../../ledger.ts";
import { type FreshDatabase, freshDatabase } from "../../postgres.ts";
import { histories, MONTHS, Telling } from "./months.ts";

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

test("whatever happened, both sides make the same files of it, as of any entry", async () => {
  let logs = 0;
  await fc.assert(
    fc.asyncProperty(histories, fc.nat(99), async (history, share) => {
      logs += 1;
      const telling = new Telling(db, `f${String(logs).padStart(31, "0")}`);
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
      }
    }),
    { numRuns: 4 },
  );
});
