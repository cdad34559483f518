/** DESIGN §1: the invariants that the one door has to keep, each by its sentence. */
import { readdir, readFile } from "node:fs/promises";
import { join } from "node:path";
import fc from "fast-check";
import { afterAll, beforeAll, expect, test } from "vitest";
import { CONTROL_KINDS } from "../../src/core/entry.ts";
import { revoke } from "../../src/flow/key/revoke.ts";
import { readControl, readEntries } from "../../src/store/entries.ts";
import { CARD, kidOf } from "../core/history.ts";
import {
  closeHouse,
  codes,
  type Door,
  type House,
  newAgent,
  newLog,
  ofKind,
  openHouse,
  reported,
} from "./door.ts";
import { readBack } from "./replay.ts";

let house: House;
let door: Door;

beforeAll(async () => {
  house = await openHouse();
  door = house.open();
});

afterAll(() => closeHouse(house));

const FUTURE = "2026-12-01T00:00:00.000Z";

test("2: one door: only flow/log/append inserts entries", async () => {
  const root = new URL("../../src", import.meta.url).pathname;
  const files = (await readdir(root, { recursive: true })).filter((name) => name.endsWith(".ts"));
  const holding = async (pattern: RegExp): Promise<string[]> => {
    const texts = await Promise.all(files.map((name) => readFile(join(root, name), "utf8")));
    return files.filter((_, i) => pattern.test(texts[i] ?? "")).sort();
  };
  expect(await holding(/insert into entries\b/)).toEqual(["store/entries.ts"]);
  expect(await holding(/\binsertEntries\b/)).toEqual([
    "flow/log/append.ts",
    "flow/log/commit-entry.ts", // append's transaction for entries that are no report's
    "flow/log/commit.ts", // append's transaction for reports
    "flow/log/replay.ts", // append's transaction for what the archive has
    "store/entries.ts",
  ]);
  expect(await holding(/\bcommit(?:Reports|Entry|Together|Archived)(?:<\w[^(]*>)?\(/)).toEqual([
    "flow/log/append.ts",
    "flow/log/commit-entry.ts",
    "flow/log/commit.ts",
    "flow/log/replay.ts",
  ]);
});

test("3: accepted means committed: every other session sees it when the answer is given, and it is never refused later", async () => {
  const log = await newLog(door, "accepted");
  const kid = await newAgent(door, log, 1);
  const texts = Array.from({ length: 20 }, (_, n) =>
    reported(1, log, { counter: String(n + 1), job: { id: String(n) } }),
  );
  for (const text of texts) {
    const { results } = await door.submit(text);
    const rows = await house.database.reader`
      select from entries where log = ${log} and index = ${results[0]?.index ?? -1}`;
    expect(rows).toHaveLength(1);
  }
  await revoke(door, { log, kid, by: "ops" }, { last_trusted_counter: "0", reason: "stolen" });
  const again = await house.open().submit(...texts);
  expect(codes(again)).toEqual(texts.map(() => "accepted"));
});

test("6: indices are gapless, and an entry's bytes name their log, their index and the hash of the entry before", async () => {
  const log = await newLog(door, "gapless");
  await newAgent(door, log, 1);
  for (let n = 1; n <= 30; n += 1) {
    await door.submit(reported(1, log, { counter: String(n), job: { id: String(n % 20) } }));
  }
  const entries = await readBack(house, log); // which checks all three of every entry
  expect(entries.map(({ index }) => index)).toEqual(entries.map((_, i) => BigInt(i)));
});

const step = fc.oneof(
  { weight: 8, arbitrary: fc.record({ job: fc.nat({ max: 6 }), ms: fc.constantFrom("1", "2") }) },
  { weight: 1, arbitrary: fc.constantFrom("card", "revoke", "late card") },
);

test("7: entry i is decided by the entries before it and its own content alone", async () => {
  let run = 0;
  await fc.assert(
    fc.asyncProperty(fc.array(fc.tuple(step, fc.boolean()), { maxLength: 25 }), async (steps) => {
      run += 1;
      const doors = [door, house.doors[1] ?? house.open()];
      const log = await newLog(door, `decided ${run}`);
      await newAgent(door, log, 1);
      await newAgent(door, log, 2, [{ effective_from: FUTURE }]);
      // All at once, through two processes: whatever order comes of it has to explain itself.
      await Promise.allSettled(
        steps.map(async ([step, second], n) => {
          const at = doors[Number(second)] ?? door;
          if (step === "revoke") {
            const revocation = { last_trusted_counter: String(n), reason: "stolen" };
            await revoke(at, { log, kid: kidOf(1), by: "ops" }, revocation);
          } else if (typeof step === "string") {
            const effective_from = step === "card" ? "2026-11-20T12:00:00.001Z" : FUTURE;
            await at.appender.control(log, "rate_card", () => ({ ...CARD, effective_from }));
          } else {
            const usage = { duration_ms: step.ms, finished_at: "2026-11-20T12:00:00.001Z" };
            const change = { counter: String(n + 1), job: { id: String(step.job) }, usage };
            await at.submit(reported(second ? 2 : 1, log, change));
          }
        }),
      );
      await readBack(house, log);
    }),
    { numRuns: 12 },
  );
});

test("10: an accepted report that is repeated changes nothing and is answered by the same entry, for ever; the same job with other content is a recorded conflict", async () => {
  const log = await newLog(door, "repeated");
  await newAgent(door, log, 1);
  const jws = reported(1, log);
  const first = await door.submit(jws);
  const before = await readBack(house, log);
  for (let i = 0; i < 3; i += 1) expect(await house.open().submit(jws)).toEqual(first);
  expect(await readBack(house, log)).toEqual(before);
  const other = reported(1, log, { counter: "2", usage: { duration_ms: "1" } });
  expect(codes(await door.submit(other))).toEqual(["conflict"]);
  const [conflict] = ofKind(await readBack(house, log), "conflict");
  expect(conflict?.body).toEqual({ jws: other, stands: first.results[0]?.index });
});

test("the control entries that a process reads are all those that core says decide", async () => {
  const log = await newLog(door, "control kinds");
  await newAgent(door, log, 1);
  const month = { approval: "", by: "finance", month: "2026-10-01", salt: CARD.salt };
  const { index } = await door.appender.control(log, "month_closing", () => month);
  const closing = { approval: "", by: "finance", closing: String(index), salt: CARD.salt };
  await door.appender.control(log, "month_closing_withdrawn", () => closing);
  await door.submit(reported(1, log), reported(1, log, { counter: "2" }));
  const all = await readEntries(house.database.reader, log, 0n, 100n);
  const kinds: readonly string[] = CONTROL_KINDS;
  const control = all.filter(({ kind }) => kinds.includes(kind)).map(({ bytes }) => bytes);
  const range = { after: -1n, upTo: 100n, limit: 100 };
  expect(await readControl(house.database.reader, log, range)).toEqual(control);
  const source = await readFile(new URL("../../src/store/entries.ts", import.meta.url), "utf8");
  const [list = ""] = /kind in \([^)]*\)/.exec(source) ?? [];
  expect(Array.from(list.matchAll(/'(\w+)'/g), ([, kind]) => kind)).toEqual([...CONTROL_KINDS]);
});
