/** What leaves for finance follows from the log, cell by cell; whatever does not is named by row and column. */
import { join } from "node:path";
import { afterAll, beforeAll, expect, test } from "vitest";
import type { Parameters } from "../../../src/core/export/manifest.ts";
import {
  type Column,
  FORMATS,
  type Row,
  TABLES,
  type TableName,
} from "../../../src/core/export/tables.ts";
import { auditFiles, filesOf, vkeyText } from "../archive.ts";
import { command, type Ended, openHome, store } from "../command.ts";
import type { TestLog } from "../log.ts";
import { type Asked, CLOSED, type Exported, exported, honestRows, OPEN, richLog } from "./case.ts";
import { checked, resignedBy } from "./checking.ts";

const home = openHome();
afterAll(() => home.remove());
const archive = join(home.folder, "archive");
let log: TestLog;

beforeAll(() => {
  log = richLog();
  store(archive, filesOf(log, [20, log.size]));
});

const check = (made: Exported, ...more: string[]): Promise<Ended> =>
  checked({ folder: home.folder, archive }, made, more);
const resigned = (
  made: Exported,
  file: Uint8Array,
  said: Partial<Exported["manifest"]> = {},
): Exported => resignedBy(log, made, file, said);

const NAMES = Object.keys(TABLES) as TableName[];
const OF_MONTH: readonly TableName[] = ["allocation", "pack_rollforward", "portal"];
const CASES: [string, Asked][] = NAMES.flatMap((name) => {
  const months = OF_MONTH.includes(name) ? [CLOSED, OPEN] : [undefined];
  const monthly = name.startsWith("monthly") ? [CLOSED, undefined] : months;
  return monthly.flatMap((month) =>
    FORMATS.map((format): [string, Asked] => [
      `${name} ${month ?? "of all"} as ${format}`,
      { name, format, parameters: month === undefined ? {} : { month } },
    ]),
  );
});

test("the log that all of these are of is proven, its closed month's files included", async () => {
  const { findings, open } = await auditFiles(filesOf(log));
  expect(findings.listed).toEqual([]);
  expect(open.count).toBe(0);
});

test.each(CASES)("%s is what the log gives", async (_, asked) => {
  const made = await exported(log, asked);
  expect(Number(made.manifest.rows)).toBeGreaterThan(0);
  const ended = await check(made);
  expect(ended).toMatchObject({ exit: 0, out: expect.stringContaining("SAME") });
});

const PORTAL = { name: "portal", parameters: { month: CLOSED } } as const;
const LIST = `${"A".repeat(43)}=`;
const text = ({ file }: Exported): string => Buffer.from(file).toString("utf8");
const lines = (made: Exported): string[] => text(made).split("\r\n").slice(0, -1);
const joined = (rows: readonly string[]): Buffer => Buffer.from(`${rows.join("\r\n")}\r\n`);

const PLANTED: [string, string, (rows: readonly string[]) => readonly string[]][] = [
  [
    "one digit",
    "row 2: duration_ms",
    (rows) => rows.map((row, at) => (at === 2 ? row.replace(",90000,", ",90001,") : row)),
  ],
  [
    "two rows that change places",
    "row 2",
    ([head = "", a = "", b = "", ...rest]) => [head, b, a, ...rest],
  ],
  ["a row that is left out", "row 3: a row is missing before it", (rows) => rows.toSpliced(3, 1)],
  ["a last row that is left out", "a row is missing before it", (rows) => rows.slice(0, -1)],
  [
    "a row that comes twice",
    "row 4: the log gives no such row here",
    (rows) => rows.toSpliced(3, 0, rows[3] ?? ""),
  ],
  [
    "a row more at the end",
    "the log gives no such row here",
    (rows) => [...rows, rows.at(-1)?.replace("hosted", "hostel") ?? ""],
  ],
];

test.each(PLANTED)("%s is found, whoever signed it", async (_, said, plant) => {
  const made = await exported(log, PORTAL);
  const rows = lines(made);
  const planted = joined(plant(rows));
  expect(planted.equals(Buffer.from(made.file))).toBe(false);
  const altered = await check({ ...made, file: planted });
  expect(altered).toMatchObject({ exit: 1, out: expect.stringContaining("export-file") });
  expect(altered.out).toContain(said);
  const ended = await check(resigned(made, planted));
  expect(ended).toMatchObject({ exit: 1, out: expect.stringContaining(said) });
  expect(ended.out).not.toContain("export-file");
});

test.each<[string, (text: string) => string]>([
  ["guards taken away", (text) => text.replaceAll("'=", "=").replaceAll("''", "'")],
  ["a guard before a number", (text) => text.replace(",90000,", ",'90000,")],
  ["quotes that nothing needs", (text) => text.replace(",90000,", ',"90000",')],
  ["no last line end", (text) => text.slice(0, -2)],
])("CSV with %s has the same cells and is another file, whoever signed it", async (_, plant) => {
  const made = await exported(log, PORTAL);
  const planted = plant(text(made));
  expect(planted).not.toBe(text(made));
  const out = expect.stringContaining("its cells are not written as such a file has them");
  expect(await check(resigned(made, Buffer.from(planted)))).toMatchObject({ exit: 1, out });
});

test("one row at fault is one finding, and its neighbours are none", async () => {
  const made = await exported(log, { name: "entries" });
  const { out } = await check(resigned(made, joined(lines(made).toSpliced(5, 1))), "--json");
  expect(JSON.parse(out).findings.listed).toEqual([
    { code: "export-row", detail: "row 5: a row is missing before it: index 4, line (nothing)" },
  ]);
});

test.each(FORMATS)("a cell that was changed in %s is found", async (format) => {
  const rows = honestRows(log, log.size, "allocation", CLOSED);
  const changed = rows.map((row, at) => (at === 1 ? row.with(4, "140000.000001") : row));
  const made = await exported(log, {
    name: "allocation",
    format,
    parameters: { month: CLOSED },
    rows: changed,
  });
  const ended = await check(made);
  expect(ended).toMatchObject({
    exit: 1,
    out: expect.stringContaining("row 2: usage_compute_ms 140000.000001, not 140000.000000"),
  });
  expect(ended.out).toContain("export-totals: usage_compute_ms");
});

test("a manifest says of which entries it is: one of fewer is held to those", async () => {
  const made = await exported(log, { name: "monthly_namespace", asOf: log.size - 1 });
  expect((await check(made)).exit).toBe(0);
  const { as_of, range } = (await exported(log, { name: "monthly_namespace" })).manifest;
  const ended = await check(resigned(made, made.file, { as_of, range }));
  expect(ended).toMatchObject({ exit: 1, out: expect.stringContaining("export-row") });
});

test("entries from an index on are those, and their range says so", async () => {
  const made = await exported(log, { name: "entries", parameters: { from: "7" } });
  expect((await check(made)).exit).toBe(0);
  const whole = { from: "0", to: made.manifest.as_of };
  const ended = await check(resigned(made, made.file, { range: whole }));
  expect(ended).toMatchObject({ exit: 1, out: expect.stringContaining("export-root") });
});

test.each([
  ["counts other rows", { rows: "1000" }, "export-totals: 1000 rows, not"],
  ["sums a column otherwise", { totals: { jobs: "1" } }, "export-totals: jobs 1, not"],
  [
    "names a root that is not the tree's",
    { checkpoint: { root: `${"A".repeat(43)}=`, size: "20" } },
    "export-root",
  ],
  [
    "is of another instance",
    { instance: { platform: "dotcom", unique_id: "other" } as const },
    "export-root",
  ],
  ["has another column", { columns: ["index"] }, "export-manifest"],
])("a manifest that %s is found, signed or not", async (_, said, code) => {
  const made = await exported(log, { name: "entries" });
  const ended = await check(resigned(made, made.file, said));
  expect(ended).toMatchObject({ exit: 1, out: expect.stringContaining(code) });
});

test.each<[string, TableName, Parameters, string]>([
  ["an entry to begin with", "portal", { month: CLOSED, from: "1" }, "needs: from"],
  ["a price list", "portal", { month: CLOSED, prices_sha256: LIST }, "needs: prices_sha256"],
  ["a version of FOCUS", "portal", { month: CLOSED, focus_version: "9" }, "needs: focus_version"],
  ["credits, of every entry", "entries", { credit_minutes: "1" }, "needs: credit_minutes"],
  ["no month", "portal", {}, "needs: month"],
  ["names, and no column of names", "portal", { month: CLOSED, names: true }, "other columns"],
])("a manifest with %s, where such a file is none, is found", async (_, name, parameters, said) => {
  const made = await exported(log, name === "portal" ? PORTAL : { name });
  const range = { from: parameters.from ?? "0", to: made.manifest.as_of };
  const ended = await check(resigned(made, made.file, { parameters, range }));
  expect(ended).toMatchObject({ exit: 1, out: expect.stringContaining(said) });
});

test("a manifest that nobody signed, or that was signed for another, is no manifest", async () => {
  const made = await exported(log, { name: "account_map" });
  const other = await exported(log, { name: "entries" });
  const swapped = await check({ ...made, note: other.note });
  expect(swapped).toMatchObject({
    exit: 1,
    out: expect.stringContaining("its note is of another manifest"),
  });
  const broken = made.note.replace(/.{4}\n$/, "AAAA\n");
  const forged = await check({ ...made, note: broken });
  expect(forged).toMatchObject({ exit: 1, out: expect.stringContaining("export-manifest") });
  const strange = await check({ ...made, note: made.note.replaceAll("— test/", "— best/") });
  expect(strange).toMatchObject({ exit: 2, err: expect.stringContaining("by no given key") });
  const loose = await check({ ...made, json: `${made.json} ` });
  expect(loose.exit).toBe(1);
});

test.each([
  ["csv", "a,b\r\n"],
  ["csv", 'index,line\r\n"'],
  ["ndjson", '{"index":1}\n'],
  ["parquet", "PAR1 and nothing else"],
] as const)(
  "bytes that are no %s of these columns are a finding, and the manifest is judged all the same",
  async (format, bytes) => {
    const made = await exported(log, { name: "entries", format });
    const ended = await check(resigned(made, Buffer.from(bytes), { rows: "3" }));
    expect(ended).toMatchObject({ exit: 1, out: expect.stringContaining("export-file") });
    expect(ended.out).toContain("export-totals: 3 rows");
  },
);

test("Parquet is read only where it is the file of the manifest; all else is judged", async () => {
  const made = await exported(log, { name: "entries", format: "parquet" });
  const file = Buffer.concat([made.file, Buffer.from("\n")]);
  const ended = await check({ ...resigned(made, Buffer.from(made.file), { rows: "3" }), file });
  for (const said of ["export-file: ", "no row of it was looked at", "export-totals: 3 rows"]) {
    expect(ended).toMatchObject({ exit: 1, out: expect.stringContaining(said) });
  }
});

test("names are on no log: that they were not checked is said, and all else is", async () => {
  const names = ["namespace_name", "project_name"];
  const columns: Column[] = [
    ...TABLES.monthly_project,
    ...names.map((name): Column => ({ name, type: "text", nullable: true })),
  ];
  const rows = honestRows(log, log.size, "monthly_project", CLOSED);
  const named: Row[] = rows.map((row) => [...row, '=Größe, "x"\r\n', null]);
  const asked: Asked = {
    name: "monthly_project",
    parameters: { month: CLOSED, names: true },
    columns,
  };
  for (const format of FORMATS) {
    const ended = await check(await exported(log, { ...asked, format, rows: named }));
    expect(ended).toMatchObject({
      exit: 0,
      out: expect.stringContaining("does not say it: namespace_name, project_name"),
    });
  }
  const wrong = named.map((row) => row.with(4, "self_managed"));
  expect((await check(await exported(log, { ...asked, rows: wrong }))).exit).toBe(1);
});

test("credits are derived again, to their tenth digit", async () => {
  const credits: Column = { name: "credits", type: "decimal", places: 10 };
  const columns = [...TABLES.portal, credits];
  const rows = honestRows(log, log.size, "portal", CLOSED);
  const at = TABLES.portal.findIndex(({ name }) => name === "billable_compute_ms");
  // 100 compute minutes are one credit: 6,000,000 compute-ms.
  const credited = rows.map((row) => [...row, tenth(row[at] ?? "")]);
  const asked: Asked = {
    name: "portal",
    columns,
    parameters: { month: CLOSED, credit_minutes: "100" },
  };
  expect((await check(await exported(log, { ...asked, rows: credited }))).exit).toBe(0);
  const wrong = credited.map((row) => row.with(-1, "0.0000000001"));
  expect((await check(await exported(log, { ...asked, rows: wrong }))).out).toContain("credits");
});

function tenth(compute_ms: string): string {
  return (Number(compute_ms) / 6_000_000).toFixed(10);
}

test("what cannot be looked at is no finding: another log's file, a smaller archive, FOCUS", async () => {
  const made = await exported(log, { name: "account_map" });
  const other = resigned(made, made.file, { log: "f".repeat(32) });
  expect(await check(other)).toMatchObject({ exit: 2, err: expect.stringContaining("is of log") });
  const later = { root: made.manifest.checkpoint.root, size: "1000" };
  expect((await check(resigned(made, made.file, { checkpoint: later }))).exit).toBe(2);
  const gone = await command(
    "check-export",
    join(home.folder, "nowhere"),
    archive,
    "--vkey",
    vkeyText(),
  );
  expect(gone.exit).toBe(2);
});
