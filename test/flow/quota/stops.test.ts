import { afterAll, beforeAll, expect, test } from "vitest";
import { Problem } from "../../../src/core/problem.ts";
import type { Figures } from "../../../src/core/quota/figures.ts";
import { figuresOf } from "../../../src/core/quota/figures.ts";
import { quotaAt } from "../../../src/core/quota/quota.ts";
import { type ShownStop, StopCursor, showStops } from "../../../src/flow/quota/show-stops.ts";
import { openStops, type Stopped, type Stops } from "../../../src/flow/quota/stops.ts";
import { connect } from "../../../src/store/connect.ts";
import { NOW } from "../../core/history.ts";
import { closeHouse, type House, newLog, openHouse } from "../door.ts";

const MINUTE_MS = 60_000;
const DAY_MS = 24 * 60 * MINUTE_MS;

let house: House;
let log: string;
const clock = { time: Date.parse(NOW), now: () => clock.time };
let stops: Stops;
let names = 0;

beforeAll(async () => {
  house = await openHouse();
  log = await newLog(house.open(), "stops");
  stops = openStops({ sql: house.database.writer, clock });
});
afterAll(async () => {
  await stops.close();
  await closeHouse(house);
});

const FIGURES: Figures = figuresOf(
  quotaAt(
    {
      platform: "dotcom",
      limits: [
        {
          ...{
            index: 3n,
            at: NOW,
            effective_from: "2026-01-01T00:00:00.000Z",
            monthly_minutes: 10n,
          },
          ...{ beyond: "stop", cap: undefined, grace_minutes: 0n },
        },
      ],
      ...{ packs: [], closings: [], used: new Map() },
    },
    NOW,
  ),
  { asOf: 7n, touched: 3n, readAt: 0 },
);

function namespace(): string {
  names += 1;
  return String(names);
}

function no(name: string, ...jobs: string[]): Stopped {
  const asked = { figures: FIGURES, live: 11n * 60_000_000_000n, reserved: 1n, source: "redis" };
  const said = jobs.map((job) => ({ job, ask: "run", by: "p_x", reason: "beyond" }) as const);
  return { namespace: name, asked: { ...asked, source: "redis" }, stops: [...said] };
}

async function shown(name: string, next?: string) {
  const after = next === undefined ? undefined : StopCursor.parse(next);
  return await showStops({ sql: house.database.reader, clock }, { log, namespace: name, after });
}

test("a no is kept with all that it was computed from, as it was when it was said", async () => {
  const name = namespace();
  await stops.keep(log, [no(name, "5")]);
  const { stops: kept, next } = await shown(name);
  expect(next).toBeUndefined();
  expect(kept).toMatchObject([
    {
      job_id: "5",
      ask: "run",
      first_at: NOW,
      last_at: NOW,
      times: "1",
      by: "p_x",
      reason: "beyond",
      source: "redis",
      as_of: "7",
      month: "2026-11-01",
      limit: { index: "3", monthly_minutes: "10" },
      available: { compute_ms: "600000.000000", compute_minutes: "10.0000" },
      live: { compute_ms: "660000.000000", compute_minutes: "11.0000" },
      reserved: { compute_ms: "0.000001" },
      remaining: { compute_ms: "-60000.000000", compute_minutes: "-1.0000" },
    },
  ]);
});

test("the same no is written once a minute, and every time is counted", async () => {
  const name = namespace();
  const first = clock.time;
  for (let beat = 0; beat < 7; beat += 1) {
    await stops.keep(log, [no(name, "5", "5")]);
    clock.time += 30_000;
  }
  // Written at 0, 60, 120 and 180 seconds; each time with those before it that were not.
  expect((await shown(name)).stops).toMatchObject([
    { times: "13", first_at: new Date(first).toISOString() },
  ]);
  expect((await shown(name)).stops[0]?.last_at).toBe(new Date(first + 180_000).toISOString());
});

test("of a namespace the newest thousand are kept, by however many processes", async () => {
  const name = namespace();
  const second = openStops({ sql: house.database.writer, clock });
  for (let page = 0; page < 4; page += 1) {
    clock.time += 1_000;
    const jobs = Array.from({ length: 400 }, (_, i) => String(page * 400 + i));
    await (page % 2 === 0 ? stops : second).keep(log, [no(name, ...jobs)]);
  }
  await second.close();
  const kept = new Set<string>();
  let after: string | undefined;
  do {
    const page = await shown(name, after);
    for (const { job_id } of page.stops) kept.add(job_id);
    after = page.next;
  } while (after !== undefined);
  expect(kept.size).toBe(1_000);
  for (let job = 800; job < 1_600; job += 1) expect(kept).toContain(String(job));
});

const placeOf = ({ last_at, job_id }: ShownStop): [string, number] => [last_at, Number(job_id)];

async function walked(name: string): Promise<ShownStop[]> {
  const all: ShownStop[] = [];
  for (let page = await shown(name); ; page = await shown(name, page.next)) {
    all.push(...page.stops);
    if (page.next === undefined) return all;
    expect(page.stops).toHaveLength(100);
  }
}

test("pages go from what came up last to what came up longest ago, and each stop is on one", async () => {
  const name = namespace();
  for (let job = 0; job < 3; job += 1) {
    await stops.keep(log, [no(name, ...ids(job * 90, 90))]);
    clock.time += 1_000;
  }
  // The oldest come up again: the second third is the oldest then.
  clock.time += 60_000;
  await stops.keep(log, [no(name, ...ids(0, 90))]);
  const all = await walked(name);
  expect(new Set(all.map(({ job_id }) => job_id)).size).toBe(270);
  expect(all.map(placeOf)).toEqual(
    all.map(placeOf).sort(([at, job], [then, other]) => then.localeCompare(at) || other - job),
  );
  const [first, second, third] = [all[0], all[90], all[180]];
  expect([first, second, third].map((stop) => stop?.job_id)).toEqual(["89", "269", "179"]);
});

test("of more than a thousand those go that came up longest ago, in the order in which they are shown", async () => {
  const name = namespace();
  for (let page = 0; page < 3; page += 1) {
    clock.time += 60_000;
    await stops.keep(log, [no(name, ...ids(page * 400, 400))]);
  }
  clock.time += 60_000;
  await stops.keep(log, [no(name, "0")]);
  const kept = await walked(name);
  expect(kept).toHaveLength(1_000);
  expect(kept[0]?.job_id).toBe("0");
  expect(new Set(kept.slice(801).map(({ job_id }) => Number(job_id)))).toEqual(
    new Set(ids(201, 199).map(Number)),
  );
});

test("what an owner is shown of stops does not depend on how much others are refused", async () => {
  const [name, twin] = [namespace(), namespace()];
  await stops.keep(log, [no(name, "1")]);
  await stops.keep(log, [no(namespace(), ...ids(0, 50))]);
  await stops.keep(log, [no(twin, "1")]);
  expect((await shown(twin)).stops).toEqual((await shown(name)).stops);
});

test("a no that was computed from nothing leaves no receipt, and is counted", async () => {
  const [name, own] = [namespace(), openStops({ sql: house.database.writer, clock })];
  await own.keep(log, [{ ...no(name, "1", "2"), asked: undefined }]);
  expect((await shown(name)).stops).toEqual([]);
  expect(own.dropped()).toBe(2);
  await own.close();
});

function ids(from: number, count: number): string[] {
  return Array.from({ length: count }, (_, i) => String(from + i));
}

test("after 35 days a stop is shown no more, and later ones remove it, a thousand each", async () => {
  const [old, name] = [namespace(), namespace()];
  await stops.keep(log, [no(old, "1")]);
  const before = clock.time;
  clock.time = before + 35 * DAY_MS;
  expect((await shown(old)).stops).toHaveLength(1);
  clock.time += 1;
  expect((await shown(old)).stops).toHaveLength(0);
  for (const job of ["1", "2", "3"]) await stops.keep(log, [no(name, job)]);
  const [count] = await house.database.owner<{ rows: bigint }[]>`
    select count(*) as rows from quota_stops where namespace_id = ${BigInt(old)}`;
  expect(count?.rows).toBe(0n);
  clock.time = before;
});

test("two processes that say no to the same jobs at once both have them written", async () => {
  const name = namespace();
  const others = [1, 2, 3, 4].map(() => openStops({ sql: house.database.writer, clock }));
  const jobs = ids(0, 300);
  await Promise.all(
    others.map((other, i) => {
      return other.keep(log, [no(name, ...(i % 2 === 0 ? jobs : jobs.toReversed()))]);
    }),
  );
  await Promise.all(others.map((other) => other.close()));
  expect(others.map((other) => other.dropped())).toEqual([0, 0, 0, 0]);
  expect((await shown(name)).stops[0]?.times).toBe("4");
});

test("a database that is away holds up no answer and fails none; what is lost is counted", async () => {
  const failures: unknown[] = [];
  const sql = connect("postgres://nobody@127.0.0.1:1/none", { max: 1 });
  const away = openStops({ sql, clock, failed: (error) => failures.push(error) });
  await away.keep(log, [no("1", "1", "2")]);
  await away.close();
  expect(away.dropped()).toBe(2);
  expect(failures).toHaveLength(1);
  await sql.end();
});

test("a table that is locked holds up an answer for no longer than a moment", async () => {
  const name = namespace();
  await house.database.owner.begin(async (tx) => {
    await tx`lock table quota_stops in exclusive mode`;
    await stops.keep(log, [no(name, "1")]);
    expect((await shown(name)).stops).toHaveLength(0);
  });
  await stops.close();
  expect((await shown(name)).stops).toHaveLength(1);
});

test("of a log that there is none there is nothing to see", async () => {
  const search = { log: "f".repeat(32), namespace: "1" };
  const missing = showStops({ sql: house.database.reader, clock }, search);
  await expect(missing).rejects.toEqual(new Problem("not-found"));
});
