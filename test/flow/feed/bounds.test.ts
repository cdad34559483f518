import { afterAll, beforeAll, expect, test } from "vitest";
import type { Body } from "../../../src/core/entry.ts";
import { FEED_CONSUMERS_MAX, FEED_DIFFERING_MAX } from "../../../src/core/evidence.ts";
import type { Stated } from "../../../src/core/feed/acknowledgement.ts";
import { FeedRules } from "../../../src/flow/check/feed.ts";
import { readAcknowledged } from "../../../src/flow/feed/acknowledged.ts";
import { readPortalBreaks } from "../../../src/store/feed-acks.ts";
import { CARD } from "../../core/history.ts";
import { freshDatabase } from "../../postgres.ts";
import { closeHouse, type House, openHouse } from "../door.ts";
import { restore } from "../restored.ts";
import { FeedDesk, month, NOVEMBER, november, RIGHT, SHORT } from "./desk.ts";

let house: House;
let desk: FeedDesk;

beforeAll(async () => {
  house = await openHouse();
  desk = new FeedDesk(house);
});
afterAll(() => closeHouse(house));

test("a consumer's name is whose it was first: nobody else opens, ends or moves on what is theirs", async () => {
  const fed = await desk.fedLog("owned");
  await desk.ack(fed, SHORT);
  const before = await desk.entries(fed);
  for (const months of [RIGHT, SHORT, []]) {
    const taken = desk.ack(fed, months, { principal: "p_other" });
    await expect(taken).rejects.toMatchObject({ code: "consumer-taken" });
  }
  expect(await desk.entries(fed)).toEqual(before);
  await desk.ack(fed, RIGHT, { principal: "p_other", consumer: "other" });
  expect(await desk.open(fed)).toHaveLength(1);
});

/** Months from 2021 on of which there is nothing, each with an event. */
function wrong(count: number): Stated[] {
  const months = Array.from({ length: count }, (_, i) => {
    const [year, of] = [2021 + Math.floor(i / 12), String(1 + (i % 12)).padStart(2, "0")];
    return month(`${year}-${of}-01`, 1, "1.000000");
  });
  return [...months, ...RIGHT];
}

test("so many months differ and no more, and nothing of a refused one is written", async () => {
  const fed = await desk.fedLog("wide", { billing_from: "2021-01-01T00:00:00.000Z" });
  await desk.ack(fed, wrong(FEED_DIFFERING_MAX));
  expect(await desk.open(fed)).toHaveLength(FEED_DIFFERING_MAX);
  const before = await desk.entries(fed);
  const wider = desk.ack(fed, wrong(FEED_DIFFERING_MAX + 1));
  await expect(wider).rejects.toMatchObject({ code: "too-many-differ" });
  expect(await desk.entries(fed)).toEqual(before);
  await desk.ack(fed, RIGHT);
  expect(await desk.open(fed)).toEqual([]);
});

test("a month that ends before anything is billed is unknown", async () => {
  const fed = await desk.fedLog("early");
  const early = (of: string) => desk.ack(fed, [month(of, 1, "1.000000"), ...RIGHT]);
  for (const of of ["0001-01-01", "2025-12-01"]) {
    await expect(early(of)).rejects.toMatchObject({ code: "unknown-month" });
  }
  expect((await early("2026-01-01")).differing).toEqual(["2026-01-01"]);
});

test("a log has so many consumers and no more, and each one's newest is found by name", async () => {
  const fed = await desk.fedLog("names");
  const body = (consumer: string): Body<"feed_ack"> => {
    return { by: "p_portal", consumer, months: [], salt: CARD.salt, up_to: "0" };
  };
  for (let i = 0; i < FEED_CONSUMERS_MAX; i += 1) {
    await desk.door.appender.control(fed.log, "feed_ack", () => body(`c${i}`));
  }
  const one = desk.ack(fed, RIGHT);
  await expect(one).rejects.toMatchObject({ code: "too-many-consumers" });
  await desk.ack(fed, RIGHT, { consumer: "c7" });
  const shown = await readAcknowledged(house.database.reader, fed.log);
  expect(shown.map(({ consumer }) => consumer)).toHaveLength(FEED_CONSUMERS_MAX);
  const moved = shown.filter(({ up_to }) => up_to !== "0").map(({ consumer }) => consumer);
  expect(moved).toEqual(["c7"]);
  expect(await desk.findings()).toEqual(new Map());
});

test("whose difference a break is, and that it follows from its acknowledgement, is known behind a restore and in the middle of a walk", async () => {
  const fed = await desk.fedLog("restored");
  await desk.ack(fed, SHORT);
  await desk.ack(fed, november(1, "1.000000"), { consumer: "ledger" });
  await desk.ack(fed, november(1, "2.000000"), { consumer: "ledger" });
  fed.size = await desk.sealed(fed.log);
  const entries = await desk.entries(fed);
  const rules = new FeedRules(house.database.reader);
  const last = entries.at(-1);
  expect(last?.kind).toBe("break");
  if (last !== undefined) expect((await rules.judge(last).next()).done).toBe(true);
  const restored = await freshDatabase();
  try {
    await restore(restored, house.archive, fed.log);
    for (const consumer of ["portal", "ledger", "nobody"]) {
      const asked = { consumer, months: [NOVEMBER], below: fed.size };
      const [here, there] = await Promise.all(
        [house.database, restored].map((at) => readPortalBreaks(at.reader, fed.log, asked)),
      );
      expect(there).toEqual(here);
      expect(here).toHaveLength(consumer === "nobody" ? 0 : 1);
    }
  } finally {
    await restored.drop();
  }
});
