import { afterAll, beforeAll, expect, test, vi } from "vitest";
import { instantText, monthOf } from "../../../src/core/unit.ts";
import { notify, notifyLoop } from "../../../src/flow/quota/notify.ts";
import { type FreshDatabase, freshDatabase } from "../../postgres.ts";
import { MINUTE_MS, OWN, outboxOf, QuotaLog, random, START, tell, toldOf } from "./told.ts";

let db: FreshDatabase;
beforeAll(async () => {
  db = await freshDatabase();
});
afterAll(() => db.drop());

let logs = 0;
const newLog = (body: ConstructorParameters<typeof QuotaLog>[1] = {}): Promise<QuotaLog> => {
  logs += 1;
  return new QuotaLog(logs, body).create(db.owner);
};

async function told(log: QuotaLog, now = log.now): Promise<string[]> {
  await log.load(db.owner);
  return await tell(db.writer, log.log, now);
}

test("a namespace is told below a quarter, below a twentieth and at nothing, once each", async () => {
  const log = await newLog();
  log.limit(1, 100);
  log.use(1, 75n * MINUTE_MS);
  expect(await told(log)).toEqual([]);
  log.use(1, 1n);
  expect(await told(log)).toEqual(["quota.warning"]);
  log.use(1, 20n * MINUTE_MS - 1n);
  expect(await told(log)).toEqual([]);
  log.use(1, 1n);
  expect(await told(log)).toEqual(["quota.danger"]);
  log.use(1, 5n * MINUTE_MS - 2n);
  expect(await told(log)).toEqual([]);
  log.use(1, 1n);
  expect(await told(log)).toEqual(["quota.exceeded"]);
  log.use(1, 500n * MINUTE_MS);
  expect(await told(log)).toEqual([]);
  const kept = await outboxOf(db.reader, log.log);
  expect(kept.map(({ number }) => number)).toEqual(["1", "2", "3"]);
  expect(new Set(kept.map(({ id }) => id)).size).toBe(3);
  expect(kept[2]?.event.data).toEqual({
    log: log.log,
    namespace_id: "1",
    month: "2026-11-01",
    level: "exceeded",
    unlimited: false,
    remaining_compute_ms: "0.000000",
    remaining_minutes: "0.0000",
    limit_minutes: "100",
    as_of: String(log.size - 1n),
  });
});

test("T60 a jump from a fifth used to all used is one notification, of the level that is reached", async () => {
  const log = await newLog();
  log.limit(1, 100);
  log.use(1, 20n * MINUTE_MS);
  expect(await told(log)).toEqual([]);
  log.use(1, 80n * MINUTE_MS);
  expect(await told(log)).toEqual(["quota.exceeded"]);
  expect(await toldOf(db.reader, log.log)).toEqual(["1 quota.exceeded exceeded"]);
});

test("T60 a raise and a pack are told as one recovery each, and what is crossed again is told again", async () => {
  const log = await newLog();
  log.limit(1, 100);
  log.use(1, 100n * MINUTE_MS);
  await told(log);
  log.now += 1;
  log.limit(1, 110);
  expect(await told(log)).toEqual(["quota.recovered"]);
  log.pack(1, 1_000);
  expect(await told(log)).toEqual(["quota.recovered"]);
  log.use(1, 1_000n * MINUTE_MS);
  expect(await told(log)).toEqual(["quota.danger"]);
  log.now += 1;
  log.limit(1, 0);
  expect(await told(log)).toEqual(["quota.exceeded"]);
  expect(await toldOf(db.reader, log.log)).toEqual([
    "1 quota.exceeded exceeded",
    "1 quota.recovered warning",
    "1 quota.recovered none",
    "1 quota.danger danger",
    "1 quota.exceeded exceeded",
  ]);
});

test("T60 a replayed snapshot tells nothing: neither a second look at the same entries, nor one from the first", async () => {
  const log = await newLog();
  log.limit(1, 100);
  log.use(1, 96n * MINUTE_MS);
  expect(await told(log)).toEqual(["quota.danger"]);
  const notifying = { sql: db.writer, clock: { now: () => log.now }, random };
  expect(await notify(notifying, log.log)).toEqual({ told: [], more: false });
  await db.writer`update quota_marks set index = 0 where log = ${log.log}`;
  expect(await told(log)).toEqual([]);
});

test("a new month begins at no level without a word, and its own crossings are told", async () => {
  const log = await newLog();
  log.limit(1, 100);
  log.use(1, 100n * MINUTE_MS);
  expect(await told(log)).toEqual(["quota.exceeded"]);
  log.now = Date.UTC(2026, 11, 1, 0, 1);
  expect(await told(log)).toEqual([]);
  log.use(1, 10n * MINUTE_MS);
  expect(await told(log)).toEqual([]);
  log.use(1, 80n * MINUTE_MS);
  expect(await told(log)).toEqual(["quota.warning"]);
  const [last] = (await outboxOf(db.reader, log.log)).slice(-1);
  expect(last?.event.data).toMatchObject({ month: "2026-12-01", level: "warning" });
});

test("a process whose clock is behind tells nothing of the month before again", async () => {
  const log = await newLog();
  log.limit(1, 100);
  log.use(1, 100n * MINUTE_MS);
  await told(log);
  log.now = Date.UTC(2026, 11, 1, 0, 0, 1);
  log.use(1, MINUTE_MS);
  expect(await told(log)).toEqual([]);
  log.use(1, MINUTE_MS);
  expect(await told(log, Date.UTC(2026, 10, 30, 23, 59, 59))).toEqual([]);
});

test.each([
  ["a moment before midnight", Date.UTC(2026, 11, 1) - 1],
  ["after it", Date.UTC(2026, 11, 1, 0, 0, 1)],
])("what is passed in a month's last second is told the same by who looks %s", async (_, at) => {
  const log = await newLog();
  log.limit(1, 100);
  log.limit(2, 100);
  log.use(2, 80n * MINUTE_MS);
  expect(await told(log)).toEqual(["quota.warning"]);
  log.now = Date.UTC(2026, 11, 1) - 2;
  log.use(1, 100n * MINUTE_MS);
  log.use(2, 16n * MINUTE_MS);
  expect(await told(log, at)).toEqual(["quota.exceeded", "quota.danger"]);
  const kept = await outboxOf(db.reader, log.log);
  const shown = kept.map(({ namespace, number, event }) => [namespace, number, event.data.month]);
  expect(shown).toEqual([
    ["1", "1", "2026-11-01"],
    ["2", "1", "2026-11-01"],
    ["2", "2", "2026-11-01"],
  ]);
  log.now = Date.UTC(2026, 11, 1, 0, 0, 2);
  log.use(1, 80n * MINUTE_MS);
  log.use(2, MINUTE_MS);
  expect(await told(log)).toEqual(["quota.warning"]);
});

test("what a month used is told to nobody by a report that comes in the next", async () => {
  const log = await newLog();
  log.limit(1, 100);
  await told(log);
  log.now = Date.UTC(2026, 11, 1, 0, 0, 1);
  log.use(1, 100n * MINUTE_MS, { ended: Date.UTC(2026, 10, 30) });
  expect(await told(log)).toEqual([]);
});

test("one look by a clock that was ahead by far silences nothing that is looked at afterwards", async () => {
  const log = await newLog();
  log.limit(1, 10);
  log.limit(2, 100);
  log.use(2, 50n * MINUTE_MS);
  log.now += 1;
  const from = log.now + 86_400_000;
  log.limit(2, 52, new Date(from).toISOString());
  await told(log);
  log.use(1, 1n);
  log.use(2, 1n);
  expect(await told(log, Date.UTC(2126, 0))).toEqual([]);
  log.use(1, 20n * MINUTE_MS);
  expect(await told(log)).toEqual(["quota.exceeded"]);
  // What was to be looked at again is so still.
  expect(await told(log, from)).toEqual(["quota.danger"]);
});

test("a process whose clock is years ahead tells what one with a right clock would", async () => {
  const log = await newLog();
  log.now = Date.now();
  log.limit(1, 100);
  log.use(1, 96n * MINUTE_MS);
  await log.load(db.owner);
  const abort = new AbortController();
  const failures: unknown[] = [];
  const ahead = { now: () => Date.now() + 3 * 365 * 86_400_000 };
  const seen: string[] = [];
  const running = notifyLoop({
    ...{ sql: db.writer, clock: ahead, random, signal: abort.signal, intervalMs: 1 },
    onTold: (type) => seen.push(type),
    onFailure: (error) => failures.push(error),
    onRound: () => undefined,
  });
  await vi.waitUntil(() => seen.length > 0, 10_000);
  abort.abort();
  await running;
  expect(seen).toEqual(["quota.danger"]);
  expect(failures).toEqual([]);
  const [row] = await db.reader<{ sound: boolean }[]>`
    select looked_at <= clock_timestamp() as sound from quota_marks where log = ${log.log}`;
  expect(row?.sound).toBe(true);
  const [kept] = await outboxOf(db.reader, log.log);
  expect([kept?.state, kept?.event.data.month]).toEqual(["pending", monthOf(instantText(log.now))]);
});

test("a limit that comes into force later in the month is looked at then, although no entry comes", async () => {
  const log = await newLog();
  log.limit(1, 100);
  log.use(1, 50n * MINUTE_MS);
  log.now += 1;
  const from = START + 86_400_000;
  log.limit(1, 52, new Date(from).toISOString());
  log.use(2, MINUTE_MS);
  expect(await told(log)).toEqual([]);
  expect(await told(log, from - 1)).toEqual([]);
  expect(await told(log, from)).toEqual(["quota.danger"]);
  expect(await told(log, from + 1_000)).toEqual([]);
});

test("the customer's own runners, namespaces without a limit, and Dedicated are told nothing", async () => {
  const log = await newLog();
  log.limit(1, 100);
  log.use(1, 1_000n * MINUTE_MS, { runner: OWN });
  log.use(2, 1_000n * MINUTE_MS);
  expect(await told(log)).toEqual([]);
  const dedicated = await newLog({ platform: "dedicated" });
  dedicated.limit(1, 100);
  dedicated.use(1, 1_000n * MINUTE_MS);
  expect(await told(dedicated)).toEqual([]);
});

test("more namespaces and more entries than one transaction takes are looked at to the last", async () => {
  const log = await newLog();
  const namespaces = Array.from({ length: 2_100 }, (_, i) => i + 1);
  const isLimited = (namespace: number): boolean => namespace % 50 === 0;
  for (const namespace of namespaces) {
    if (isLimited(namespace)) log.limit(namespace, 10);
    log.use(namespace, 10n * MINUTE_MS);
  }
  const types = await told(log);
  expect(types).toHaveLength(42);
  const kept = await outboxOf(db.reader, log.log);
  const limited = namespaces.filter(isLimited).map(String);
  expect(kept.map(({ namespace }) => namespace)).toEqual(limited);

  const size = log.size;
  log.limit(50, 10);
  await log.load(db.owner);
  // What no namespace is touched by is passed over by the thousand.
  await db.owner`
    insert into entries (log, index, kind, at, prev, leaf, bytes)
    select log, index + 1 + n, 'attestation', at, prev, leaf, 'x'::bytea
    from entries, generate_series(0, 20000) as n
    where log = ${log.log} and index = ${size}`;
  await db.owner`update heads set size = ${size + 20_002n} where log = ${log.log}`;
  expect(await tell(db.writer, log.log, log.now)).toEqual([]);
  const [mark] = await db.reader`select index from quota_marks where log = ${log.log}`;
  expect(mark?.["index"]).toBe(size + 20_002n);
});

test("builds that take turns among a thousand namespaces are one look, not one for each five hundred", async () => {
  const log = await newLog();
  const { size } = log;
  log.use(1, 1n);
  await log.load(db.owner);
  await db.owner`
    insert into entries (
      log, index, kind, at, prev, leaf, bytes, tracking, job_id, project_id, namespace_id, runner_uuid,
      runner_id, machine_type, duration_ms, compute_ms, not_billable, usage_month, billing_month, finished_at
    )
    select
      log, index + n, kind, at, prev, leaf, bytes, tracking, job_id, project_id, 1 + n % 1000, runner_uuid,
      runner_id, machine_type, duration_ms, compute_ms, not_billable, usage_month, billing_month, finished_at
    from entries, generate_series(1, 1999) as n
    where log = ${log.log} and index = ${size}`;
  await db.owner`update heads set size = ${size + 2_000n} where log = ${log.log}`;
  const notifying = { sql: db.writer, clock: { now: () => log.now }, random };
  expect(await notify(notifying, log.log)).toEqual({ told: [], more: false });
});

test("a log that was there before anybody looked tells only what happens from then on", async () => {
  logs += 1;
  const log = new QuotaLog(logs);
  log.limit(1, 100);
  log.use(1, 80n * MINUTE_MS);
  expect(await told(log, log.now + 1)).toEqual([]);
  log.now += 1_000;
  log.use(1, 1n);
  expect(await told(log)).toEqual([]);
  log.use(1, 20n * MINUTE_MS);
  expect(await told(log)).toEqual(["quota.exceeded"]);
});
