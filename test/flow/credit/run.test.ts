/** Credit runs on a log with some of everything: what they select, take, give, and what stops them. */
import { afterAll, beforeAll, expect, test } from "vitest";
import { parseSignedComputeMs } from "../../../src/core/charge.ts";
import type { AdjustmentLine } from "../../../src/core/control.ts";
import { canonical } from "../../../src/core/json.ts";
import { applyRun } from "../../../src/flow/credit/apply.ts";
import type { Crediting } from "../../../src/flow/credit/ask.ts";
import { type NewCreditPreview, preview } from "../../../src/flow/credit/preview.ts";
import { uploadNamespaces } from "../../../src/flow/credit/upload.ts";
import { pack } from "../../../src/flow/rate/pack.ts";
import { PACK } from "../../core/history.ts";
import {
  closeHouse,
  type Door,
  entriesOf,
  type House,
  newAgent,
  newLog,
  ofKind,
  openHouse,
  sha256,
} from "../door.ts";
import {
  adjust,
  begin,
  beginReversal,
  creditingOf,
  month,
  OCTOBER,
  OTHER,
  run,
  SALT,
  SEPTEMBER,
  SOME,
  type Worked,
  whole,
  work,
} from "./crediting.ts";

let house: House;
let door: Door;
let crediting: Crediting & { close(): Promise<void> };
beforeAll(async () => {
  house = await openHouse();
  door = house.open();
  crediting = creditingOf(door, house.database.writer);
});
afterAll(async () => {
  await crediting.close();
  await closeHouse(house);
});

let logs = 0;
/** A log of its own, whose agent has a small and a large machine. */
async function logWith(builds: readonly Worked[]): Promise<string> {
  logs += 1;
  const log = await newLog(door, `credit ${logs}`);
  const large = { machine_type: "large", runner_id: "701", uuid: OTHER };
  await newAgent(door, log, 10 + logs, [{}, large]);
  await work(door, { log, seed: 10 + logs }, builds);
  return log;
}

async function linesOf(log: string, index: bigint): Promise<(AdjustmentLine & { at: bigint })[]> {
  const entries = ofKind(await entriesOf(house.database.reader, log), "adjustment");
  const own = entries.filter(({ body }) => body.credit_run === String(index));
  return own.flatMap(({ body, index: at }) => body.lines.map((line) => ({ ...line, at })));
}

/** What was taken of each namespace, as compute minutes in thousandths. */
async function taken(log: string, index: bigint): Promise<Record<string, number>> {
  const sums: Record<string, number> = {};
  for (const { amount, namespace_id } of await linesOf(log, index)) {
    const thousandths = Number(parseSignedComputeMs(amount) / 60_000_000n);
    sums[namespace_id] = (sums[namespace_id] ?? 0) - thousandths;
  }
  return sums;
}

test("a selection takes in what it names, and all of it where it names nothing", async () => {
  const log = await logWith(SOME);
  const { namespaces_sha256 } = await uploadNamespaces(crediting, log, {
    namespaces: "10\n2\n10\n404",
  });
  const selected = async (selection: object): Promise<string[]> => {
    const { id, lines } = await preview(crediting, log, { form: "zero_rate", ...selection });
    const rows = await house.database.reader<{ namespace_id: bigint }[]>`
      select namespace_id from credit_lines where log = ${log} and preview = ${id} order by line`;
    expect(BigInt(rows.length)).toBe(lines);
    return rows.map(({ namespace_id }) => String(namespace_id));
  };
  expect(await selected({})).toEqual(["1", "1", "2", "2", "3", "10"]);
  expect(await selected({ from: OCTOBER })).toEqual(["1", "2", "2", "3", "10"]);
  expect(await selected({ from: SEPTEMBER, to: OCTOBER })).toEqual(["1"]);
  expect(await selected({ failure_reasons: ["script_failure"] })).toEqual(["2", "10"]);
  expect(await selected({ failure_reasons: [""], to: OCTOBER })).toEqual(["1"]);
  expect(await selected({ runners: ["701"] })).toEqual(["3"]);
  expect(await selected({ machine_types: ["large", "none"] })).toEqual(["3"]);
  expect(await selected({ projects: ["60"] })).toEqual(["2"]);
  expect(await selected({ namespaces_sha256 })).toEqual(["2", "2", "10"]);
  const lost = selected({ namespaces_sha256: Buffer.alloc(32).toString("base64") });
  await expect(lost).rejects.toMatchObject({ code: "invalid-request" });
});

test("what lines come to is shown before, is on the log after, and their digest is of what stands", async () => {
  const log = await logWith(SOME);
  const shown = await preview(crediting, log, { form: "credit", share: "1/2", from: OCTOBER });
  const summary = JSON.parse(shown.summary);
  expect(summary).toMatchObject({
    namespaces: "4",
    top: [{ namespace_id: "3", amount: "-90000.000000" }, { namespace_id: "1" }, {}, {}],
    by_machine_type: [
      { machine_type: "small", lines: "4", amount: "-165250.000000" },
      { machine_type: "large", lines: "1", amount: "-90000.000000" },
    ],
  });
  const index = await begin(crediting, log, shown);
  await whole(crediting, log, index);
  expect(await taken(log, index)).toEqual({ 1: 1000, 2: 1000, 3: 1500, 10: 754 });
  const lines = await linesOf(log, index);
  const text = lines.map(({ at: _, ...line }) => `${canonical(line)}\n`).join("");
  const [entry] = ofKind(await entriesOf(house.database.reader, log), "credit_run");
  expect(entry?.body).toMatchObject({
    lines: "5",
    lines_sha256: Buffer.from(sha256(Buffer.from(text))).toString("base64"),
    total: "-255250.000000",
  });
});

test("what was taken back before, of a build or of its month, is not taken back twice", async () => {
  const log = await logWith(SOME);
  const first = await run(crediting, log, { form: "credit", share: "0.25", from: OCTOBER });
  // Of namespace 2 all that is left of October but half a minute; its usage one by one has more.
  await adjust(door, log, [month("-60000.000000", "2")]);
  const rest = await run(crediting, log, { form: "zero_rate", from: OCTOBER });
  expect(await taken(log, first)).toEqual({ 1: 500, 2: 500, 3: 750, 10: 377 });
  expect(await taken(log, rest)).toEqual({ 1: 1500, 2: 500, 3: 2250, 10: 1131 });
  const none = await preview(crediting, log, { form: "zero_rate", from: OCTOBER });
  expect(none.lines).toBe(0n);
  await expect(begin(crediting, log, none)).rejects.toMatchObject({ code: "invalid-request" });
});

test("a failed job's minutes come back double as a pack, in whole minutes (G26)", async () => {
  const log = await logWith(SOME);
  const asked: NewCreditPreview = {
    form: "goodwill_pack",
    share: "2",
    failure_reasons: ["script_failure"],
  };
  const index = await run(crediting, log, asked);
  const packs = async () => ofKind(await entriesOf(house.database.reader, log), "pack");
  const given = (await packs()).map(({ body }) => body);
  expect(given).toMatchObject([
    { namespace_id: "2", minutes: "2", pack_id: `${index}/2`, purchased_in: "2026-11-01" },
    { namespace_id: "10", minutes: "4", pack_id: `${index}/10`, expires_in: "2027-10-01" },
  ]);
  const back = await beginReversal(crediting, log, index);
  await whole(crediting, log, back);
  const after = (await packs()).slice(given.length).map(({ body }) => body);
  expect(after).toMatchObject([
    { minutes: "0", pack_id: `${index}/2` },
    { minutes: "0", pack_id: `${index}/10` },
  ]);
  const runs = ofKind(await entriesOf(house.database.reader, log), "credit_run");
  expect(runs.map(({ body }) => body.total)).toEqual(["360000.000000", "-360000.000000"]);
});

test("minutes for a list of namespaces go to each of them, whether or not it used any", async () => {
  const log = await logWith(SOME);
  const { namespaces_sha256 } = await uploadNamespaces(crediting, log, { namespaces: "9\n77\n9" });
  await run(crediting, log, { form: "goodwill_pack", minutes: "30", namespaces_sha256 });
  const packs = ofKind(await entriesOf(house.database.reader, log), "pack");
  expect(packs.map(({ body }) => [body.namespace_id, body.minutes])).toEqual([
    ["9", "30"],
    ["77", "30"],
  ]);
});

test("while a run is under way nothing else is corrected", async () => {
  const log = await logWith(SOME);
  const index = await begin(crediting, log, { form: "zero_rate" });
  const under = { code: "credit-run-under-way" };
  await expect(adjust(door, log, [month("-1.000000", "1")])).rejects.toMatchObject(under);
  await expect(begin(crediting, log, { form: "credit", share: "1" })).rejects.toMatchObject(under);
  await expect(beginReversal(crediting, log, index)).rejects.toMatchObject(under);
  await whole(crediting, log, index);
  await whole(crediting, log, index);
  expect(await linesOf(log, index)).toHaveLength(6);
});

test("a preview is outdated by an adjustment of what it is about, and by no other", async () => {
  const log = await logWith(SOME);
  const asked = { form: "zero_rate", from: OCTOBER } as const;
  const early = await preview(crediting, log, asked);
  await adjust(door, log, [month("-1.000000", "1", "2026-09-01")]);
  const late = await preview(crediting, log, asked);
  await adjust(door, log, [month("-1.000000", "3")]);
  await expect(begin(crediting, log, early)).rejects.toMatchObject({ code: "preview-outdated" });
  await expect(begin(crediting, log, late)).rejects.toMatchObject({ code: "preview-outdated" });
  const other = await preview(crediting, log, { ...asked, projects: ["60"] });
  await adjust(door, log, [month("-1.000000", "3")]);
  await whole(crediting, log, await begin(crediting, log, other));
});

test("a preview of packs is run once, and an adjustment or another run's pack outdates it", async () => {
  const log = await logWith(SOME);
  const outdated = { code: "preview-outdated" };
  const asked = { form: "goodwill_pack", share: "1" } as const;
  const [early, same] = [
    await preview(crediting, log, asked),
    await preview(crediting, log, asked),
  ];
  const index = await begin(crediting, log, early);
  await whole(crediting, log, index);
  await expect(begin(crediting, log, early)).rejects.toMatchObject(outdated);
  await expect(begin(crediting, log, same)).rejects.toMatchObject(outdated);
  const late = await preview(crediting, log, asked);
  await adjust(door, log, [month("-1.000000", "1")]);
  await expect(begin(crediting, log, late)).rejects.toMatchObject(outdated);
  await whole(crediting, log, await beginReversal(crediting, log, index));
  expect(await run(crediting, log, asked)).toBeGreaterThan(index);
});

test("a run whose lines were lost finds them anew, and one whose list was lost waits for it", async () => {
  const log = await logWith(SOME);
  const { owner } = house.database;
  const forget = async (): Promise<void> => {
    await owner`delete from credit_lines where log = ${log}`;
    await owner`delete from credit_previews where log = ${log}`;
  };
  const namespaces = "1\n3";
  const { namespaces_sha256 } = await uploadNamespaces(crediting, log, { namespaces });
  const index = await begin(crediting, log, { form: "zero_rate", namespaces_sha256 });
  await forget();
  await owner`update namespace_lists set namespaces = '{1,2}' where log = ${log}`;
  await expect(whole(crediting, log, index)).rejects.toMatchObject({ code: "no-preview" });
  await owner`delete from namespace_lists where log = ${log}`;
  await expect(whole(crediting, log, index)).rejects.toMatchObject({ code: "invalid-request" });
  await uploadNamespaces(crediting, log, { namespaces });
  await whole(crediting, log, index);
  expect(await taken(log, index)).toEqual({ 1: 3000, 3: 3000 });

  const back = await beginReversal(crediting, log, index);
  await forget();
  await whole(crediting, log, back);
  expect(await taken(log, back)).toEqual({ 1: -3000, 3: -3000 });
});

test("a run that meets a closing goes on in the month that is open then", async () => {
  // More than one step takes: the closing comes between two of them.
  const builds = Array.from({ length: 1_100 }, (_, i) => {
    return { namespace: 1 + i, finished: OCTOBER };
  });
  const log = await logWith(builds);
  const index = await begin(crediting, log, { form: "zero_rate" });
  const { written } = await applyRun(crediting, { log, index }, () => false);
  expect(written).toBe(1_024n);
  const closing = { approval: "", by: "p_finance", month: "2026-10-01", salt: SALT };
  await door.appender.control(log, "month_closing", () => closing);
  await whole(crediting, log, index);
  const rows = await house.database.reader`
    select billing_month, count(*) as lines
    from adjustments
    where log = ${log} and credit_run = ${index} and usage_month = '2026-10-01'
    group by billing_month
    order by billing_month`;
  expect([...rows]).toEqual([
    { billing_month: "2026-10-01", lines: 1_024n },
    { billing_month: "2026-11-01", lines: 76n },
  ]);
});

test("of two reversals of one run exactly one succeeds, over two processes (T35)", async () => {
  const log = await logWith(SOME);
  const index = await run(crediting, log, { form: "zero_rate" });
  const other = creditingOf(house.open(), house.database.writer);
  const outcomes = await Promise.allSettled([
    beginReversal(crediting, log, index),
    beginReversal(other, log, index),
  ]);
  await other.close();
  const codes = outcomes.map((each) => (each.status === "rejected" ? each.reason.code : "written"));
  // Who is late hears of the one or of the other: the run is reversed, or its reversal under way.
  expect(codes.filter((code) => code === "written")).toHaveLength(1);
  expect(["already-reversed", "credit-run-under-way"]).toContain(
    codes.find((code) => code !== "written"),
  );
  const [won] = outcomes.flatMap((each) => (each.status === "fulfilled" ? [each.value] : []));
  await whole(crediting, log, won ?? -1n);
  await expect(beginReversal(crediting, log, won ?? -1n)).rejects.toMatchObject({
    code: "cannot-be-reversed",
  });
  await expect(beginReversal(crediting, log, index)).rejects.toMatchObject({
    code: "already-reversed",
  });
  const [sum] = await house.database.reader`
    select sum(amount) from adjustments where log = ${log}`;
  expect(sum).toEqual({ sum: "0.000000" });
});

test("nobody gives a pack in the name of a credit run", async () => {
  const log = await logWith([]);
  const { approval: _, by: __, salt: ___, ...input } = { ...PACK, source: "minutebook/credit_run" };
  const given = pack(crediting, { log, by: "p" }, input);
  await expect(given).rejects.toMatchObject({ code: "invalid-request" });
});
