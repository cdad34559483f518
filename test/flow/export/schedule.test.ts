/** Exports that nobody asks for: each of them once, where they are to be, and gone when their time is over. */
import { mkdir, mkdtemp, readdir, readFile, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, beforeEach, expect, onTestFinished, test, vi } from "vitest";
import { startExporting } from "../../../src/command/exporting.ts";
import { type Delivering, deliverDue } from "../../../src/flow/export/deliver.ts";
import { expireDue } from "../../../src/flow/export/expire.ts";
import { lateExports } from "../../../src/flow/export/late.ts";
import { make } from "../../../src/flow/export/make.ts";
import { parseManifest } from "../../../src/flow/export/read.ts";
import { askDue, Rule, type Scheduling } from "../../../src/flow/export/schedule.ts";
import { folderExports } from "../../../src/store/export-files-folder.ts";
import { openExports } from "../../../src/store/export-location.ts";
import { listPending } from "../../../src/store/exports.ts";
import { openLog } from "../../../src/telemetry.ts";
import { startS3 } from "../../s3.ts";
import { type Desk, leaves, openDesk } from "./making.ts";

const DAY_MS = 86_400_000;
const CLOSED = "2026-10-01";
const CUT_OFF = 4n;

let desk: Desk;
let target: string;
let start: number;
beforeAll(async () => {
  desk = await openDesk();
  await desk.grow(10);
  await desk.sql`
    insert into month_ends (log, month, index, closing)
    values (${desk.log}, ${CLOSED}, 5, ${CUT_OFF})`;
  target = await mkdtemp(join(tmpdir(), "minutebook-delivered-"));
  start = desk.door.now;
});
afterAll(async () => {
  await rm(target, { recursive: true });
  await desk.close();
});
beforeEach(async () => {
  await desk.sql`delete from exports`;
  desk.door.now = start;
});

const RULE = { name: "entries", format: "csv", logs: "*" } as const;

function scheduling(rules: object[], closingSet: Scheduling["closingSet"] = []): Scheduling {
  return { ...desk.making, rules: rules.map((rule) => Rule.parse(rule)), closingSet };
}

async function listed(): Promise<object[]> {
  return await desk.sql`
    select name, parameters, as_of, kept, asked_by from exports order by name, number`;
}

async function makeAll(): Promise<void> {
  for (let after = 0n; ; ) {
    const [row] = await listPending(desk.sql, after, 1);
    if (row === undefined) return;
    after = row.number;
    const sources = { entries: leaves, account_map: leaves, portal: leaves };
    await make({ ...desk.making, sources }, row);
  }
}

test("of two processes one asks: once a day, and again on the next", async () => {
  const daily = scheduling([
    { ...RULE, every: "day" },
    { ...RULE, every: "day", name: "monthly_project" },
  ]);
  for (const _ of [1, 2]) await Promise.all([1, 2, 3].map(() => askDue(daily)));
  const size = (await desk.sql`select size from seals`)[0]?.["size"];
  const said = { as_of: size, kept: false, asked_by: "" };
  expect(await listed()).toEqual([
    { name: "entries", parameters: "{}", ...said },
    { name: "monthly_project", parameters: '{"month":"2026-11-01"}', ...said },
  ]);
  desk.door.now += DAY_MS;
  await Promise.all([1, 2].map(() => askDue(daily)));
  expect(await listed()).toHaveLength(4);
});

test("a day's file is of the month that the day before lies in", async () => {
  desk.door.now = Date.parse("2026-12-01T00:00:05.000Z");
  await askDue(scheduling([{ ...RULE, every: "day", name: "portal" }]));
  expect(await listed()).toMatchObject([{ parameters: '{"month":"2026-11-01"}' }]);
});

test("of a closed month each file of its closing set is asked for once, as of the cut-off, and kept", async () => {
  const set = scheduling([{ ...RULE, every: "month_closed" }], ["account_map", "portal"]);
  for (const _ of [1, 2]) await Promise.all([1, 2, 3].map(() => askDue(set)));
  const said = { as_of: CUT_OFF, kept: true, asked_by: "" };
  expect(await listed()).toEqual([
    { name: "account_map", parameters: "{}", ...said },
    { name: "entries", parameters: "{}", ...said },
    { name: "portal", parameters: '{"month":"2026-10-01"}', ...said },
  ]);
});

test("a rule is for the logs that it names", async () => {
  await askDue(scheduling([{ ...RULE, every: "day", logs: ["f".repeat(32)] }]));
  expect(await listed()).toEqual([]);
  await askDue(scheduling([{ ...RULE, every: "day", logs: [desk.log] }]));
  expect(await listed()).toHaveLength(1);
});

test.each([
  [{ ...RULE, every: "day", focus_version: "1.2" }],
  [{ ...RULE, every: "week" }],
  [{ ...RULE, every: "day", month: "2026-11-01" }],
  [{ ...RULE, every: "day", logs: [] }],
])("%j is no rule", (rule) => {
  expect(Rule.safeParse(rule).success).toBe(false);
});

function delivering(failures: unknown[]): Delivering {
  const onFailure = (error: unknown): void => void failures.push(error);
  return { ...desk.making, open: openExports, onFailure };
}

test("a copy is delivered with its manifest and note, once the place takes it, and once", async () => {
  const to = join(target, "first", "exports");
  await askDue(scheduling([{ ...RULE, every: "month_closed", to }]));
  const failures: unknown[] = [];
  await deliverDue(delivering(failures));
  await makeAll();
  await deliverDue(delivering(failures));
  expect(failures).toMatchObject([{ code: "exports-unavailable" }]);

  await mkdir(join(target, "first"));
  await Promise.all([1, 2].map(() => deliverDue(delivering(failures))));
  const folder = join(to, desk.log);
  const file = `entries-${CUT_OFF}.csv`;
  const names = [file, `${file}.manifest.json`, `${file}.manifest.note`];
  expect((await readdir(folder)).sort()).toEqual(names);
  const [content, manifest, note] = await Promise.all(
    names.map((name) => readFile(join(folder, name), "utf8")),
  );
  expect(parseManifest(manifest ?? "")).toMatchObject({
    bytes: String(content?.length),
    rows: "4",
  });
  expect(note).toContain(`door.test/${desk.log}/export\nentries\n`);
  await rm(folder, { recursive: true });
  await deliverDue(delivering(failures));
  expect(failures).toHaveLength(1);
  expect(await readdir(to)).not.toContain(desk.log);
});

test("a place that takes nothing is asked once in a round, and what goes elsewhere is delivered", async () => {
  const away = join(target, "away", "exports");
  const there = join(target, "there");
  const rules = [
    { ...RULE, to: away },
    { ...RULE, to: away, format: "ndjson" },
    { ...RULE, to: there },
  ];
  await askDue(scheduling(rules.map((rule) => ({ ...rule, every: "month_closed" }))));
  await makeAll();
  const failures: unknown[] = [];
  await deliverDue(delivering(failures));
  expect(failures).toMatchObject([{ code: "exports-unavailable" }]);
  expect(await readdir(join(there, desk.log))).toHaveLength(3);
});

test("a file that is damaged where it is kept, or gone, is delivered to nobody, and made again", async () => {
  const to = join(target, "sound");
  await askDue(scheduling([{ ...RULE, every: "month_closed", to }]));
  const failures: unknown[] = [];
  for (const spoil of [
    async (path: string, content: string) => await writeFile(path, content.replace("1", "2")),
    async (path: string, content: string) => await writeFile(path, `${content}\n`),
    async (path: string) => await rm(path),
  ]) {
    await makeAll();
    const [row] = await desk.sql`select id from exports where format = 'csv'`;
    const path = join(desk.folder, desk.log, `${row?.["id"]}.csv`);
    await spoil(path, await readFile(path, "utf8"));
    // With it something that is whole, behind it and to the same place.
    await askDue(scheduling([{ ...RULE, every: "month_closed", format: "ndjson", to }]));
    await makeAll();
    await deliverDue(delivering(failures));
    expect(await readdir(join(to, desk.log))).toHaveLength(3);
  }
  expect(failures.map(String)).toEqual(Array(3).fill(expect.stringMatching(/is made again$/)));
  await makeAll();
  await deliverDue(delivering(failures));
  expect(failures).toHaveLength(3);
  expect(await readdir(join(to, desk.log))).toHaveLength(6);
});

test("a place that never answers keeps nothing from being asked for, and no process from stopping", async () => {
  const silent = await startS3();
  onTestFinished(() => silent.close());
  silent.fault = () => "silent";
  const stop = new AbortController();
  const rules = [Rule.parse({ ...RULE, every: "month_closed", to: silent.url })];
  const { done } = startExporting({
    ...{ ...desk.making, signal: stop.signal, roundMs: 10, log: openLog("silent") },
    writerUrl: desk.house.database.urls.writer,
    exports: { url: undefined, keptMs: DAY_MS, rules, prices: undefined },
    service: { version: "1", schema_sha256: "" },
  });
  await vi.waitUntil(() => silent.asked.length > 0, { timeout: 20_000 });
  // As if another month had been closed now.
  await desk.sql`delete from exports where origin like 'closing/%'`;
  const again = () => desk.sql`select from exports where origin like 'closing/%'`;
  await vi.waitUntil(async () => (await again()).length > 0, { timeout: 20_000 });
  stop.abort();
  await done;
  expect(await desk.sql`select from exports where delivered_at is not null`).toEqual([]);
});

test("what is not kept goes when its time is over, the file before its row; what is kept stays", async () => {
  const monthly = { ...RULE, every: "month_closed", name: "account_map", format: "ndjson" };
  await askDue(scheduling([{ ...RULE, every: "day" }, monthly]));
  await makeAll();
  const failures: unknown[] = [];
  const kept = { ...delivering(failures), keptMs: DAY_MS };
  await expireDue(kept);
  expect(await listed()).toHaveLength(2);
  const files = async () => (await readdir(join(desk.folder, desk.log))).length;
  const before = await files();
  desk.door.now += DAY_MS + 1;
  // A crash between the two: the row is found again.
  const gone = { ...desk.making.files, remove: () => Promise.reject(new Error("crash")) };
  await expireDue({ ...kept, files: gone });
  expect(failures).toEqual([new Error("crash")]);
  expect(await listed()).toHaveLength(2);
  for (const _ of [1, 2]) await expireDue(kept);
  expect(await listed()).toMatchObject([{ name: "account_map" }]);
  expect(await files(), "with its note").toBe(before - 2);
});

test("one file that cannot be removed keeps no other from its end", async () => {
  await askDue(scheduling(["csv", "ndjson"].map((format) => ({ ...RULE, every: "day", format }))));
  await makeAll();
  const [first] = await desk.sql`select id from exports where format = 'csv'`;
  const path = join(desk.folder, desk.log, `${first?.["id"]}.csv`);
  await rm(path);
  await mkdir(path);
  desk.door.now += DAY_MS + 1;
  const failures: unknown[] = [];
  await expireDue({ ...delivering(failures), keptMs: DAY_MS });
  expect(failures).toMatchObject([{ code: "exports-unavailable" }]);
  expect(await desk.sql`select format from exports`).toEqual([{ format: "csv" }]);
});

test("a copy whose place is away for longer than files are kept is delivered all the same", async () => {
  const to = join(target, "long", "exports");
  await askDue(scheduling([{ ...RULE, every: "day", to }]));
  await makeAll();
  desk.door.now += 2 * DAY_MS;
  const kept = { ...delivering([]), keptMs: DAY_MS };
  await deliverDue(kept);
  await expireDue(kept);
  await mkdir(join(target, "long"));
  await deliverDue(kept);
  expect(await readdir(join(to, desk.log))).toHaveLength(3);
  await expireDue(kept);
  expect(await listed()).toEqual([]);
});

test("a place that never comes back is told of after a day, and no day's file waits twice its time", async () => {
  const to = join(target, "gone", "exports");
  await askDue(scheduling(["day", "month_closed"].map((every) => ({ ...RULE, every, to }))));
  await makeAll();
  const kept = { ...delivering([]), keptMs: DAY_MS };
  for (const [ms, undelivered, left] of [
    [DAY_MS, 0, 2],
    [2 * DAY_MS, 2, 2],
    [2 * DAY_MS + 1, 1, 1],
  ] as const) {
    desk.door.now = start + ms;
    await expireDue(kept);
    expect(await listed()).toHaveLength(left);
    expect(await lateExports(desk.making)).toEqual({ failing: 0, undelivered });
  }
});

test("what failed on a schedule is asked for again after an hour; what waits is left alone", async () => {
  const set = scheduling([], ["account_map"]);
  await askDue(set);
  // Where nothing was ever written.
  const kept = { ...delivering([]), files: folderExports(join(target, "never")), keptMs: 1 };
  desk.door.now += 2 * DAY_MS;
  await expireDue(kept);
  expect(await listed()).toHaveLength(1);
  expect(await lateExports(desk.making)).toMatchObject({ failing: 1 });
  const [row] = await listPending(desk.sql, 0n, 1);
  if (row === undefined) throw new Error("nothing waits");
  await expect(make(desk.making, row)).rejects.toThrow("nothing makes account_map");
  await expireDue(kept);
  await askDue(set);
  expect(await desk.sql`select state from exports`).toEqual([{ state: "failed" }]);
  expect(await lateExports(desk.making), "said for as long").toMatchObject({ failing: 1 });
  desk.door.now += 3_600_001;
  await expireDue(kept);
  await askDue(set);
  expect(await desk.sql`select state from exports`).toEqual([{ state: "pending" }]);
});
