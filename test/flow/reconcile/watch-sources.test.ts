import { beforeEach, expect, test } from "vitest";
import { instantText } from "../../../src/core/unit.ts";
import { countSource } from "../../../src/flow/control/count-source.ts";
import { type WatchingSources, watchSources } from "../../../src/flow/reconcile/watch-sources.ts";
import { QUOTA } from "../../core/history.ts";
import { entriesOf, ofKind, sha256 } from "../door.ts";
import { DAY, door, HOUR, house, log, withLogs } from "./scene.ts";

let watching: WatchingSources;

withLogs("sources");
beforeEach(async () => {
  const { appender, random } = door;
  const clock = { now: () => door.now };
  const { writer: sql } = house.database;
  watching = { sql, appender, random, hash: sha256, clock, graceMs: DAY };
  await appender.control(log, "mode", ({ billingFrom: billing_from }) => {
    const said = { approval: "", by: "p_one", salt: QUOTA.salt };
    return { ...said, billing_from, control: "single", sources: ["gitlab"] };
  });
});

const dayOf = (at: number): string => instantText(at).slice(0, 10);

async function limited(namespace_id: string, source: string): Promise<void> {
  await door.appender.control(log, "quota", () => ({ ...QUOTA, namespace_id, source }));
}

async function stated(day: string, count: string): Promise<void> {
  const said = { day, kind: "quota", source: "gitlab", stated: count } as const;
  await countSource(watching, { log, by: "p_platform" }, said);
}

/** Words of breaks, and of each whether it has ended. */
async function found(): Promise<[string, boolean][]> {
  const entries = await entriesOf(house.database.reader, log);
  const ended = new Set(ofKind(entries, "break_resolved").map(({ body }) => body.break));
  return ofKind(entries, "break").map(({ body, index }) => [body.detail, ended.has(String(index))]);
}

test("a source that never says how many events it sent is missed a grace after their day, and ends it by saying so", async () => {
  const began = door.now;
  const day = dayOf(began);
  await limited("7", "gitlab");
  await limited("8", "by hand");
  door.now = Date.parse(`${day}T00:00:00.000Z`) + 2 * DAY - 1;
  expect(await watchSources(watching, log)).toBe(0);
  door.now += 1;
  expect([await watchSources(watching, log), await watchSources(watching, log)]).toEqual([1, 0]);
  const words = `quota of ${day}: nothing stated, 1 here`;
  expect(await found()).toEqual([[words, false]]);
  await stated(day, "2");
  const differs = `quota of ${day}: 2 sent, 1 here`;
  expect(await found()).toEqual([
    [words, true],
    [differs, false],
  ]);
  await house.database.writer`delete from reconcile_marks where log = ${log}`;
  expect(await watchSources(watching, log)).toBe(0);
  door.now = began;
});

test("of a day that was stated in time, and of one without events of a source, nothing is missed", async () => {
  const began = door.now;
  await limited("7", "gitlab");
  door.now += DAY;
  await limited("8", "by hand");
  await stated(dayOf(began), "1");
  door.now += 3 * DAY + HOUR;
  expect(await watchSources(watching, log)).toBe(0);
  expect(await found()).toEqual([]);
  door.now = began;
});
