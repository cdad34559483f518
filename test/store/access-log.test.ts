import { afterAll, beforeAll, expect, test } from "vitest";
import {
  type AccessRow,
  accessGaps,
  insertAccess,
  missingAccess,
} from "../../src/store/access-log.ts";
import { connect } from "../../src/store/connect.ts";
import { openSnapshot } from "../../src/store/snapshots.ts";
import { type FreshDatabase, freshDatabase } from "../postgres.ts";

let db: FreshDatabase;
beforeAll(async () => {
  db = await freshDatabase();
});
afterAll(() => db.drop());

const LOGS = ["a", "b", "c"].map((letter) => letter.repeat(32));

const rowOf = (log: string, request: string): AccessRow => ({
  ...{ log, by: "p_x", roles: 'a"b\\', method: "GET", route: "/r" },
  ...{ target: "/r {,} null", status: 200, code: undefined, request },
});

test("rows of many writers over several logs are numbered without a gap, and nobody waits in a circle", async () => {
  await db.writer`insert into access_marks (log) select unnest(${LOGS}::text[])`;
  const pools = Array.from({ length: 4 }, () => connect(db.urls.writer, { max: 4 }));
  const writes = Array.from({ length: 200 }, (_, i) => {
    const logs = i % 2 === 0 ? LOGS : [...LOGS].reverse();
    const rows = logs.flatMap((log, j) => [rowOf(log, `${i} ${j}`), rowOf(log, `${i} ${j} again`)]);
    const pool = pools[i % pools.length];
    if (pool === undefined) throw new Error("no pool");
    return insertAccess(pool, rows);
  });
  await Promise.all(writes);
  await Promise.all(pools.map((pool) => pool.end()));
  for (const log of LOGS) {
    const [found] = await db.reader`
      select count(*) as rows, max(number) as last, count(distinct request) as requests,
        bool_and(target = '/r {,} null' and roles = 'a"b\\') as kept
      from access_log where log = ${log}`;
    expect(found).toEqual({ rows: 400n, last: 400n, requests: 400n, kept: true });
    const [mark] = await db.reader`select number from access_marks where log = ${log}`;
    expect(mark).toEqual({ number: 400n });
  }
});

test("a row of a log without a mark is refused as a whole, and never lost in silence", async () => {
  const rows = [rowOf(LOGS[0] ?? "", "one"), rowOf("d".repeat(32), "two")];
  await expect(insertAccess(db.writer, rows)).rejects.toThrow("null value");
  const [found] = await db.reader`select from access_log where request = 'one'`;
  expect(found).toBeUndefined();
});

test("numbers without a row are found among rows, before them, behind them, and beside the mark", async () => {
  const log = "e".repeat(32);
  await db.writer`insert into access_marks (log) values (${log})`;
  await insertAccess(db.writer, Array(9).fill(rowOf(log, "x")));
  await db.superuser`alter table access_log disable trigger access_log_append_only`;
  await db.superuser`update access_log set day = '2026-01-05' where log = ${log} and number <= 3`;
  await db.superuser`update access_log set day = '2026-01-06' where log = ${log} and number > 3`;
  const isMissing = async () => {
    const days = [];
    for (const day of ["2026-01-05", "2026-01-06", "2026-01-07"]) {
      const { behind, until } = await missingAccess(db.reader, log, day);
      days.push([until, behind]);
    }
    const snapshot = await openSnapshot(db.reader);
    const gaps = await (await accessGaps(snapshot, log)).page();
    await snapshot.end();
    return { days, gaps: gaps.map(({ last, position }) => [position, last]) };
  };
  const none = [0n, 0n];
  expect(await isMissing()).toEqual({ days: [none, none, none], gaps: [] });
  await db.superuser`delete from access_log where log = ${log} and number in (1, 3, 4, 7, 9)`;
  expect(await isMissing()).toEqual({
    days: [
      [1n, 2n],
      [3n, 1n],
      [0n, 1n],
    ],
    gaps: [
      [1n, 1n],
      [3n, 4n],
      [7n, 7n],
      [9n, 9n],
    ],
  });
  await db.superuser`update access_marks set number = 5 where log = ${log}`;
  expect((await isMissing()).gaps.at(-1)).toEqual([9n, 5n]);
  await db.superuser`delete from access_log where log = ${log}`;
  expect(await isMissing()).toMatchObject({
    days: [
      [0n, 5n],
      [0n, 5n],
      [0n, 5n],
    ],
    gaps: [[1n, 5n]],
  });
  await db.superuser`alter table access_log enable always trigger access_log_append_only`;
});
