import { afterAll, beforeAll, beforeEach, expect, test } from "vitest";
import { openRegister } from "../../../src/flow/report/register.ts";
import { connect } from "../../../src/store/connect.ts";
import { NOW } from "../../core/history.ts";
import { type FreshDatabase, freshDatabase } from "../../postgres.ts";
import { sha256 } from "../door.ts";

let database: FreshDatabase;
beforeAll(async () => {
  database = await freshDatabase();
});
afterAll(() => database.drop());
beforeEach(async () => {
  await database.writer`delete from refusals`;
});

const clock = { at: Date.parse(NOW), now: () => clock.at };

function digest(n: number): Uint8Array {
  return sha256(Uint8Array.of(n >> 8, n));
}

async function rows() {
  return await database.reader<{ digest: Uint8Array; code: string; times: bigint; at: Date }[]>`
    select digest, code, times, last_at as at from refusals order by last_at, times`;
}

test("the same text is one row that counts, with its first and last time", async () => {
  const register = openRegister({ sql: database.writer, clock });
  register.add(digest(1), "malformed");
  register.add(digest(1), "malformed");
  await register.flush();
  clock.at += 1_000;
  register.add(digest(1), "unknown-key");
  await register.close();
  const found = await database.reader`select code, first_at, last_at, times from refusals`;
  expect(found).toEqual([
    {
      code: "unknown-key",
      first_at: new Date(NOW),
      last_at: new Date(clock.at),
      times: 3n,
    },
  ]);
});

test("the table keeps the newest so many, and the oldest go", async () => {
  const register = openRegister({ sql: database.writer, clock, rowsMax: 10 });
  for (let n = 0; n < 25; n += 1) {
    clock.at += 1;
    register.add(digest(n), "malformed");
    await register.flush();
  }
  const kept = (await rows()).map((row) => Buffer.from(row.digest));
  const newest = Array.from({ length: 10 }, (_, i) => Buffer.from(digest(15 + i)));
  expect(kept).toEqual(newest);
});

test("a flood is bounded in memory, and what was not kept is counted", async () => {
  const register = openRegister({ sql: database.writer, clock });
  for (let n = 0; n < 10_100; n += 1) register.add(digest(n), "malformed");
  expect(register.dropped()).toBe(100);
  await register.close();
  expect(await rows()).toHaveLength(10_000);
});

test("a database that is away costs the register's rows, never an error", async () => {
  const gone = connect("postgres://nobody:x@127.0.0.1:1/nowhere", { max: 1 });
  const failures: unknown[] = [];
  const register = openRegister({ sql: gone, clock, failed: (error) => failures.push(error) });
  register.add(digest(1), "malformed");
  await register.flush();
  expect([failures.length, register.dropped()]).toEqual([1, 1]);
  await gone.end();
});

test("two processes that meet the same texts never stand in each other's way", async () => {
  const registers = [1, 2, 3].map(() => openRegister({ sql: database.writer, clock }));
  for (let round = 0; round < 5; round += 1) {
    for (const [i, register] of registers.entries()) {
      for (let n = 0; n < 50; n += 1) register.add(digest((n * (i + 1)) % 50), "malformed");
    }
    await Promise.all(registers.map((register) => register.flush()));
  }
  expect(registers.map((register) => register.dropped())).toEqual([0, 0, 0]);
  const total = (await rows()).reduce((sum, row) => sum + row.times, 0n);
  expect(total).toBe(750n);
});
