/**
 * A month's life at a service, over HTTP and under two persons' control: builds are reported while it closes, late
 * and otherwise than before; what is said of it at last is what anybody can count from the entries' bytes.
 */
import { afterAll, beforeAll, expect, test, vi } from "vitest";
import { coded, type Opened } from "../http/four-eyes.ts";
import { ask } from "../http/house.ts";
import { type Build, builds, MonthDesk } from "./month-desk.ts";
import {
  type Allocated,
  allocated,
  type Counted,
  countedAt,
  grown,
  microOf,
  type Terms,
  textOf,
} from "./recount.ts";

const OCTOBER = "2026-10-01";
const NOVEMBER = "2026-11-01";
const WHY = { reason: "looked_at", ticket: "OPS-1" };
const TERMS: Readonly<Record<string, Terms>> = {
  "7": { minutes: 10, beyond: "bill", pack: { month: OCTOBER, minutes: 5 } },
  "8": { minutes: 10, beyond: "stop" },
  "9": { minutes: 100, beyond: "stop" },
};

let desk: MonthDesk;
/** October's, as it was first served. */
let october: string;

beforeAll(async () => {
  desk = await MonthDesk.open("2026-10-20T12:00:00.000Z", TERMS);
});
afterAll(() => desk.close());

const OWN = builds(0, 60, "2026-10-02T00:00:00.000Z");
/** Reported while October closes. */
const RACING = builds(60, 90, "2026-10-20T00:00:00.000Z");
const NEXT = builds(100, 130, "2026-11-05T00:00:00.000Z");
/** The platform saw it, and nobody reports it in time. */
const LOST: Build = {
  job: "900",
  namespace: "9",
  ms: 61_003,
  finished: "2026-10-05T01:00:00.000Z",
};
/** Its host's clock is half an hour ahead. */
const AHEAD: Build = { ...LOST, job: "901", namespace: "7", finished: "2026-10-20T12:30:00.000Z" };

test("past each missing precondition October stays open, and the refusal names what is missing", async () => {
  const [first] = OWN;
  if (first === undefined) throw new Error("no builds");
  expect(new Set(await desk.report(...OWN))).toEqual(new Set(["accepted"]));
  expect(await desk.report({ ...first, ms: first.ms + 1 }, AHEAD)).toEqual(["conflict", "future"]);
  await desk.population([...OWN, LOST, AHEAD]);
  const { eyes } = desk;
  const [conflict] = (await desk.written("conflict")).map(({ index }) => String(index));
  const [hold] = (await desk.written("hold")).map(({ index }) => String(index));
  desk.at("2026-11-01T00:00:00.000Z");
  const broken = await vi.waitUntil(async () => (await desk.written("break")).at(0), {
    timeout: 20_000,
  });
  const found = { break: String(broken.index), evidence: "", outcome: "accepted", ...WHY };

  const meets: [missing: string, meet: () => unknown][] = [
    ["delay", () => desk.at("2026-11-04T00:00:00.000Z")],
    // Before the breaks: the key's silence may have become one by now, and this ends it.
    ["attestations", () => desk.attest()],
    ["conflicts", () => eyes.decided("conflict_resolved", { conflict, outcome: "stands", ...WHY })],
    ["holds", () => eyes.decided("hold_resolved", { hold, outcome: "released", ...WHY })],
    ["breaks", () => eyes.decided("break_resolved", found)],
    ["coverage", () => desk.population([], "2026-11-01T00:00:00.000Z")],
    ["accounts", () => desk.say(`PUT /v1/accounts/${desk.log}`, ACCOUNT)],
  ];
  const open = new Set(meets.map(([code]) => code));
  for (const [code, meet] of meets) {
    expect(new Set(await desk.missing(OCTOBER))).toEqual(open);
    await meet();
    open.delete(code);
  }
  const { json } = await desk.propose(NOVEMBER);
  const missing = expect.arrayContaining([expect.stringMatching(/^delay: not before 2026-12-04/)]);
  expect(json).toMatchObject({ code: "month-not-ready", missing });
});

const ACCOUNT = {
  ...{ account_id: "A-1", source: "plan", source_version: "1" },
  effective_from: "2026-01-01T00:00:00.000Z",
};

test("nobody closes it alone; while two do, builds go on being reported, each to the month that its place says", async () => {
  const { eyes, log } = desk;
  const path = `POST /v1/months/${log}/${OCTOBER}/close`;
  const closing = async () => coded(await ask(eyes.house, path, { token: eyes.proposer }));
  await expect.poll(closing, { timeout: 20_000 }).toEqual([409, "approval-required"]);
  const { index, nonce } = (await desk.propose(OCTOBER)).json as unknown as Opened;
  const left = RACING.values();
  const lanes = Array.from({ length: 4 }, async () => {
    const codes: string[] = [];
    for (const build of left) codes.push(...(await desk.report(build)));
    return codes;
  });
  const [closed, ...codes] = await Promise.all([eyes.approve({ index, nonce }), ...lanes]);
  expect([closed.status, new Set(codes.flat())]).toEqual([201, new Set(["accepted"])]);
  october = await desk.statement(OCTOBER);
  const cut = BigInt(String(closed.json["index"]));
  for (const { body, index } of await desk.written("usage")) {
    expect(body.billing_month).toBe(index < cut ? OCTOBER : NOVEMBER);
  }
  expect(await desk.missing(OCTOBER)).toEqual(["months-in-order"]);
});

test("what comes late lands in November, which takes in October's only where October left something over", async () => {
  const { eyes, log } = desk;
  expect(await desk.report(LOST, ...RACING.slice(0, 2))).toEqual([
    "accepted",
    "duplicate",
    "duplicate",
  ]);
  desk.at("2026-11-20T12:00:00.000Z");
  expect(new Set(await desk.report(...NEXT))).toEqual(new Set(["accepted"]));
  const line = { entry: "", namespace_id: "7", project_id: "", reverses: "" };
  await eyes.decided("adjustment", {
    ...{ ...WHY, billing_month: NOVEMBER, credit_run: "", first_line: "0" },
    lines: [{ ...line, amount: "-30000.000001", usage_month: OCTOBER }],
  });
  desk.at("2026-12-05T00:00:00.000Z");
  await desk.population([...RACING, ...NEXT], "2026-12-01T00:00:00.000Z");
  await desk.attest();
  expect(await desk.missing("2026-12-01")).toEqual(["months-in-order"]);
  // Breaks of builds that the platform told of only now heal by themselves.
  await vi.waitUntil(async () => (await desk.missing(NOVEMBER)).length === 0, {
    timeout: 20_000,
    interval: 500,
  });
  const { index, nonce } = (await desk.propose(NOVEMBER)).json as unknown as Opened;
  expect((await eyes.approve({ index, nonce })).status).toBe(201);
  await desk.statement(NOVEMBER);
  expect((await desk.show(`/v1/months/${log}/${OCTOBER}/statement`)).text).toBe(october);
});

interface Stated {
  closing: { index: string };
  totals: Record<string, string>;
  allocations: Record<string, string>;
}

test("statement, allocations, rollups, usage and a count of the entries' bytes agree to the last digit", async () => {
  const bytes = await desk.bytes();
  /** Net of what was posted so far, by namespace and usage month. */
  const before = new Map<string, bigint>();
  for (const month of [OCTOBER, NOVEMBER]) {
    const stated: Stated = JSON.parse(await desk.statement(month));
    const counted = countedAt(bytes, month, BigInt(stated.closing.index));
    expect(stated.totals).toMatchObject(totalsOf([...counted.values()]));
    const expected = [...counted].map(([name, row]) => lineOf(name, row, month, before));
    expect(await lines(month)).toEqual(expected.sort(byName));
    for (const member of ["included", "overage", "absorbed"] as const) {
      const sum = expected.reduce((total, line) => total + microOf(line[member]), 0n);
      expect([member, stated.allocations[member]]).toEqual([member, textOf(sum)]);
    }
    const net = new Map([...counted].map(([name, row]) => [name, textOf(netOf(row))]));
    expect(await rollups(month)).toEqual(net);
    expect(await used(month)).toEqual(net);
  }
  expect([...before.keys()]).toHaveLength(6);
});

const netOf = ({ adjusted, charged }: Counted): bigint => charged + adjusted;

function totalsOf(rows: readonly Counted[]): Record<string, string> {
  const sum = (member: keyof Counted): bigint =>
    rows.reduce((total, row) => total + row[member], 0n);
  return {
    jobs: String(sum("jobs")),
    duration_ms: String(sum("duration")),
    compute_ms: textOf(sum("charged")),
    adjustment_compute_ms: textOf(sum("adjusted")),
  };
}

interface Line extends Record<keyof Allocated, string> {
  namespace_id: string;
  usage_month: string;
  usage: string;
}

function lineOf(name: string, row: Counted, month: string, before: Map<string, bigint>): Line {
  const [namespace_id = "", usage_month = ""] = name.split(" ");
  const terms = TERMS[namespace_id];
  if (terms === undefined) throw new Error("a namespace of nobody");
  const net = netOf(row);
  const stood = before.get(name) ?? 0n;
  before.set(name, stood + net);
  const parts =
    usage_month === month ? allocated(terms, month, net) : grown(terms, usage_month, stood, net);
  const texts = Object.entries(parts).map(([member, micro]) => [member, textOf(micro)]);
  return { namespace_id, usage_month, usage: textOf(net), ...Object.fromEntries(texts) };
}

const byName = (a: Line, b: Line): number =>
  a.namespace_id.localeCompare(b.namespace_id) || a.usage_month.localeCompare(b.usage_month);

async function lines(month: string): Promise<Line[]> {
  const { json } = await desk.show(`/v1/months/${desk.log}/${month}/allocations`);
  return (json["lines"] as (Omit<Line, "packs"> & { packs: { drawn: string }[] })[]).map((line) => {
    const { absorbed, included, namespace_id, overage, packs, usage, usage_month } = line;
    const drawn = textOf(packs.reduce((total, pack) => total + microOf(pack.drawn), 0n));
    return { absorbed, included, namespace_id, overage, packs: drawn, usage, usage_month };
  });
}

async function rollups(month: string): Promise<Map<string, string>> {
  const rows = await desk.eyes.house.database.reader<{ name: string; net: string }[]>`
    select namespace_id || ' ' || usage_month as name, billable_compute_ms::text as net
    from ci_namespace_monthly_usages
    where log = ${desk.log} and date = ${month}`;
  return new Map(rows.map(({ name, net }) => [name, net]));
}

async function used(month: string): Promise<Map<string, string>> {
  const { json } = await desk.show(
    `/v1/usage?log=${desk.log}&month=${month}&group=namespace,usage_month`,
  );
  const rows = json["rows"] as { namespace: string; usage_month: string; compute_ms: string }[];
  return new Map(rows.map((row) => [`${row.namespace} ${row.usage_month}`, row.compute_ms]));
}
