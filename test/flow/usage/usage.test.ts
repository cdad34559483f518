import { afterAll, beforeAll, expect, test } from "vitest";
import { refresh } from "../../../src/flow/usage/fold.ts";
import { type UsageQuery, usage, usageCsv } from "../../../src/flow/usage/usage.ts";
import type { Agent, Build } from "../../builds.ts";
import { TestLedger } from "../../ledger.ts";
import { type FreshDatabase, freshDatabase } from "../../postgres.ts";
import { HOSTED, OWN } from "../history.ts";

let db: FreshDatabase;
let logs = 0;
let now = Date.UTC(2026, 10, 29);
const clock = { now: () => now };

beforeAll(async () => {
  db = await freshDatabase();
});
afterAll(async () => {
  await db.drop();
});

function newLedger(start?: number): { ledger: TestLedger; agent: Agent } {
  logs += 1;
  const log = logs.toString(16).padStart(32, "0");
  const ledger = new TestLedger(log, start, { duration_cap_ms: String(2n ** 63n - 1n) });
  ledger.card("hosted", { small: "1" });
  ledger.card("self_managed", { "*": "2" });
  return { ledger, agent: ledger.enrol(1, [HOSTED, OWN]) };
}

/** Loads, seals and folds what the ledger has. */
async function publish(ledger: TestLedger): Promise<void> {
  await ledger.load(db.owner);
  await ledger.seal(db.owner);
  await refresh({ sql: db.writer, clock });
}

const ask = async (ledger: TestLedger, query: Partial<UsageQuery> = {}) =>
  await usage({ sql: db.reader, clock }, { log: ledger.log, group: ["usage_month"], ...query });

const build = (job: number, finished: string, rest: Partial<Build> = {}): Build => ({
  job,
  runner: HOSTED,
  finished,
  ...rest,
});

test("T21: a build over midnight belongs wholly to the month it finished in, and no second is lost", async () => {
  const { ledger, agent } = newLedger(Date.UTC(2026, 1, 2));
  const started = "2026-01-31T23:58:00.000Z";
  ledger.report(agent, build(1, "2026-02-01T00:03:00.000Z", { started, duration: 300_000n }));
  await publish(ledger);
  const january = await ask(ledger, { to: "2026-02-01" });
  const february = await ask(ledger, { from: "2026-02-01", to: "2026-03-01" });
  expect(january.rows).toEqual([]);
  expect(february.rows).toMatchObject([
    { usage_month: "2026-02-01", shared_runners_duration: "300" },
  ]);
});

test("T22: the stroke of midnight is February, a millisecond earlier is January", async () => {
  const { ledger, agent } = newLedger(Date.UTC(2026, 1, 2));
  ledger.report(agent, build(1, "2026-02-01T00:00:00.000Z"));
  ledger.report(agent, build(2, "2026-01-31T23:59:59.999Z"));
  await publish(ledger);
  const { rows } = await ask(ledger);
  expect(rows.map((row) => [row.billing_month, row.jobs])).toEqual([
    ["2026-01-01", "1"],
    ["2026-02-01", "1"],
  ]);
});

test("T26, invariant 11: what comes late is posted to the open month and names its own; a closed month stays as it was", async () => {
  const { ledger, agent } = newLedger(Date.UTC(2026, 10, 4));
  ledger.report(agent, build(1, "2026-10-31T12:00:00.000Z"));
  await publish(ledger);
  // Three days late, and the month is open: its own.
  ledger.report(agent, build(2, "2026-10-31T13:00:00.000Z"));
  ledger.closeMonth("2026-10-01");
  await publish(ledger);
  const closed = await ask(ledger, { to: "2026-11-01" });
  expect(closed.rows).toMatchObject([{ billing_month: "2026-10-01", jobs: "2" }]);

  ledger.report(agent, build(3, "2026-10-31T14:00:00.000Z"));
  ledger.report(agent, build(4, "2026-11-02T00:00:00.000Z"));
  await publish(ledger);
  expect((await ask(ledger, { to: "2026-11-01" })).rows).toEqual(closed.rows);
  expect((await ask(ledger, { from: "2026-11-01" })).rows).toMatchObject([
    { billing_month: "2026-11-01", usage_month: "2026-10-01", jobs: "1" },
    { billing_month: "2026-11-01", usage_month: "2026-11-01", jobs: "1" },
  ]);
});

test("T27: what is sent the next day counts on the day it was used", async () => {
  const { ledger, agent } = newLedger(Date.UTC(2026, 10, 1, 9));
  ledger.report(agent, build(1, "2026-10-31T23:00:00.000Z"));
  await publish(ledger);
  expect((await ask(ledger)).rows).toMatchObject([{ usage_month: "2026-10-01" }]);
});

test("T28: a new month begins at zero by itself", async () => {
  const { ledger, agent } = newLedger();
  ledger.report(agent, build(1, "2026-10-31T23:00:00.000Z"));
  await publish(ledger);
  const { rows, totals } = await ask(ledger, { from: "2026-11-01", to: "2026-12-01" });
  expect(rows).toEqual([]);
  expect(totals).toMatchObject({ jobs: "0", compute_ms: "0.000000", amount_used: "0.00" });
});

test("an answer says what it sums: as it was asked, and as far as whoever asks may see", async () => {
  const { ledger } = newLedger();
  await publish(ledger);
  expect((await ask(ledger)).query).toEqual({});
  const bounds = { from: "2026-11-01", to: "2026-12-01" };
  const which = { project: 10n, runner: 7n, machineType: "small", tracking: "hosted" } as const;
  expect((await ask(ledger, { ...bounds, ...which, namespace: 1n })).query).toEqual({
    ...bounds,
    tracking: "hosted",
    namespaces: ["1"],
    project: "10",
    runner: "7",
    machine_type: "small",
  });
  expect((await ask(ledger, { visible: [3n, 5n] })).query).toEqual({ namespaces: ["3", "5"] });
  expect((await ask(ledger, { visible: [3n], namespace: 5n })).query).toEqual({ namespaces: [] });
});

test("T32, invariant 13: sums beyond 2^53 and beyond int64 are exact, in answers and in views", async () => {
  const { ledger, agent } = newLedger();
  const duration = 9_223_372_036_854_775_807n;
  for (let job = 1; job <= 3; job += 1) {
    const [started, finished] = ["2026-10-01T00:00:00.000Z", "2026-10-01T00:00:00.000Z"];
    ledger.report(agent, build(job, finished, { started, duration, runner: OWN }));
  }
  await publish(ledger);
  const { rows } = await ask(ledger, { group: ["namespace"] });
  expect(rows).toMatchObject([
    {
      duration_ms: String(duration * 3n),
      compute_ms: `${duration * 6n}.000000`,
      amount_used: "922337203685477.58",
      compute_minutes: "922337203685477.5807",
      shared_runners_duration: String((duration * 3n) / 1000n),
    },
  ]);
  const [view] = await db.reader`
    select amount_used, shared_runners_duration, net_compute_ms
    from ci_namespace_monthly_usages where log = ${ledger.log}`;
  expect(view).toEqual({
    amount_used: "922337203685477.58",
    shared_runners_duration: (duration * 3n) / 1000n,
    net_compute_ms: `${duration * 6n}.000000`,
  });
});

test("invariant 13: no column of the database is a binary float", async () => {
  const floats = await db.reader`
    select table_name, column_name from information_schema.columns
    where table_schema = 'public' and data_type in ('real', 'double precision')`;
  expect([...floats]).toEqual([]);
});

test("T34: what is shown as 100.00 minutes is still less than 100 where it counts", async () => {
  const { ledger, agent } = newLedger();
  ledger.report(agent, build(1, "2026-10-01T00:00:00.000Z", { duration: 5_999_760n }));
  await publish(ledger);
  const { totals } = await ask(ledger);
  expect(totals).toMatchObject({
    amount_used: "100.00",
    compute_minutes: "99.9960",
    compute_ms: "5999760.000000",
  });
});

test("T53: answer, CSV and views have the same totals, and what is not billable is seen in them", async () => {
  const { ledger, agent } = newLedger();
  const finished = "2026-10-01T00:00:00.000Z";
  for (let job = 1; job <= 7; job += 1) {
    ledger.report(agent, build(job, finished, { duration: 333n, namespace: 1 + (job % 2) }));
    ledger.report(agent, build(job, finished, { duration: 1_000n, runner: OWN }));
  }
  await publish(ledger);
  const answer = await ask(ledger, { group: ["namespace", "tracking"] });
  expect(answer.totals).toMatchObject({
    compute_ms: "16331.000000",
    billable_compute_ms: "2331.000000",
  });
  const [header = [], ...lines] = usageCsv(answer)
    .trimEnd()
    .split("\r\n")
    .map((line) => line.split(","));
  const inCsv = (name: string) =>
    lines.reduce(
      (sum, line) => sum + BigInt((line[header.indexOf(name)] ?? "").replace(".", "")),
      0n,
    );
  expect(inCsv("compute_ms")).toBe(16_331_000_000n);
  expect(inCsv("billable_compute_ms")).toBe(2_331_000_000n);
  for (const view of ["ci_namespace_monthly_usages", "ci_project_monthly_usages"]) {
    const [sum] = await db.reader`
      select sum(net_compute_ms) as net, sum(billable_compute_ms) as billable
      from ${db.reader(view)} where log = ${ledger.log}`;
    expect(sum).toEqual({ net: "16331.000000", billable: "2331.000000" });
  }
});

test("invariant 15: an answer says as of which entry it is, how old it is, and whether that is sealed", async () => {
  const { ledger, agent } = newLedger();
  await ledger.load(db.owner);
  expect(await ask(ledger)).toMatchObject({ as_of: "0", sealed: true, rows: [] });

  ledger.report(agent, build(1, "2026-10-01T00:00:00.000Z"));
  await publish(ledger);
  const folded = String(ledger.size);
  now += 1_500;
  ledger.report(agent, build(2, "2026-10-01T00:00:00.000Z"));
  await ledger.load(db.owner);
  expect(await ask(ledger)).toMatchObject({
    as_of: folded,
    sealed: true,
    refreshed_at: new Date(now - 1_500).toISOString(),
    age_ms: "1500",
    totals: { jobs: "1" },
  });
  const fresh = await ask(ledger, { fresh: true });
  expect(fresh).toMatchObject({ as_of: String(ledger.size), sealed: false, age_ms: "0" });
  expect(fresh.totals.jobs).toBe("2");
  expect(fresh).not.toHaveProperty("refreshed_at");
  expect(usageCsv(fresh)).toContain(`${ledger.log},${ledger.size},false,2026-10-01`);
});

test("usage is grouped and filtered by all that it is known by, sealed or fresh", async () => {
  const { ledger, agent } = newLedger();
  const finished = "2026-10-01T00:00:00.000Z";
  ledger.report(agent, build(1, finished, { namespace: 1, project: 10 }));
  ledger.report(agent, build(2, finished, { namespace: 1, project: 11 }));
  ledger.report(agent, build(3, finished, { namespace: 2, project: 12, runner: OWN }));
  await publish(ledger);
  for (const fresh of [false, true]) {
    const jobs = async (query: Partial<UsageQuery>) =>
      (await ask(ledger, { ...query, fresh })).totals.jobs;
    expect(await jobs({})).toBe("3");
    expect(await jobs({ namespace: 1n })).toBe("2");
    expect(await jobs({ project: 11n })).toBe("1");
    expect(await jobs({ runner: 8n })).toBe("1");
    expect(await jobs({ machineType: "small" })).toBe("2");
    expect(await jobs({ tracking: "self_managed" })).toBe("1");
    expect(await jobs({ namespace: 1n, project: 12n })).toBe("0");
    const { rows } = await ask(ledger, { group: ["runner", "tracking"], fresh });
    expect(rows).toMatchObject([
      { billing_month: "2026-10-01", tracking: "hosted", runner: "7", jobs: "2" },
      { billing_month: "2026-10-01", tracking: "self_managed", runner: "8", jobs: "1" },
    ]);
  }
});

test("whoever may see some namespaces sees those, whatever they ask for", async () => {
  const { ledger, agent } = newLedger();
  for (let namespace = 1; namespace <= 3; namespace += 1) {
    ledger.report(agent, build(namespace, "2026-10-01T00:00:00.000Z", { namespace }));
  }
  await publish(ledger);
  const seen = async (query: Partial<UsageQuery>) => (await ask(ledger, query)).totals.jobs;
  expect(await seen({ visible: [1n, 2n] })).toBe("2");
  expect(await seen({ visible: [1n, 2n], namespace: 2n })).toBe("1");
  expect(await seen({ visible: [1n, 2n], namespace: 3n })).toBe("0");
  expect(await seen({ visible: [], fresh: true })).toBe("0");
});

test("a log that is not there is not found", async () => {
  await expect(
    usage({ sql: db.reader, clock }, { log: "f".repeat(32), group: [] }),
  ).rejects.toMatchObject({ code: "not-found" });
});
