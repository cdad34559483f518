import { setImmediate } from "node:timers/promises";
import { afterAll, beforeAll, expect, onTestFinished, test, vi } from "vitest";
import { connect, type Transaction } from "../../src/store/connect.ts";
import { transact } from "../../src/store/transact.ts";
import { type FreshDatabase, freshDatabase } from "../postgres.ts";

// Whatever postgres.js throws outside of all promises fails the run: vitest reports it.

let db: FreshDatabase;
beforeAll(async () => {
  db = await freshDatabase();
  await db.owner`create table notes (text text not null)`;
});
afterAll(() => db.drop());

async function pidOf(tx: Transaction): Promise<number> {
  const [row] = await tx<{ pid: number }[]>`select pg_backend_pid() as pid`;
  return row?.pid ?? 0;
}

async function kill(pid: number): Promise<void> {
  await db.superuser`select pg_terminate_backend(${pid})`;
}

async function notes(): Promise<string[]> {
  const rows = await db.owner<{ text: string }[]>`select text from notes order by text`;
  return rows.map(({ text }) => text);
}

test("commits what the work did, and gives back its value", async () => {
  const value = await transact(db.owner, async (tx) => {
    await tx`insert into notes (text) values ('kept')`;
    return 7n;
  });
  expect(value).toBe(7n);
  expect(await notes()).toEqual(["kept"]);
});

test("rolls back when the work throws, and throws the same error", async () => {
  const error = new Error("no");
  const failing = transact(db.owner, async (tx) => {
    await tx`insert into notes (text) values ('lost')`;
    throw error;
  });
  await expect(failing).rejects.toBe(error);
  expect(await notes()).toEqual(["kept"]);
});

test("runs in the mode that was asked for", async () => {
  const mode = "isolation level repeatable read read only";
  const writing = transact(db.owner, (tx) => tx`insert into notes (text) values ('lost')`, mode);
  await expect(writing).rejects.toMatchObject({ code: "25006" });
});

test("once its connection died, the work's next query throws, and runs in no other session", async () => {
  const pool = connect(db.urls.owner, { max: 1 });
  onTestFinished(() => pool.end());
  let stopped = false;
  const dying = transact(pool, async (tx) => {
    await kill(await pidOf(tx));
    await pool`select 1`; // the pool's one connection answers again: it was made anew
    const writing = Promise.resolve().then(() => tx`insert into notes (text) values ('astray')`);
    await expect(writing).rejects.toThrow("connection is gone");
    stopped = true;
  });
  await expect(dying).rejects.toMatchObject({ code: "CONNECTION_CLOSED" });
  expect(stopped).toBe(true);
  expect(await notes()).toEqual(["kept"]);
});

test("a connection that dies under a query rejects, and ends nothing but the transaction", async () => {
  const dying = transact(db.owner, async (tx) => {
    const pid = await pidOf(tx);
    await Promise.all([tx`select pg_sleep(60)`, kill(pid)]);
  });
  await expect(dying).rejects.toThrow();
  await expect(transact(db.owner, (tx) => pidOf(tx))).resolves.toBeGreaterThan(0);
});

test("a connection on which a transaction died is good for the next question", async () => {
  const pool = connect(db.urls.owner, { max: 1 });
  onTestFinished(() => pool.end());
  const dying = transact(pool, async (tx) => {
    const pid = await pidOf(tx);
    await Promise.all([tx`select pg_sleep(60)`, kill(pid)]);
  });
  await expect(dying).rejects.toMatchObject({ code: "CONNECTION_CLOSED" });
  // The death may still be told to one of them.
  await vi.waitFor(async () => expect(await pool`select 1 as one`).toEqual([{ one: 1 }]), {
    timeout: 20_000,
  });
});

test("bytes that wait while their connection closes are in the way of no later one", async () => {
  const pool = connect(db.urls.owner, { max: 1 });
  onTestFinished(() => pool.end());
  const dying = transact(pool, async (tx) => {
    const pid = await pidOf(tx);
    // In every turn something is said that is sent in the next.
    let gone = false;
    const ending = kill(pid).finally(() => {
      gone = true;
    });
    for (let more = 20; more > 0; more -= gone ? 1 : 0) {
      void Promise.resolve()
        .then(() => tx`select 1`.catch(() => undefined))
        .catch(() => undefined);
      await setImmediate();
    }
    await ending;
  });
  await expect(dying).rejects.toThrow();
  await vi.waitFor(async () => expect(await pool`select 1 as one`).toEqual([{ one: 1 }]), {
    timeout: 20_000,
  });
});
