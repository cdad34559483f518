/** A month's life: what its closing waits for, what is said of it, and that it stays so. */
import { writeFile } from "node:fs/promises";
import { join } from "node:path";
import { afterAll, beforeAll, expect, test } from "vitest";
import { run } from "../../../audit/command/program.ts";
import { canonical, parseCanonical } from "../../../src/core/json.ts";
import { CONDITIONS, Statement } from "../../../src/core/month/statement.ts";
import { formatVkey, openNote } from "../../../src/core/note.ts";
import { encodeUtf8 } from "../../../src/core/text.ts";
import { allocationsOf, packRollsOf } from "../../../src/flow/month/read.ts";
import { showMonth, showMonths } from "../../../src/flow/month/show.ts";
import { usage } from "../../../src/flow/usage/usage.ts";
import { statementPage } from "../../../src/web/statement.tsx";
import { verifyByOpenssl } from "../../signing.ts";
import { closeHouse, digestOf, type House, ofKind, openHouse, reportIn, vkeyOf } from "../door.ts";
import { type MonthDesk, openDesk } from "./desk.ts";

const OCTOBER = "2026-10-01";
const NOVEMBER = "2026-11-01";

let house: House;
let log: string;
let desk: MonthDesk;
/** October's, as it was first written. */
let october: string;

beforeAll(async () => {
  house = await openHouse();
  desk = await openDesk(house, "months", { since: "2026-10-20T12:00:00.000Z" });
  log = desk.log;
  await desk.limit("7", { monthly_minutes: "10", beyond: "bill" });
  await desk.limit("8", { monthly_minutes: "10", beyond: "stop" });
  await desk.pack("7", { minutes: "5", purchased_in: OCTOBER, expires_in: OCTOBER });
});

afterAll(() => closeHouse(house));

const minutes = (count: number): string => `${count * 60_000}.000000`;
const reading = () => ({ sql: house.database.reader, clock: desk.finishing.clock });
const stated = (text: string): Statement => Statement.parse(parseCanonical(encodeUtf8(text)));

/** Cut off, and what a service does beside requests until it is closed. */
async function closed(month: string): Promise<string> {
  expect(await desk.close(month)).toEqual(["done"]);
  await desk.settle();
  expect(await desk.finish()).toMatchObject({ month, missing: [] });
  return await desk.statement(month);
}

test("a month is closed past none of its preconditions: each is named until it is met", async () => {
  const built = [
    { job: "1", namespace: "7", minutes: 20, finished: "2026-10-20T10:00:00.000Z" },
    { job: "2", namespace: "8", minutes: 12, finished: "2026-10-20T10:30:00.000Z" },
    { job: "3", namespace: "9", minutes: 3, finished: "2026-10-20T10:40:00.000Z" },
    { job: "1", namespace: "7", minutes: 21, finished: "2026-10-20T10:00:00.000Z" },
    { job: "5", namespace: "7", minutes: 1, finished: "2026-10-20T13:00:00.000Z" },
  ];
  const free = { job: "4", namespace: "9", minutes: 2, finished: "2026-10-20T10:50:00.000Z" };
  const codes = [];
  for (const build of built) codes.push(await desk.build(build));
  codes.push(await desk.build({ ...free, reason: "runner_system_failure" }));
  expect(codes).toEqual(["accepted", "accepted", "accepted", "conflict", "future", "accepted"]);
  const broken = await desk.breakOf(OCTOBER);
  desk.at("2026-11-02T00:00:00.000Z");
  const missing = CONDITIONS.filter((code) => code !== "order");
  expect(await desk.close(OCTOBER)).toEqual(["month-not-ready", ...missing]);

  const meets: Record<string, () => Promise<void>> = {
    delay: async () => desk.at("2026-11-04T00:00:00.000Z"),
    conflicts: () => desk.resolveConflicts(),
    holds: () => desk.resolveHolds(),
    breaks: () => desk.resolveBreak(broken),
    attestations: () => desk.attest(),
    coverage: async () => {
      await desk.cover("2026-10-01T00:00:00.000Z", "2026-10-15T00:00:00.000Z");
      await desk.cover("2026-10-15T00:00:00.001Z", "2026-11-01T00:00:00.000Z");
      expect(await desk.close(OCTOBER)).toContain("coverage"); // a gap of a millisecond
      await desk.cover("2026-10-14T00:00:00.000Z", "2026-10-16T00:00:00.000Z");
    },
    accounts: async () => {
      await desk.account("7");
      expect(await desk.close(OCTOBER)).toContain("accounts"); // 8 and 9 have none yet
      await desk.account("");
    },
  };
  for (const [i, code] of missing.entries()) {
    expect(await desk.close(OCTOBER)).toEqual(["month-not-ready", ...missing.slice(i)]);
    await meets[code]?.();
  }
  const shown = await showMonth({ ...reading(), closeDelayDays: 3n }, { log, month: OCTOBER });
  expect(shown.state).toBe("open");
  const all = [...CONDITIONS, "matching"];
  expect(shown.preconditions).toMatchObject(all.map((code) => ({ code, holds: true })));
});

test("G30: a cut-off is withdrawn and pinned anew; what came between them is the next month's", async () => {
  expect(await desk.close(OCTOBER)).toEqual(["done"]);
  const between = { job: "6", namespace: "8", minutes: 1, finished: "2026-10-25T00:00:00.000Z" };
  expect(await desk.build(between)).toBe("accepted");
  expect(await desk.withdraw(NOVEMBER)).toEqual(["months-in-order"]);
  expect(await desk.withdraw(OCTOBER)).toEqual(["done"]);
  expect(await desk.withdraw(OCTOBER)).toEqual(["months-in-order"]);
  const after = { job: "7", namespace: "8", minutes: 1, finished: "2026-10-26T00:00:00.000Z" };
  expect(await desk.build(after)).toBe("accepted");
  const usages = ofKind(await desk.entries(), "usage").slice(-2);
  expect(usages.map(({ body }) => body.billing_month)).toEqual([NOVEMBER, OCTOBER]);
});

test("a month is closed once, in order, and never reopened", async () => {
  expect(await desk.close(OCTOBER)).toEqual(["done"]);
  expect(await desk.finish()).toMatchObject({ missing: [expect.stringMatching(/^sealed/)] });
  const early = expect.arrayContaining(["month-not-ready", "order", "delay"]);
  expect(await desk.close(NOVEMBER)).toEqual(early);
  await desk.settle();
  const finished = await desk.finish();
  expect(finished).toMatchObject({ month: OCTOBER, missing: [] });
  expect(await desk.finish()).toBeUndefined();
  october = await desk.statement(OCTOBER);
  const { months } = await showMonths(reading(), log);
  expect(months).toMatchObject([
    { month: OCTOBER, state: "closed" },
    { month: NOVEMBER, state: "open" },
  ]);
  for (const month of [OCTOBER, "2026-09-01", "2026-12-01"]) {
    expect([month, await desk.close(month)]).toEqual([month, ["months-in-order"]]);
  }
  expect(await desk.close(NOVEMBER)).toEqual(expect.arrayContaining(["month-not-ready", "delay"]));
  expect(await desk.withdraw(OCTOBER)).toEqual(["month-closed"]);
  expect(ofKind(await desk.entries(), "month_closed")).toHaveLength(1);
});

test("statement, allocations, rollups, usage API and a recount from entries agree to the last digit", async () => {
  const usages = ofKind(await desk.entries(), "usage").filter(
    ({ body }) => body.billing_month === OCTOBER,
  );
  const sum = (amounts: readonly string[]): string =>
    String(amounts.reduce((total, text) => total + BigInt(text.replace(".", "")), 0n));
  const { allocations, totals } = stated(october);
  expect(totals.jobs).toBe(String(usages.length));
  expect(totals.duration_ms).toBe(
    sum(usages.map(({ body }) => reportIn(body.jws).usage.duration_ms)),
  );
  expect(totals.compute_ms.replace(".", "")).toBe(sum(usages.map(({ body }) => body.compute_ms)));
  expect(totals.compute_ms).toBe(minutes(36));
  expect(allocations).toMatchObject({
    usage: minutes(36),
    included: minutes(23),
    packs: minutes(5),
    overage: minutes(5),
    absorbed: minutes(3),
    not_billable: minutes(0),
  });
  const asked = { log, group: ["namespace"] as const, from: OCTOBER, to: NOVEMBER };
  const used = await usage(reading(), asked);
  expect(used.totals).toMatchObject({ jobs: totals.jobs, compute_ms: totals.compute_ms });
  const { lines } = await allocationsOf(reading(), { log, month: OCTOBER });
  expect(lines).toMatchObject([
    { namespace_id: "7", included: minutes(10), overage: minutes(5), usage: minutes(20) },
    { namespace_id: "8", included: minutes(10), absorbed: minutes(3), usage: minutes(13) },
    { namespace_id: "9", included: minutes(3), absorbed: minutes(0), usage: minutes(3) },
  ]);
  expect(lines.map(({ usage }) => usage)).toEqual(used.rows.map(({ compute_ms }) => compute_ms));
  expect(allocations.sha256).toBe(digestOfLines(lines));
});

const digestOfLines = (lines: readonly object[]): string =>
  digestOf(lines.map((line) => `${canonical({ ...line })}\n`).join(""));

test("packs are rolled forward, and what they gave is what the quota drew", async () => {
  const { lines } = await packRollsOf(reading(), { log, month: OCTOBER });
  const nothing = { opening: minutes(0), expired: minutes(0), closing: minutes(0) };
  expect(lines).toMatchObject([
    { namespace_id: "7", ...nothing, bought: minutes(5), drawn: minutes(5) },
  ]);
  expect(stated(october).packs.sha256).toBe(digestOfLines(lines));
});

test("without an anchor outside the statement says so, signed by the log and on a page without scripts", async () => {
  const statement = stated(october);
  expect(statement.anchor).toEqual({ by: [], kind: "none" });
  await expect(desk.note(OCTOBER)).rejects.toMatchObject({ code: "not-sealed" });
  await desk.settle();
  const note = await desk.note(OCTOBER);
  const text = `door.test/${log}/statement\n${OCTOBER}\n${digestOf(october)}\n`;
  expect(openNote(note, [vkeyOf(log)], verifyByOpenssl)).toMatchObject({ text });
  const { html, policy } = statementPage(statement);
  expect(policy).toMatch(/^default-src 'none'; style-src 'sha256-[^']+'; /);
  expect(html).toContain("UNANCHORED");
  expect(html).toContain(statement.checkpoint.root);
  expect(html).not.toMatch(/<script|javascript:|https?:/);
});

test("T26: what comes late lands in the open month, first where its own has room, and what is closed stays", async () => {
  const built = [
    { job: "10", namespace: "9", minutes: 4, finished: "2026-10-21T00:00:00.000Z" },
    { job: "11", namespace: "7", minutes: 6, finished: "2026-10-22T00:00:00.000Z" },
    { job: "12", namespace: "7", minutes: 7, finished: "2026-11-03T00:00:00.000Z" },
  ];
  for (const build of built) expect(await desk.build(build)).toBe("accepted");
  await desk.adjust(NOVEMBER, {
    namespace_id: "8",
    usage_month: OCTOBER,
    amount: `-${minutes(2)}`,
  });
  const own = ofKind(await desk.entries(), "usage").at(-1)?.index;
  const build = { namespace_id: "7", project_id: "50", usage_month: NOVEMBER, entry: String(own) };
  await desk.adjust(NOVEMBER, { ...build, amount: `-${minutes(1)}` });
  desk.at("2026-12-05T00:00:00.000Z");
  await desk.attest();
  await desk.cover("2026-11-01T00:00:00.000Z", "2026-12-01T00:00:00.000Z");
  const statement = stated(await closed(NOVEMBER));
  expect(statement.late).toMatchObject([
    {
      usage_month: OCTOBER,
      jobs: "3",
      compute_ms: minutes(11),
      adjustment_compute_ms: `-${minutes(2)}`,
    },
  ]);
  expect(statement.corrections).toEqual([
    { amount: `-${minutes(3)}`, lines: "2", reason: "looked_at" },
  ]);
  const { lines } = await allocationsOf(reading(), { log, month: NOVEMBER });
  expect(lines).toMatchObject([
    {
      namespace_id: "7",
      usage_month: OCTOBER,
      included: minutes(0),
      overage: minutes(6),
      packs: [],
    },
    { namespace_id: "7", usage_month: NOVEMBER, included: minutes(6), overage: minutes(0) },
    // A minute more of what ran over, and two taken back of it.
    { namespace_id: "8", usage_month: OCTOBER, included: minutes(0), absorbed: `-${minutes(1)}` },
    { namespace_id: "9", usage_month: OCTOBER, included: minutes(4), overage: minutes(0) },
  ]);
  expect(statement.range.from).toBe(stated(october).closing.index);
  expect(await desk.statement(OCTOBER)).toBe(october);
});

test("an auditor makes the same statements from the archive alone, and names what differs", async () => {
  await desk.settle();
  const vkey = formatVkey(vkeyOf(log).name, vkeyOf(log).publicKey);
  for (const month of [OCTOBER, NOVEMBER]) {
    const made = await audited(["--vkey", vkey, "--month", month]);
    expect(made).toEqual({ exit: 0, text: await desk.statement(month) });
  }
  const file = join(house.archive, "november.json");
  const against = ["--vkey", vkey, "--month", "2026-11", "--against", file];
  await writeFile(file, await desk.statement(NOVEMBER));
  expect(await audited(against)).toEqual({ exit: 0, text: expect.stringMatching(/^SAME/) });
  const other = stated(await desk.statement(NOVEMBER));
  other.totals.jobs = "4711";
  await writeFile(file, canonical(other));
  expect(await audited(against)).toEqual({
    exit: 1,
    text: expect.stringMatching(/entries: totals\n$/),
  });
  await writeFile(file, "none");
  expect((await audited(against)).exit).toBe(1);
  expect((await audited(["--vkey", vkey, "--month", "2026-12"])).exit).toBe(2);
});

async function audited(options: readonly string[]): Promise<{ exit: number; text: string }> {
  let text = "";
  const out = (more: string): void => {
    text += more;
  };
  const output = { out, err: () => undefined, progress: false };
  const exit = await run(["statement", house.archive, log, ...options], output);
  return { exit, text };
}

test("rows and statements that are lost are written again from entries, to the byte", async () => {
  const kept = async (): Promise<unknown[]> => [
    await desk.statement(OCTOBER),
    await desk.statement(NOVEMBER),
    await allocationsOf(reading(), { log, month: NOVEMBER }),
    await packRollsOf(reading(), { log, month: OCTOBER }),
  ];
  const before = await kept();
  const { owner } = house.database;
  await owner`truncate allocations, pack_rolls, statements`;
  await desk.finish();
  expect(await kept()).toEqual(before);
  await owner`truncate allocations, pack_rolls, statements`;
  // Of two processes at once each may write any of them.
  await Promise.all([desk.finish(), desk.finish()]);
  expect(await kept()).toEqual(before);
});
