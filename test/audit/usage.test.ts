import { describe, expect, test } from "vitest";
import { exitOf } from "../../audit/print.ts";
import { readUsageFile, type UsageFile } from "../../audit/tally/usage.ts";
import { auditFiles, filesOf } from "./archive.ts";
import { honestLog } from "./honest.ts";
import { LOG_ID } from "./log.ts";

const EMPTY = { log: LOG_ID, query: {}, group: ["billing_month"], rows: [] };
const { log } = honestLog();
const FILES = filesOf(log, [20, log.size]);

const NOTHING = {
  jobs: "0",
  duration_ms: "0",
  gross_compute_ms: "0.000000",
  adjustment_compute_ms: "0.000000",
  compute_ms: "0.000000",
  billable_compute_ms: "0.000000",
  compute_minutes: "0.0000",
  amount_used: "0.00",
  shared_runners_duration: "0",
};
const HOSTED = {
  jobs: "6",
  duration_ms: "300004",
  gross_compute_ms: "182002500.000000",
  adjustment_compute_ms: "-1.000000",
  compute_ms: "182002500.000000",
  billable_compute_ms: "182002500.000000",
  compute_minutes: "3033.3750",
  amount_used: "3033.38",
  shared_runners_duration: "300",
};

type Row = Record<string, string>;

/** The audit's own figures, in the form of an answer of the service. */
async function answer(change: (rows: Row[]) => Row[] = (rows) => rows): Promise<object> {
  const { months } = await auditFiles(FILES);
  const rows = months.map((month) => ({
    billing_month: month.billing_month,
    tracking: month.tracking,
    ...figures(month.jobs, month.duration, month.compute, month.billable),
  }));
  const sum = (pick: (month: (typeof months)[number]) => bigint): bigint =>
    months.reduce((total, month) => total + pick(month), 0n);
  const totals = figures(
    sum(({ jobs }) => jobs),
    sum(({ duration }) => duration),
    sum(({ compute }) => compute),
    sum(({ billable }) => billable),
  );
  const group = ["billing_month", "tracking"];
  return {
    log: LOG_ID,
    as_of: String(log.size),
    sealed: true,
    query: {},
    group,
    rows: change(rows),
    totals,
  };
}

function figures(jobs: bigint, duration: bigint, compute: bigint, billable: bigint): Row {
  const minutes = (places: number): string => {
    const scale = 10n ** BigInt(places);
    const rounded = (compute * scale * 2n + 60_000_000_000n) / 120_000_000_000n;
    return `${rounded / scale}.${String(rounded % scale).padStart(places, "0")}`;
  };
  const ms = (micro: bigint): string =>
    `${micro / 1_000_000n}.${String(micro % 1_000_000n).padStart(6, "0")}`;
  return {
    jobs: String(jobs),
    duration_ms: String(duration),
    gross_compute_ms: ms(compute),
    adjustment_compute_ms: "0.000000",
    compute_ms: ms(compute),
    billable_compute_ms: ms(billable),
    compute_minutes: minutes(4),
    amount_used: minutes(2),
    shared_runners_duration: String(duration / 1000n),
  };
}

function read(document: object): UsageFile {
  const file = readUsageFile("usage.json", JSON.stringify(document));
  if (file === undefined) throw new Error("not a usage file");
  return file;
}

async function codes(document: object): Promise<string[]> {
  const result = await auditFiles(FILES, { usage: [read(document)] });
  return [...result.findings.byCode.keys(), ...result.open.byCode.keys()];
}

test("figures that the entries give are proven", async () => {
  const result = await auditFiles(FILES, { usage: [read(await answer())] });
  expect(exitOf(result)).toBe(0);
});

/** What is not nothing in any row. */
const CHARGED = Object.keys(NOTHING).filter((name) => name !== "adjustment_compute_ms");

describe("a figure that the entries do not give is found", () => {
  test.each(CHARGED)("%s of a row", async (name) => {
    const document = await answer((rows) => {
      const [first, ...rest] = rows;
      const value = NOTHING[name as keyof typeof NOTHING];
      return first === undefined ? [] : [{ ...first, [name]: value }, ...rest];
    });
    expect(await codes(document)).toContain("usage-row");
  });

  test.each(Object.keys(NOTHING))("%s of the totals", async (name) => {
    const document = { ...(await answer()) } as { totals: Row };
    document.totals = { ...document.totals, [name]: HOSTED[name as keyof typeof HOSTED] };
    expect(await codes(document)).toEqual(["usage-totals"]);
  });
});

test("a row that is not there is missed, and one too many is found", async () => {
  expect(await codes(await answer((rows) => rows.slice(1)))).toContain("usage-row-missing");
  const more = await answer((rows) => [
    ...rows,
    { ...rows[0], ...HOSTED, billing_month: "2026-12-01", tracking: "hosted" },
  ]);
  expect(await codes(more)).toContain("usage-row");
});

describe("what an answer asks for is what it must hold", () => {
  const ALL = { log: LOG_ID, as_of: String(log.size), group: ["billing_month"] };
  const nothing = { ...ALL, rows: [], totals: NOTHING };

  test("without bounds that is the whole log: no month can be cut out", async () => {
    expect(await codes({ ...nothing, query: {} })).toEqual(["usage-row-missing"]);
    for (let gone = 0; gone < 2; gone += 1) {
      const cut = await answer((rows) => rows.toSpliced(gone, 1));
      expect(await codes(cut)).toContain("usage-row-missing");
    }
  });

  test.each([
    { from: "2026-12-01" },
    { from: "2030-01-01", to: "2030-02-01" },
    { to: "2026-11-01" },
    { namespaces: [] },
    { namespaces: ["1001"] },
    { project: "1001" },
    { runner: "1001" },
    { machine_type: "quantum" },
  ])("nothing, where the log holds nothing of %j", async (query) => {
    expect(await codes({ ...nothing, query })).toEqual([]);
  });

  test.each([
    { from: "2026-11-01" },
    { to: "2026-12-01" },
    { tracking: "hosted" },
    { tracking: "self_managed" },
    { namespaces: ["1001", "5"] },
    { project: "10" },
    { runner: "8" },
    { machine_type: "gpu" },
  ])("something, where the log holds something of %j", async (query) => {
    expect(await codes({ ...nothing, query })).toEqual(["usage-row-missing"]);
  });

  test("a part of the log is proven as that part", async () => {
    const document = await answer((rows) =>
      rows.filter((row) => row["tracking"] === "self_managed"),
    );
    const { rows } = document as { rows: Row[] };
    const [{ billing_month, tracking, ...totals }] = rows as [Row];
    expect([rows.length, billing_month, tracking]).toEqual([1, "2026-11-01", "self_managed"]);
    expect(await codes({ ...document, totals, query: { tracking } })).toEqual([]);
    expect(await codes({ ...document, totals, query: { namespaces: ["5"] } })).toEqual([]);
    expect(await codes({ ...document, totals, query: {} })).toEqual(["usage-row-missing"]);
  });
});

test("figures are held against the entries up to the file's as_of, and no further", async () => {
  const before = { ...EMPTY, as_of: "11", totals: NOTHING };
  expect(await codes(before)).toEqual([]);
  const one = { ...figures(1n, 60_001n, 60_001_000_000n, 60_001_000_000n) };
  const rows = [
    {
      billing_month: "2026-11-01",
      namespace: "1",
      project: "10",
      runner: "7",
      machine_type: "small",
      usage_month: "2026-11-01",
      ...one,
    },
  ];
  const group = ["billing_month", "namespace", "project", "runner", "machine_type", "usage_month"];
  expect(await codes({ ...EMPTY, as_of: "12", group, rows, totals: one })).toEqual([]);
});

test("a file that reaches past the largest checkpoint is not judged, and never a pass", async () => {
  const document = { ...(await answer()), as_of: String(log.size + 1) };
  const result = await auditFiles(FILES, { usage: [read(document)] });
  expect(exitOf(result)).toBe(2);
  expect(result.open.first?.code).toBe("usage-as-of");
});

const ANSWER = {
  log: "x",
  as_of: "1",
  query: {},
  group: ["billing_month"],
  rows: [],
  totals: NOTHING,
};

test("an answer is read", () => {
  expect(readUsageFile("x", JSON.stringify(ANSWER))).toMatchObject({ log: "x", asOf: 1n });
});

test.each(["", "[]", "null", "{}"])("a text that is no answer is not read: %s", (text) => {
  expect(readUsageFile("x", text)).toBeUndefined();
});

test.each([
  { totals: undefined },
  { as_of: 1 },
  { rows: [{}] },
  { rows: [NOTHING] },
  { group: [], rows: [NOTHING, NOTHING] },
  { group: [], rows: [{ ...NOTHING, jobs: "-1" }] },
  { group: ["runner"], rows: [{ ...NOTHING, runner: 7 }] },
  { totals: { ...NOTHING, compute_ms: "1e9" } },
])("a text of another form than an answer's is not read: %j", (change) => {
  expect(readUsageFile("x", JSON.stringify({ ...ANSWER, ...change }))).toBeUndefined();
});

test.each<object>([
  { query: undefined },
  { query: [] },
  { query: { weather: "fine" } },
  { query: { from: 1 } },
  { query: { constructor: "x" } },
  { query: { namespaces: "1" } },
  { query: { namespaces: [1] } },
  { group: undefined },
  { group: ["weather"] },
  { group: ["runner", "runner"] },
])(
  "an answer that does not say what it sums, in words of this version, is not read: %j",
  (change) => {
    expect(readUsageFile("x", JSON.stringify({ ...ANSWER, ...change }))).toBeUndefined();
  },
);
