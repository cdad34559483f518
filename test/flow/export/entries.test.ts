/** Entries as a file: as of one index, the same by every way, and left alone when nobody reads on. */
import { afterAll, beforeAll, expect, test } from "vitest";
import { FORMATS, type Row } from "../../../src/core/export/tables.ts";
import { type Content, contentOf } from "../../../src/flow/export/content.ts";
import { entries } from "../../../src/flow/export/entries.ts";
import { connect } from "../../../src/store/connect.ts";
import { copyPieces } from "../../../src/store/copy.ts";
import { bytesOf, HOSTILE } from "../../format/sheet.ts";
import { type FreshDatabase, freshDatabase } from "../../postgres.ts";
import { HOSTED, OWN } from "../history.ts";
import { adjustMonth } from "../money/entries.ts";
import { newLedger } from "../quota/logs.ts";
import { inSnapshot, insertLines, insertUsages, made, rowsOf } from "./usages.ts";

/** Three pieces of a COPY, one of them for its many lines, and more than one group of rows. */
const LARGE = "e".repeat(32);
const LARGE_SIZE = 12_500;
const ADJUSTED = [12_000, 12_001] as const;
const LINES = 5_500;
const HEADER_BYTES_MAX = 1_000;

let db: FreshDatabase;

beforeAll(async () => {
  db = await freshDatabase();
  await insertUsages(db.owner, LARGE, { from: 0, to: LARGE_SIZE }, HOSTILE);
  for (const index of ADJUSTED) await insertLines(db.owner, LARGE, index, LINES);
});
afterAll(async () => {
  await db.drop();
});

const origin = (log: string, asOf: number | bigint, from = "0") => ({
  log,
  asOf: BigInt(asOf),
  parameters: { from },
});

test("an entry is a row, and so is each line of an adjustment behind it; what a kind has not is nothing", async () => {
  const { ledger, agent } = newLedger();
  ledger.report(agent, { job: 1, runner: HOSTED, namespace: 3, project: 30, duration: 1_000n });
  ledger.report(agent, { job: 2, runner: OWN });
  adjustMonth(
    ledger,
    "2026-11-01",
    { amount: "-0.500000", namespace_id: "3", project_id: "30", entry: "4" },
    { amount: "1.000000", namespace_id: "3" },
  );
  await ledger.load(db.owner);
  const rows = await inSnapshot(db.reader, async (tx) => {
    return await rowsOf(entries({ tx, ...origin(ledger.log, ledger.size) }));
  });
  const seen = ledger.written.map(({ leaf }) => Buffer.from(leaf).toString("base64"));
  const at = "2026-11-01T00:00:00.000Z";
  const nothing = Array.from({ length: 14 }, () => null);
  const month = "2026-11-01";
  const hosted = ["hosted", "1", "30", "3", "7", "r-1", "small", at, "1000", "333.333333"];
  const own = ["self_managed", "2", "10", "1", "8", "r-2", "own", at, "60000", "60000.000000"];
  const line = (n: string, project: string | null, amount: string): Row => [
    ...["7", n, "adjustment", at, seen[7] ?? "", "hosted", null, project, "3"],
    ...[null, null, null, null, null, null, amount, null, month, month],
  ];
  expect(rows).toEqual([
    ...["log", "rate_card", "rate_card", "enrolment"].map((kind, i) => {
      return [String(i), null, kind, at, seen[i], ...nothing];
    }),
    ...[["4", null, "key", at, seen[4], ...nothing]],
    ["5", null, "usage", at, seen[5], ...hosted, null, null, month, month],
    ["6", null, "usage", at, seen[6], ...own, null, "self_managed", month, month],
    ["7", null, "adjustment", at, seen[7], ...nothing],
    line("0", "30", "-0.500000"),
    line("1", null, "1.000000"),
  ]);
});

test("what PostgreSQL writes itself is to the byte what is written here, and counted alike", async () => {
  await inSnapshot(db.reader, async (tx) => {
    const sheet = entries({ tx, ...origin(LARGE, LARGE_SIZE) });
    const { csv: _, ...plain } = entries({ tx, ...origin(LARGE, LARGE_SIZE) });
    const [copied, written] = [contentOf(sheet, "csv"), contentOf(plain, "csv")];
    const text = async ({ bytes }: Content) => (await bytesOf(bytes)).toString("utf8");
    expect((await text(copied)) === (await text(written))).toBe(true);
    const figures = await copied.figures();
    expect(figures.rows).toBe(BigInt(LARGE_SIZE + ADJUSTED.length * LINES));
    expect(await written.figures()).toEqual(figures);
  });
});

test("T51: an export as of 1,002 entries has them all once, whatever is written before, meanwhile and after", async () => {
  const log = "5".repeat(32);
  await insertUsages(db.owner, log, { from: 0, to: 1_050 });
  const before = await made(db.reader, entries, origin(log, 1_002));
  const indices = await inSnapshot(db.reader, async (tx) => {
    const seen: (string | null | undefined)[] = [];
    let size = 1_050;
    for await (const page of entries({ tx, ...origin(log, 1_002) }).pages) {
      await insertUsages(db.owner, log, { from: size, to: size + 50 });
      size += 50;
      seen.push(...page.map(([index]) => index));
    }
    return seen;
  });
  expect(indices).toEqual(Array.from({ length: 1_002 }, (_, i) => String(i)));
  const after = await made(db.reader, entries, origin(log, 1_002));
  expect(after.bytes.equals(before.bytes)).toBe(true);
  expect(after.totals).toEqual(before.totals);
  expect(after.rows).toBe(1_002n);
});

test("entries from an index on are those that the whole file has from there on", async () => {
  const whole = await made(db.reader, entries, origin(LARGE, LARGE_SIZE));
  const first = await made(db.reader, entries, origin(LARGE, 12_001));
  const rest = await made(db.reader, entries, origin(LARGE, LARGE_SIZE, "12001"));
  const header = rest.bytes.indexOf("\n") + 1;
  const joined = Buffer.concat([first.bytes, rest.bytes.subarray(header)]);
  expect(joined.equals(whole.bytes)).toBe(true);
  expect(first.rows + rest.rows).toBe(whole.rows);
  const none = await made(db.reader, entries, origin(LARGE, 12_001, "12001"));
  expect(none.rows).toBe(0n);
  expect(none.bytes.toString("utf8")).toMatch(/^index,line,[a-z_,]*billing_month\r\n$/);
});

test("a reader that stops early leaves the connection, and its transaction, as they were", async () => {
  const sql = connect(db.urls.reader, { max: 1 });
  for (const format of FORMATS) {
    await inSnapshot(sql, async (tx) => {
      const { bytes } = contentOf(entries({ tx, ...origin(LARGE, LARGE_SIZE) }), format);
      let taken = 0;
      for await (const chunk of bytes) {
        taken += chunk.length;
        if (taken > HEADER_BYTES_MAX) break;
      }
      expect(await tx`select 1 as one`).toMatchObject([{ one: 1 }]);
    });
  }
  await expect(
    inSnapshot(sql, async (tx) => {
      for await (const _ of contentOf(entries({ tx, ...origin(LARGE, LARGE_SIZE) }), "csv").bytes) {
        throw new Error("the disk is full");
      }
    }),
  ).rejects.toThrow("the disk is full");
  expect(await sql`select 2 as two`).toMatchObject([{ two: 2 }]);
  await sql.end();
});

test("a COPY that fails, at once or half-way, fails for its reader, and the connection goes on", async () => {
  const sql = connect(db.urls.reader, { max: 1 });
  const [good, late] = ["select 1", "select 1 / (n - 5000) from generate_series(1, 9000) as n"];
  for (const queries of [["select 1 / 0"], [good, late], [good, good, "no query"]]) {
    const copied: string[] = [];
    const copying = inSnapshot(sql, async (tx) => {
      async function* asked() {
        yield* queries;
      }
      for await (const piece of copyPieces(tx, asked())) copied.push(piece.toString("utf8"));
    });
    await expect(copying).rejects.toThrow(/division by zero|syntax error/);
    expect(copied).toEqual(queries.slice(0, -1).map(() => "1\n"));
  }
  expect(await sql`select 2 as two`).toMatchObject([{ two: 2 }]);
  await sql.end();
});

test("a log is named by its id, or not at all", async () => {
  await inSnapshot(db.reader, async (tx) => {
    expect(() => entries({ tx, ...origin("a' or true --", 1) })).toThrow("not the id of a log");
  });
});
