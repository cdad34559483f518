/** The files of a closed month: what its entry and its statement name, and what they all come to. */
import { mkdtemp, readdir, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, expect, onTestFinished, test, vi } from "vitest";
import { run } from "../../../audit/command/program.ts";
import { parseSignedComputeMs } from "../../../src/core/charge.ts";
import type { EntryOf } from "../../../src/core/entry.ts";
import { type Row, TABLES, type TableName } from "../../../src/core/export/tables.ts";
import { parseCanonical } from "../../../src/core/json.ts";
import { Statement } from "../../../src/core/month/statement.ts";
import { formatVkey } from "../../../src/core/note.ts";
import { encodeUtf8 } from "../../../src/core/text.ts";
import { nextMonth } from "../../../src/core/unit.ts";
import type { NewExport } from "../../../src/flow/export/ask.ts";
import { CLOSING_SET, closingSet } from "../../../src/flow/export/closing-set.ts";
import { SOURCES } from "../../../src/flow/export/sources.ts";
import { finish } from "../../../src/flow/month/finish.ts";
import { allocationsOf, packRollsOf } from "../../../src/flow/month/read.ts";
import { usage } from "../../../src/flow/usage/usage.ts";
import { folderExports } from "../../../src/store/export-files-folder.ts";
import { statementPage } from "../../../src/web/statement.tsx";
import { closeHouse, type House, ofKind, openHouse, vkeyOf } from "../door.ts";
import { outcomeOf } from "../export/making.ts";
import { rowsOf } from "../export/months.ts";
import { type Build, type MonthDesk, openDesk } from "./desk.ts";

const OCTOBER = "2026-10-01";
const NOVEMBER = "2026-11-01";
const DECEMBER = "2026-12-01";
const JANUARY = "2027-01-01";

let house: House;
let desk: MonthDesk;
/** Where exports are kept. */
let folder: string;

beforeAll(async () => {
  house = await openHouse();
  folder = await mkdtemp(join(tmpdir(), "minutebook-closing-set-"));
  desk = await openDesk(house, "closing-set", { since: "2026-10-20T12:00:00.000Z" });
  await desk.limit("7", { monthly_minutes: "10", beyond: "bill" });
  await desk.limit("8", { monthly_minutes: "10", beyond: "stop" });
  await desk.pack("7", { minutes: "5", purchased_in: OCTOBER, expires_in: NOVEMBER });
  const open = {
    class: "open_source",
    effective_from: "2026-01-01T00:00:00.000Z",
    project_id: "51",
  };
  const salt = `${"A".repeat(22)}==`;
  await desk.put("project_class", { ...open, approval: "", by: "p_test", salt, source: "test" });
  await built(
    { job: "1", namespace: "7", minutes: 12, finished: "2026-10-02T23:59:59.999Z" },
    { job: "2", namespace: "7", minutes: 9, finished: "2026-10-03T00:00:00.000Z" },
    { job: "3", namespace: "8", project: "51", minutes: 26, finished: "2026-10-04T00:00:00.000Z" },
    { job: "4", namespace: "9", minutes: 2, finished: "2026-10-05T00:00:00.000Z", reason: FAILED },
    { job: "5", namespace: "9", minutes: 3, finished: "2026-10-05T01:00:00.000Z" },
  );
  await desk.adjust(OCTOBER, { namespace_id: "7", usage_month: OCTOBER, amount: "-60000.000000" });
  await desk.account("7");
  await desk.account("");
  await close(OCTOBER, "2026-11-04T00:00:00.000Z");
  await built(
    { job: "6", namespace: "8", minutes: 4, finished: "2026-10-06T00:00:00.000Z" },
    { job: "7", namespace: "7", minutes: 1, finished: "2026-11-02T00:00:00.000Z" },
  );
  await desk.adjust(NOVEMBER, { namespace_id: "7", usage_month: OCTOBER, amount: "-30000.000000" });
  await close(NOVEMBER, "2026-12-04T00:00:00.000Z");
});
afterAll(async () => {
  await closeHouse(house);
  await rm(folder, { recursive: true });
});

const FAILED = "runner_system_failure";

async function built(...builds: readonly Build[]): Promise<void> {
  for (const build of builds) expect(await desk.build(build)).toBe("accepted");
}

async function cutOff(month: string, at: string): Promise<void> {
  desk.at(at);
  await desk.attest();
  await desk.cover(`${month}T00:00:00.000Z`, `${at.slice(0, 7)}-01T00:00:00.000Z`);
  expect(await desk.close(month)).toEqual(["done"]);
  await desk.settle();
}

async function close(month: string, at: string): Promise<void> {
  await cutOff(month, at);
  expect(await desk.finish()).toMatchObject({ month, missing: [] });
}

async function closedEntry(month: string): Promise<EntryOf<"month_closed">> {
  const found = ofKind(await desk.entries(), "month_closed").find(
    ({ body }) => body.month === month,
  );
  if (found === undefined) throw new Error("not closed");
  return found;
}

async function stated(month: string): Promise<Statement> {
  return Statement.parse(parseCanonical(encodeUtf8(await desk.statement(month))));
}

/** As of the cut-off, each row by the names of its columns. */
async function rows(name: TableName, month: string): Promise<Record<string, string>[]> {
  const { body } = await closedEntry(month);
  const of = { log: desk.log, asOf: BigInt(body.closing), month };
  const found = await rowsOf(house.database, SOURCES[name], of);
  return found.map((row: Row) =>
    Object.fromEntries(TABLES[name].map((column, at) => [column.name, row[at] ?? ""])),
  );
}

function sumOf(lines: readonly object[], column: string): bigint {
  return lines.reduce((sum, line) => sum + parseSignedComputeMs(Reflect.get(line, column)), 0n);
}

const micro = parseSignedComputeMs;

test("month_closed and the statement name seven files, which are the same whenever they are made", async () => {
  for (const month of [OCTOBER, NOVEMBER]) {
    const { body } = await closedEntry(month);
    expect(body.exports.map(({ name }) => name)).toEqual(CLOSING_SET);
    const statement = await stated(month);
    expect(statement.exports).toEqual(body.exports);
    const of = { log: desk.log, month, closing: BigInt(body.closing) };
    expect(await closingSet(house.database.reader, of)).toEqual(body.exports);
    const { html } = statementPage(statement);
    for (const { sha256 } of body.exports) expect(html).toContain(sha256);
  }
});

test("T53: portal, allocation, rollups, usage API and statement come to the same, discount and non-billable part shown", async () => {
  for (const month of [OCTOBER, NOVEMBER]) {
    const { allocations, totals } = await stated(month);
    const net = micro(totals.compute_ms) + micro(totals.adjustment_compute_ms);
    const portal = await rows("portal", month);
    expect(sumOf(portal, "net_compute_ms")).toBe(net);
    expect(sumOf(portal, "gross_compute_ms") - sumOf(portal, "discount_compute_ms")).toBe(
      micro(totals.compute_ms),
    );
    expect(sumOf(portal, "adjustment_compute_ms")).toBe(micro(totals.adjustment_compute_ms));
    const parts = ["included", "pack", "overage", "absorbed", "not_billable"] as const;
    for (const part of parts) {
      const stands = allocations[part === "pack" ? "packs" : part];
      expect([part, sumOf(portal, `${part}_compute_ms`)]).toEqual([part, micro(stands)]);
    }
    const shares = await rows("allocation", month);
    expect(sumOf(shares, "usage_compute_ms")).toBe(net);
    expect(sumOf(shares, "drawn_compute_ms")).toBe(micro(allocations.packs));
    for (const name of ["monthly_namespace", "monthly_project"] as const) {
      expect(sumOf(await rows(name, month), "net_compute_ms")).toBe(net);
    }
    const reading = { sql: house.database.reader, clock: desk.finishing.clock };
    const asked = {
      log: desk.log,
      group: ["namespace"] as const,
      from: month,
      to: nextMonth(month),
    };
    const used = await usage(reading, asked);
    expect(micro(used.totals.compute_ms)).toBe(net);
  }
  const october = await rows("portal", OCTOBER);
  // Half of 26 minutes for the class, and two whole minutes of a failure.
  expect(sumOf(october, "discount_compute_ms")).toBe(micro("900000.000000"));
  expect(sumOf(october, "not_billable_compute_ms")).toBe(0n);
});

test("each line says who pays for which part: ten minutes included, five of a pack, and the rest over", async () => {
  const lines = await rows("portal", OCTOBER);
  const shown = lines.map((line) => [
    ...[line["account_id"], line["namespace_id"], line["project_id"], line["day"]],
    ...["included", "pack", "overage", "absorbed"].map((part) => {
      return Number(micro(line[`${part}_compute_ms`] ?? "")) / 60e9;
    }),
  ]);
  expect(shown).toEqual([
    ["a-", "8", "51", "2026-10-04", 10, 0, 0, 3],
    ["a-", "9", "50", "2026-10-05", 3, 0, 0, 0],
    ["a-7", "7", "50", "2026-10-02", 10, 2, 0, 0],
    ["a-7", "7", "50", "2026-10-03", 0, 3, 6, 0],
    ["a-7", "7", "0", "", 0, 0, -1, 0],
  ]);
});

test("allocation and pack_rollforward are the rows of the closed month, and the versions of its packs", async () => {
  const reading = { sql: house.database.reader, clock: desk.finishing.clock };
  for (const month of [OCTOBER, NOVEMBER]) {
    const { lines } = await allocationsOf(reading, { log: desk.log, month });
    const shares = await rows("allocation", month);
    const figures = ["usage", "included", "overage", "absorbed", "not_billable"] as const;
    expect(shares.map((row) => figures.map((name) => row[`${name}_compute_ms`]))).toEqual(
      lines.map((line) => figures.map((name) => line[name])),
    );
    expect(shares.map(({ packs }) => JSON.parse(packs ?? ""))).toEqual(
      lines.map(({ packs }) => packs),
    );
    const rolls = await packRollsOf(reading, { log: desk.log, month });
    const packs = await rows("pack_rollforward", month);
    const moves = ["opening", "bought", "drawn", "expired", "refunded", "closing"] as const;
    expect(packs.map((row) => moves.map((name) => row[`${name}_compute_ms`]))).toEqual(
      rolls.lines.map((line) => moves.map((name) => line[name])),
    );
  }
  const about = { purchased_in: OCTOBER, expires_in: NOVEMBER, pack_id: "order-1" };
  const drawn = { bought_compute_ms: "300000.000000", drawn_compute_ms: "300000.000000" };
  expect(await rows("pack_rollforward", OCTOBER)).toMatchObject([{ ...about, ...drawn }]);
});

test("an auditor who has the archive alone makes the same files of the same months", async () => {
  await desk.settle();
  const { name, publicKey } = vkeyOf(desk.log);
  let text = "";
  const out = (more: string): void => {
    text += more;
  };
  const vkey = ["--vkey", formatVkey(name, publicKey)];
  const output = { out, err: () => undefined, progress: false };
  expect(await run(["verify", house.archive, desk.log, ...vkey], output)).toBe(0);
  expect(text).toMatch(/^PROVEN: all [0-9]+ entries, and nothing is open$/m);
});

test("a month closes with one making of its files; whoever finds it without its rows makes them again", async () => {
  const made = vi.spyOn(SOURCES, "portal");
  onTestFinished(() => made.mockRestore());
  await close(DECEMBER, "2027-01-04T00:00:00.000Z");
  expect(made).toHaveBeenCalledTimes(1);

  await cutOff(JANUARY, "2027-02-04T00:00:00.000Z");
  const { appender } = desk.finishing;
  const control: typeof appender.control = async (...asked) => {
    await appender.control(...asked);
    throw new Error("killed");
  };
  const dying = { ...desk.finishing, appender: { ...appender, control } };
  await expect(finish(dying, desk.log)).rejects.toThrow("killed");
  expect(made).toHaveBeenCalledTimes(2);
  await desk.finish();
  expect(made).toHaveBeenCalledTimes(3);
  expect(await stated(JANUARY)).toMatchObject({
    exports: (await closedEntry(JANUARY)).body.exports,
  });
});

/** As somebody is given it who asks for it. */
async function given(file: NewExport): Promise<string> {
  const { archive, sql, clock, random } = desk.finishing;
  const { keyring } = desk;
  const { signal } = new AbortController();
  const exporting = { holds: sql, files: folderExports(folder), sources: SOURCES, signal };
  const making = { archive, keyring, sql, clock, random, generator: "test 1", ...exporting };
  return await outcomeOf(making, desk.log, file);
}

test("a file that was lost is made again to the bytes that its month was closed with", async () => {
  const { body } = await closedEntry(OCTOBER);
  for (const { name, sha256 } of body.exports) {
    const isOfMonth = name !== "account_map";
    const file = {
      name: name as TableName,
      format: "csv",
      ...(isOfMonth && { month: OCTOBER }),
    } as const;
    expect([name, await given({ ...file, as_of: body.closing })]).toEqual([name, sha256]);
    // A month's file is the same as of whatever comes after its cut-off.
    if (isOfMonth) expect([name, await given(file)]).toEqual([name, sha256]);
  }
});

test("neither rows nor files of a month are made again from entries that give another file", async () => {
  const { superuser } = house.database;
  await superuser`truncate allocations, pack_rolls, statements`;
  // No sum of a namespace changes, and no digest but those of files that name projects.
  await superuser.begin(async (tx) => {
    await tx`alter table entries disable trigger all`;
    await tx`update entries set project_id = 52 where log = ${desk.log} and job_id = 5`;
    await tx`alter table entries enable always trigger entries_append_only`;
  });
  await expect(desk.finish()).rejects.toThrow(`rows: ${OCTOBER}: exports is not what was signed`);
  const before = await readdir(join(folder, desk.log));
  const { closing } = (await closedEntry(OCTOBER)).body;
  const portal = { name: "portal", format: "csv", month: OCTOBER } as const;
  const refused = "internal: exports: portal is not what was signed with its month";
  expect(await given({ ...portal, as_of: closing })).toBe(refused);
  expect(await given(portal)).toBe(refused);
  expect(await readdir(join(folder, desk.log))).toEqual(before);
});
