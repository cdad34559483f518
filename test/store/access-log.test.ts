import { afterAll, beforeAll, expect, test } from "vitest";
import { type AccessRow, insertAccess } from "../../src/store/access-log.ts";
import { connect } from "../../src/store/connect.ts";
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
