import { afterAll, beforeAll, expect, test } from "vitest";
import type { Body } from "../../../src/core/entry.ts";
import type { AckMonth } from "../../../src/core/feed/acknowledgement.ts";
import { Problem } from "../../../src/core/problem.ts";
import { readAcknowledged } from "../../../src/flow/feed/acknowledged.ts";
import { countFed } from "../../../src/flow/feed/count.ts";
import { conditions } from "../../../src/flow/month/conditions.ts";
import { rebuild } from "../../../src/flow/usage/rebuild.ts";
import { snapshot } from "../../../src/flow/usage/show.ts";
import { CARD } from "../../core/history.ts";
import { closeHouse, type Door, type House, ofKind, openHouse, sha256 } from "../door.ts";
import { FeedDesk, month, NOVEMBER, november, OCTOBER, RIGHT, SHORT } from "./desk.ts";

let house: House;
let desk: FeedDesk;
/** Another process of the service on the same database. */
let other: Door;

beforeAll(async () => {
  house = await openHouse();
  desk = new FeedDesk(house);
  other = house.open();
});
afterAll(() => closeHouse(house));

async function refused(attempt: Promise<unknown>): Promise<string> {
  return await attempt.then(
    () => "taken",
    (error: unknown) => {
      if (!(error instanceof Problem)) throw error;
      return error.code;
    },
  );
}

test("sums that agree are an entry with what the log counts beside them, and open nothing", async () => {
  const fed = await desk.fedLog("agrees");
  const { differing, index, months, written } = await desk.ack(fed, RIGHT);
  expect([written, differing]).toEqual([true, []]);
  const last = (await desk.entries(fed)).at(-1);
  expect(last).toMatchObject({ index, kind: "feed_ack", body: { consumer: "portal", months } });
  expect(months).toEqual(
    RIGHT.map(({ compute_ms, events, ...of }) => ({
      ...of,
      ...{ compute_ms, counted_compute_ms: compute_ms, counted_events: events, events },
    })),
  );
  expect(await desk.open(fed)).toEqual([]);
});

test("an acknowledgement that is repeated is answered by the entry that stands, and nothing is written", async () => {
  const fed = await desk.fedLog("repeated");
  const first = await desk.ack(fed, SHORT);
  const before = await desk.entries(fed);
  for (const by of [desk.door, other]) {
    expect(await desk.ack(fed, SHORT, { by })).toEqual({ ...first, written: false });
  }
  expect(await desk.entries(fed)).toEqual(before);
});

test("each month that differs is a break in the same transaction, exact, and it keeps the month from closing", async () => {
  const fed = await desk.fedLog("differs");
  const { differing, index } = await desk.ack(fed, [month(OCTOBER, 1, "60000.000001")]);
  expect(differing).toEqual([OCTOBER, NOVEMBER]);
  const all = await desk.entries(fed);
  const breaks = ofKind(all, "break");
  expect(breaks.map((each) => each.index)).toEqual([index + 1n, index + 2n]);
  expect(breaks.map(({ body }) => [body.month, body.difference_ms, body.detail])).toEqual([
    [OCTOBER, "0", "events 0, compute_ms 0.000001"],
    [NOVEMBER, "-120000", "events -2, compute_ms -120000.000000"],
  ]);
  const prefix = await desk.door.appender.prefix(fed.log);
  const found = await snapshot(house.database.reader, async (tx) => {
    const cutting = { tx, log: fed.log, month: OCTOBER, below: BigInt(all.length), prefix };
    const at = "2026-11-20T12:00:00.000Z";
    return await conditions({ ...cutting, at, before: undefined, closeDelayDays: 3n });
  });
  const missing = found.find(({ code }) => code === "breaks")?.missing;
  expect(missing).toBe(`1 open, the first is entry ${index + 1n}`);
});

test("a later acknowledgement that agrees heals what an earlier one opened, and one that still differs leaves it", async () => {
  const fed = await desk.fedLog("heals");
  await desk.ack(fed, SHORT);
  const [opened] = await desk.open(fed);
  await desk.build(fed.log, "2026-11-11");
  fed.size = await desk.sealed(fed.log);
  const still = november(2, "120000.000000");
  expect((await desk.ack(fed, still)).differing).toEqual([NOVEMBER]);
  expect(await desk.open(fed)).toEqual([opened]);
  const agreed = await desk.ack(fed, november(3, "180000.000000"));
  expect(await desk.open(fed)).toEqual([]);
  const [end] = ofKind(await desk.entries(fed), "break_resolved");
  expect(end).toMatchObject({
    index: agreed.index + 1n,
    body: { break: String(opened), evidence: String(agreed.index), outcome: "healed" },
  });
  // What healed and differs again, by just as much, is another break.
  await desk.ack(fed, still);
  expect(await desk.open(fed)).toHaveLength(1);
});

test("a difference that changes ends its break and opens another; accepted, it is covered while it stays; corrected, it is not", async () => {
  const fed = await desk.fedLog("changes");
  const more = async (day: string): Promise<void> => {
    await desk.build(fed.log, day);
    fed.size = await desk.sealed(fed.log);
  };
  await desk.ack(fed, SHORT);
  const [first = -1n] = await desk.open(fed);
  await desk.ack(fed, november(1, "60000.000001"));
  const [second = -1n, ...others] = await desk.open(fed);
  expect([second > first, others]).toEqual([true, []]);
  await desk.resolve(fed, second, "accepted");
  await more("2026-11-12");
  await desk.ack(fed, november(2, "120000.000001"));
  expect(await desk.open(fed)).toEqual([]);
  await desk.ack(fed, november(2, "120000.000002"));
  const [third = -1n] = await desk.open(fed);
  await desk.resolve(fed, third, "corrected");
  await more("2026-11-13");
  await desk.ack(fed, november(3, "180000.000002"));
  expect(await desk.open(fed)).toHaveLength(1);
});

test("an acknowledgement that goes back, beyond what is sealed, or names a month that has not begun is refused by its code", async () => {
  const fed = await desk.fedLog("refused");
  await desk.ack(fed, RIGHT);
  const before = await desk.entries(fed);
  expect(await refused(desk.ack(fed, [], { up_to: fed.size - 1n }))).toBe("ack-backwards");
  expect(await refused(desk.ack(fed, RIGHT, { up_to: fed.size + 1n }))).toBe("beyond-checkpoint");
  const coming = [...RIGHT, month("2026-12-01", 0, "0.000000")];
  expect(await refused(desk.ack(fed, coming))).toBe("unknown-month");
  expect(await refused(desk.ack({ ...fed, log: "f".repeat(32) }, RIGHT))).toBe("not-found");
  expect(await desk.entries(fed)).toEqual(before);
});

test("consumers are apart: what one has says nothing of another, and each one's newest is shown", async () => {
  const fed = await desk.fedLog("several");
  await desk.ack(fed, SHORT);
  await desk.ack(fed, RIGHT, { consumer: "ledger" });
  expect(await desk.open(fed)).toHaveLength(1);
  await desk.ack(fed, [], { consumer: "slow", up_to: 1n });
  const shown = await readAcknowledged(house.database.reader, fed.log);
  expect(shown.map(({ consumer, differing, up_to }) => [consumer, up_to, differing])).toEqual([
    ["ledger", String(fed.size), []],
    ["portal", String(fed.size), [NOVEMBER]],
    ["slow", "1", []],
  ]);
});

test("acknowledgements in a race over two processes are written one after the other, each judged by the one before", async () => {
  const fed = await desk.fedLog("race");
  const asked = Array.from({ length: 12 }, (_, i) => {
    return desk.ack(fed, i % 3 === 0 ? RIGHT : SHORT, { by: i % 2 === 0 ? desk.door : other });
  });
  const answers = await Promise.all(asked);
  const acks = ofKind(await desk.entries(fed), "feed_ack");
  expect(new Set(answers.map(({ index }) => index))).toEqual(new Set(acks.map((a) => a.index)));
  for (const [i, { body }] of acks.entries()) {
    expect(body.months).not.toEqual(acks[i - 1]?.body.months);
  }
  const last = acks.at(-1)?.body.months.find(({ billing_month }) => billing_month === NOVEMBER);
  expect(await desk.open(fed)).toHaveLength(last?.events === "2" ? 0 : 1);
});

test("counting goes on from what an acknowledgement counted, whoever's it is and whatever its consumer had", async () => {
  const fed = await desk.fedLog("counts on");
  await desk.ack(fed, SHORT);
  const { superuser } = house.database;
  const altered = async (by: string): Promise<void> => {
    await superuser`alter table entries disable trigger all`;
    await superuser`
      update entries set compute_ms = compute_ms + ${by} where log = ${fed.log} and kind = 'usage'`;
    await superuser`alter table entries enable always trigger entries_append_only`;
  };
  await altered("1");
  const counted = await countFed(house.database.reader, fed.log, fed.size);
  await altered("-1");
  // Nothing of what had been counted was looked at again.
  expect(counted.get(NOVEMBER)).toEqual({ events: 2n, computeMs: 120_000_000_000n });
});

test("check finds nothing in all of that", async () => {
  expect(await desk.findings()).toEqual(new Map());
});

test("the tables beside the log are made anew from entries, to the last row", async () => {
  const { owner, superuser } = house.database;
  const lost = new Map<string, string>();
  for (const table of ["feed_acks", "portal_breaks"]) {
    await superuser`alter table ${superuser(table)} disable trigger all`;
    const { count } = await superuser`delete from ${superuser(table)}`;
    await superuser`alter table ${superuser(table)} enable always trigger ${superuser(`${table}_append_only`)}`;
    lost.set(table, String(count));
  }
  const rebuilding = { sql: owner, clock: { now: () => desk.door.now }, hash: sha256 };
  const { tables } = await rebuild(rebuilding, { write: true });
  const written = tables.filter(({ state, table }) => state === "written" && lost.has(table));
  expect(new Map(written.map(({ missing, table }) => [table, missing]))).toEqual(lost);
});

type Forged = (of: { months: AckMonth[]; size: bigint }) => Partial<Body<"feed_ack">>;

const FORGED: Record<string, Forged> = {
  "other figures than the log counts": ({ months }) => ({ months: months.slice(1) }),
  "a size that was not reached": ({ size }) => ({ up_to: String(size + 9n) }),
  "no break where it differs": ({ months }) => ({
    months: months.map((each) => ({ ...each, events: "9" })),
  }),
  "in another one's name": () => ({ by: "p_other" }),
  "less than its consumer had before": () => ({ up_to: "1", months: [] }),
};

test("check names an acknowledgement that nobody could have made, a difference that none opened, and an end that none gave", async () => {
  const { appender } = desk.door;
  const wrong = new Map<string, string[]>();
  for (const [name, forged] of Object.entries(FORGED)) {
    const fed = await desk.fedLog(name);
    const { months } = await desk.ack(fed, RIGHT);
    const { index } = await appender.control(fed.log, "feed_ack", () => ({
      ...{ by: "p", consumer: "portal", months, salt: CARD.salt, up_to: String(fed.size) },
      ...forged({ months, size: fed.size }),
    }));
    wrong.set(fed.log, [String(index)]);
  }
  const fed = await desk.fedLog("nobody's");
  const { index } = await desk.ack(fed, SHORT);
  const [opened] = ofKind(await desk.entries(fed), "break");
  if (opened === undefined) throw new Error("no break");
  const fingerprint = `${"A".repeat(43)}=`;
  const made = await appender.control(fed.log, "break", () => ({ ...opened.body, fingerprint }));
  const ended = await appender.control(fed.log, "break_resolved", () => ({
    ...{ approval: "", break: String(opened.index), by: "service", evidence: String(index) },
    ...{ outcome: "healed", reason: "came", salt: CARD.salt, ticket: "none" },
  }));
  wrong.set(
    fed.log,
    [made, ended].map((receipt) => String(receipt.index)),
  );
  const found = await desk.findings();
  const named = [...found].map(([log, all]) => {
    return [log, [...new Set(all.map((each) => each.index))]] as const;
  });
  expect(new Map(named)).toEqual(wrong);
});
