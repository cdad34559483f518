/** Limits and packs as their sources send them: late, twice, at once, in any order. */
import fc from "fast-check";
import { afterAll, beforeAll, expect, test } from "vitest";
import type { Body, Entry } from "../../../src/core/entry.ts";
import { Problem } from "../../../src/core/problem.ts";
import { quotaAt } from "../../../src/core/quota/quota.ts";
import { epochMs, instantText } from "../../../src/core/unit.ts";
import { check } from "../../../src/flow/check/check.ts";
import type { Receipt } from "../../../src/flow/log/commit-entry.ts";
import { limit, type NewLimit } from "../../../src/flow/rate/limit.ts";
import { type NewPack, pack } from "../../../src/flow/rate/pack.ts";
import { NOW } from "../../core/history.ts";
import { closeHouse, type Door, type House, newLog, ofKind, openHouse, sha256 } from "../door.ts";
import { readBack } from "../replay.ts";

let house: House;
let door: Door;
let other: Door;

beforeAll(async () => {
  house = await openHouse();
  door = house.open();
  other = house.open();
});

afterAll(() => closeHouse(house));

const LIMIT = { beyond: "stop", cap: "", grace_minutes: "1000", source: "gitlab" } as const;
const PACK = { namespace_id: "7", pack_id: "order-1", source: "portal" };

function limitOf(at: Door, log: string, said: Partial<NewLimit>): Promise<Receipt> {
  const input = { ...LIMIT, monthly_minutes: "400", source_version: "1", ...said };
  return limit(at, { log, namespace_id: "7", by: "platform" }, input);
}

function packOf(at: Door, log: string, said: Partial<NewPack>): Promise<Receipt> {
  const input = { ...PACK, minutes: "5000", source_version: "1", ...said };
  return pack(at, { log, by: "platform" }, input);
}

/** `written`, `stood`, or the code of the problem. */
async function outcome(receipt: Promise<Receipt>): Promise<string> {
  try {
    return (await receipt).written ? "written" : "stood";
  } catch (error) {
    if (error instanceof Problem) return error.code;
    throw error;
  }
}

async function bodiesOf<K extends "quota" | "pack">(log: string, kind: K): Promise<Body<K>[]> {
  const entries = await readBack(house, log);
  return entries.flatMap((entry) => (entry.kind === kind ? [entry.body as Body<K>] : []));
}

/** What a service would make of these entries. */
function quotaOf(entries: readonly Entry[], instant: string) {
  const limits = ofKind(entries, "quota").map(({ at, index, body }) => ({
    index,
    at,
    effective_from: body.effective_from,
    monthly_minutes: BigInt(body.monthly_minutes),
    beyond: body.beyond,
    cap: body.cap === "" ? undefined : BigInt(body.cap),
    grace_minutes: BigInt(body.grace_minutes),
  }));
  return quotaAt({ platform: "dotcom", limits, packs: [], closings: [], used: new Map() }, instant);
}

test("a first limit holds from its own instant on, and a later one from the next: at once", async () => {
  const log = await newLog(door, "at once");
  await limitOf(door, log, {});
  await limitOf(door, log, { monthly_minutes: "500", source_version: "2" });
  const entries = await readBack(house, log);
  const [first, second] = ofKind(entries, "quota");
  expect(first?.body.effective_from).toBe(first?.at);
  const next = instantText(epochMs(second?.at ?? "") + 1);
  expect(second?.body.effective_from).toBe(next);
  expect(quotaOf(entries, next).limit?.monthly_minutes).toBe(500n);
});

test("a clock that stepped back makes no limit that starts before its entry", async () => {
  const log = await newLog(door, "stepped back");
  await limitOf(door, log, {});
  other.now = door.now - 60_000;
  await limitOf(other, log, { monthly_minutes: "500", source_version: "2" });
  other.now = door.now;
  const [, second] = ofKind(await readBack(house, log), "quota");
  expect((second?.body.effective_from ?? "") > (second?.at ?? "z")).toBe(true);
});

test("an older event that arrives later changes nothing, whichever source another one has", async () => {
  const log = await newLog(door, "late limits");
  const said = [];
  for (const [source, source_version, monthly_minutes] of [
    ["gitlab", "10", "400"],
    ["gitlab", "9", "100"],
    ["support", "1", "800"],
    ["gitlab", "10", "100"],
    ["gitlab", "11", "900"],
    ["support", "1", "800"],
  ] as const) {
    said.push(await outcome(limitOf(door, log, { source, source_version, monthly_minutes })));
  }
  const stale = "stale-source-version";
  expect(said).toEqual(["written", stale, "written", stale, "written", "stood"]);
  const minutes = (await bodiesOf(log, "quota")).map(({ monthly_minutes }) => monthly_minutes);
  expect(minutes).toEqual(["400", "800", "900"]);
});

test("an event sent again is answered by the entry that stands, also long after, with nothing written", async () => {
  const log = await newLog(door, "sent again");
  const first = [await limitOf(door, log, {}), await packOf(door, log, {})];
  // Another month, in which neither default would be what it was.
  other.now = door.now + 40 * 86_400_000;
  const again = [await limitOf(other, log, {}), await packOf(other, log, {})];
  other.now = door.now;
  expect(again).toEqual(first.map((receipt) => ({ ...receipt, written: false })));
});

test("a limit that stops has no cap, and no event slips one in", async () => {
  const log = await newLog(door, "no cap");
  expect(await outcome(limitOf(door, log, { cap: "5" }))).toBe("invalid-request");
  expect(await outcome(limitOf(door, log, { cap: "5", beyond: "bill" }))).toBe("written");
});

test("a pack is bought now and good for twelve months, and a later version keeps what it leaves out", async () => {
  const log = await newLog(door, "packs");
  await packOf(door, log, {});
  await packOf(door, log, { minutes: "0", source_version: "2" });
  await packOf(door, log, { minutes: "9", source_version: "3", expires_in: "2026-12-01" });
  await packOf(door, log, { minutes: "8", source_version: "4" });
  const bodies = await bodiesOf(log, "pack");
  const shown = bodies.map((body) => [body.minutes, body.purchased_in, body.expires_in]);
  expect(shown).toEqual([
    ["5000", "2026-11-01", "2027-10-01"],
    ["0", "2026-11-01", "2027-10-01"],
    ["9", "2026-11-01", "2026-12-01"],
    ["8", "2026-11-01", "2026-12-01"],
  ]);
});

test("a pack keeps its namespace and its month of purchase, and expires no sooner", async () => {
  const log = await newLog(door, "kept");
  expect(await outcome(packOf(door, log, { expires_in: "2026-10-01" }))).toBe("invalid-request");
  expect(await outcome(packOf(door, log, { purchased_in: "2026-10-01" }))).toBe("written");
  const said = [];
  for (const change of [
    { namespace_id: "8", source_version: "2" },
    { purchased_in: "2026-11-01", source_version: "2" },
    { minutes: "1" },
    { minutes: "1", source_version: "0" },
    { source_version: "2" },
    { namespace_id: "8", pack_id: "order-2" },
    { namespace_id: "8", source: "another" },
  ]) {
    said.push(await outcome(packOf(door, log, change)));
  }
  const refused = ["another-pack", "another-pack", "stale-source-version", "stale-source-version"];
  expect(said).toEqual([...refused, "written", "written", "written"]);
});

test("T02: a pack is found by all of its name, whatever letters a source writes", async () => {
  const log = await newLog(door, "names");
  const texts = [
    '"',
    "\\",
    '\\"',
    '","source":"',
    "%_",
    "ü€😀",
    " ",
    "a",
    "A",
    'x","purchased_in":"',
  ];
  const long = ["ü".repeat(127), "\\".repeat(255), '"'.repeat(255), "😀".repeat(63)];
  const names = [...texts, ...long];
  const keys = names.flatMap((source, i) =>
    [0, 1, 5].map((on) => ({ source, pack_id: names[(i + on) % names.length] ?? "" })),
  );
  for (const key of keys) expect(await outcome(packOf(door, log, key))).toBe("written");
  for (const key of keys.filter((_, i) => i % 3 === 2)) {
    expect(await outcome(packOf(other, log, key))).toBe("stood");
    expect(await outcome(packOf(other, log, { ...key, source_version: "2" }))).toBe("written");
    expect(await outcome(packOf(door, log, key))).toBe("stale-source-version");
  }
  expect(await bodiesOf(log, "pack")).toHaveLength(names.length * 4);
});

test("T08: equal events at once on two processes leave one entry, and all are answered by it", async () => {
  const log = await newLog(door, "at once, twice");
  const doors = Array.from({ length: 20 }, (_, i) => (i % 2 === 0 ? door : other));
  const limits = await Promise.all(doors.map((at) => limitOf(at, log, {})));
  const packs = await Promise.all(doors.map((at) => packOf(at, log, {})));
  for (const receipts of [limits, packs]) {
    expect(new Set(receipts.map(({ index }) => index)).size).toBe(1);
    expect(receipts.filter(({ written }) => written)).toHaveLength(1);
  }
});

test("T39: versions at once from two processes, in any order, end with the newest in force", async () => {
  let count = 0;
  const sent = fc.array(fc.integer({ min: 1, max: 6 }), { minLength: 1, maxLength: 12 });
  await fc.assert(
    fc.asyncProperty(sent, async (versions) => {
      count += 1;
      const log = await newLog(door, `orders ${count}`);
      await Promise.all(
        versions.flatMap((version, i) => {
          const at = i % 2 === 0 ? door : other;
          const source_version = String(version);
          const minutes = String(version * 100);
          return [
            outcome(limitOf(at, log, { source_version, monthly_minutes: minutes })),
            outcome(packOf(at, log, { source_version, minutes })),
          ];
        }),
      );
      for (const kind of ["quota", "pack"] as const) {
        const written = (await bodiesOf(log, kind)).map((body) => Number(body.source_version));
        expect(written).toEqual([...new Set(written)].sort((a, b) => a - b));
        expect(written.at(-1)).toBe(Math.max(...versions));
      }
    }),
    { numRuns: 15 },
  );
});

test("what was let in stands before `check`, every version of it", async () => {
  const log = await newLog(door, "checked");
  for (const source_version of ["1", "2", "10"]) {
    await limitOf(door, log, { source_version });
    await packOf(door, log, { source_version, minutes: source_version });
  }
  const findings = [];
  for await (const event of check({ sql: house.database.reader }, { hash: sha256 })) {
    if (event.kind === "finding") findings.push(event);
  }
  expect(findings).toEqual([]);
  expect(ofKind(await readBack(house, log), "pack").map(({ at }) => at)).toEqual([NOW, NOW, NOW]);
});
