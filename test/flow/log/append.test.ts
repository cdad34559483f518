/** The door under failures, other clocks and other processes. */
import { afterAll, beforeAll, expect, onTestFinished, test } from "vitest";
import { connect } from "../../../src/store/connect.ts";
import { moveHead, readHead } from "../../../src/store/heads.ts";
import { CARD, NOW } from "../../core/history.ts";
import {
  closeHouse,
  codes,
  type Door,
  type House,
  newAgent,
  newLog,
  ofKind,
  openDoor,
  openHouse,
  reported,
} from "../door.ts";
import { readBack } from "../replay.ts";

let house: House;
let door: Door;

beforeAll(async () => {
  house = await openHouse();
  door = house.open();
});

afterAll(() => closeHouse(house));

const HOUR = 3_600_000;

/** Reports of different jobs, one of each number. */
function jobs(log: string, numbers: readonly number[], seed = 1): string[] {
  return numbers.map((n) => reported(seed, log, { counter: String(n), job: { id: String(n) } }));
}

/** Lets the database raise an error of this SQLSTATE whenever the log's head is to move. */
async function breakHead(log: string, state: string): Promise<() => Promise<void>> {
  const sql = house.database.superuser;
  const name = `break_${log.slice(0, 8)}`;
  await sql.unsafe(`
    create function ${name}() returns trigger language plpgsql as $$
    begin raise exception 'broken by the test' using errcode = '${state}'; end $$;
    create trigger ${name} before update on heads
      for each row when (new.log = '${log}') execute function ${name}();`);
  return async () => {
    await sql.unsafe(`drop function ${name} cascade`);
  };
}

test("a transaction that fails leaves nothing, is answered busy, and the retry gives exactly one row (T01, T59)", async () => {
  const log = await newLog(door, "fails");
  await newAgent(door, log, 1);
  const before = await readBack(house, log);
  const mend = await breakHead(log, "40001");
  const texts = jobs(log, [1, 2, 3]);
  await expect(door.submit(...texts)).rejects.toMatchObject({ code: "busy" });
  expect(await readBack(house, log)).toEqual(before);
  const rows = await house.database.reader`select from reports where log = ${log}`;
  expect(rows).toHaveLength(0);
  await mend();
  expect(codes(await door.submit(...texts))).toEqual(["accepted", "accepted", "accepted"]);
  expect(ofKind(await readBack(house, log), "usage")).toHaveLength(3);
});

test("an aborted append uses up no index (L19)", async () => {
  const log = await newLog(door, "gapless");
  await newAgent(door, log, 1);
  for (const n of [1, 2, 3]) {
    const mend = await breakHead(log, "40P01");
    await expect(door.submit(...jobs(log, [n]))).rejects.toMatchObject({ code: "busy" });
    await mend();
    const { results } = await door.submit(...jobs(log, [n]));
    expect(results[0]?.index).toBe(String(3 + n));
  }
});

test("what broke inside is no Problem, and is not hidden as one", async () => {
  const log = await newLog(door, "broken");
  await newAgent(door, log, 1);
  const mend = await breakHead(log, "P0001");
  await expect(door.submit(...jobs(log, [1]))).rejects.toMatchObject({ code: "P0001" });
  await mend();
});

test("one report whose data the database cannot store stands alone in its failure", async () => {
  const log = await newLog(door, "offender");
  await newAgent(door, log, 1);
  const offender = reported(1, log, { counter: "99", job: { id: "99" } });
  // Whatever a row's data may run into one day, a constraint of today stands for it.
  await house.database.owner.unsafe(`
    alter table jobs add constraint jobs_offender check (log <> '${log}' or job_id <> 99) not valid
  `);
  const failures = door.failures.length;
  const texts = [...jobs(log, [1, 2, 3, 4]), offender, ...jobs(log, [5, 6])];
  const found = codes(await door.submit(...texts));
  expect(found).toEqual([
    ...["accepted", "accepted", "accepted", "accepted"],
    "busy",
    ...["accepted", "accepted"],
  ]);
  expect(door.failures).toHaveLength(failures + 1);
  const entries = await readBack(house, log);
  expect(ofKind(entries, "usage")).toHaveLength(6);
  expect(codes(await door.submit(offender))).toEqual(["busy"]);
});

test("a clock that steps back never takes the log with it (L31)", async () => {
  const log = await newLog(door, "clock");
  await newAgent(door, log, 1);
  for (const [i, step] of [HOUR, -2 * HOUR, 0, -HOUR].entries()) {
    door.now = Date.parse(NOW) + step;
    await door.submit(...jobs(log, [i + 1]));
  }
  door.now = Date.parse(NOW);
  const ats = ofKind(await readBack(house, log), "usage").map(({ at }) => at);
  expect(ats).toEqual(new Array(4).fill("2026-11-20T13:00:00.000Z"));
});

test("a report is judged by its entry's own time, also where another process has the later clock", async () => {
  const other = house.open();
  const log = await newLog(door, "two clocks");
  await newAgent(door, log, 1);
  other.now += HOUR;
  await other.submit(...jobs(log, [1]));
  const usage = { finished_at: "2026-11-20T12:30:00.000Z" };
  const late = reported(1, log, { counter: "2", job: { id: "2" }, usage });
  expect(codes(await door.submit(late))).toEqual(["accepted"]);
  await readBack(house, log);
});

test("order is the head's, not the clock's: who commits later has the higher index (L03)", async () => {
  const other = house.open();
  other.now += HOUR;
  const log = await newLog(door, "order");
  await newAgent(door, log, 1);
  const indices: bigint[] = [];
  for (const n of [1, 2, 3, 4, 5, 6]) {
    const turn = n % 2 === 0 ? door : other;
    const { results } = await turn.submit(...jobs(log, [n]));
    indices.push(BigInt(results[0]?.index ?? -1));
  }
  expect(indices).toEqual([4n, 5n, 6n, 7n, 8n, 9n]);
  await readBack(house, log);
});

test("a write that comes too late cannot move a head that has gone on (L28)", async () => {
  const { reader, writer } = house.database;
  const log = await newLog(door, "late write");
  const before = await readHead(reader, log);
  await newAgent(door, log, 1);
  if (before === undefined) throw new Error("no head");
  const late = writer.begin((tx) => moveHead(tx, log, before, { ...before, size: 99n }));
  await expect(late).rejects.toThrow("moved under the lock");
  await readBack(house, log);
});

test("the same report to two processes at once is one entry, and both are told the same (T08)", async () => {
  const other = house.open();
  const log = await newLog(door, "at once");
  await newAgent(door, log, 1);
  for (let n = 1; n <= 20; n += 1) {
    const texts = jobs(log, [n]);
    const [a, b] = await Promise.all([door.submit(...texts), other.submit(...texts)]);
    expect(a).toEqual(b);
  }
  expect(ofKind(await readBack(house, log), "usage")).toHaveLength(20);
});

test("a key that another process has enrolled a moment ago is known", async () => {
  const other = house.open();
  const log = await newLog(door, "elsewhere");
  await newAgent(door, log, 1);
  expect(codes(await other.submit(reported(2, log)))).toEqual(["unknown-key"]);
  await newAgent(door, log, 2, [{ effective_from: "2026-12-01T00:00:00.000Z" }]);
  expect(codes(await other.submit(reported(2, log)))).toEqual(["accepted"]);
});

test("what comes while a commit is under way goes into the next, five hundred at most, no request split", async () => {
  const log = await newLog(door, "groups");
  await newAgent(door, log, 1);
  door.commits.length = 0;
  const [text = ""] = jobs(log, [1]);
  const [verdict] = await door.verifier.verify([text]);
  if (verdict?.kind !== "signed") throw new Error("no verdict");
  // The same bytes are never written twice: so many verdicts, and so little work.
  const request = new Array<typeof verdict>(90).fill(verdict);
  await Promise.all(Array.from({ length: 14 }, () => door.appender.reports(log, request)));
  expect(door.commits).toEqual([450, 450, 360]);
  await readBack(house, log);
});

/** A pool of its own: a connection that was torn must not be what another test gets from the house's. */
function apart(seed: string): Door {
  const sql = connect(house.database.urls.writer, { max: 10 });
  const door = openDoor(sql, { archive: house.archive, seed });
  onTestFinished(async () => {
    await door.close();
    await sql.end({ timeout: 1 });
  });
  return door;
}

test("a connection that is torn while its batch waits for the head is answered busy, and the next is served", async () => {
  const { superuser } = house.database;
  const door = apart("torn at the head");
  const log = await newLog(door, "torn at the head");
  await newAgent(door, log, 1);
  const [text = ""] = jobs(log, [1]);
  await superuser.begin(async (tx) => {
    await tx`select from heads where log = ${log} for update`;
    const waiting = expect(door.submit(text)).rejects.toMatchObject({ code: "busy" });
    let torn = 0;
    while (torn === 0) {
      const rows = await superuser`
        select pg_terminate_backend(pid)
        from pg_stat_activity
        where usename = 'minutebook_writer' and datname = current_database()
          and wait_event_type = 'Lock'`;
      torn = rows.length;
    }
    await waiting;
  });
  expect(codes(await door.submit(text))).toEqual(["accepted"]);
  expect(ofKind(await readBack(house, log), "usage")).toHaveLength(1);
});

test("connections torn at any moment cost answers, and the retries leave one row for each report", async () => {
  const door = apart("torn at any moment");
  const log = await newLog(door, "torn");
  await newAgent(door, log, 1);
  // Not while postgres.js asks for the types: nobody waits for that query, so nobody can handle it.
  const tear = (): Promise<unknown> => house.database.superuser`
    select pg_terminate_backend(pid)
    from pg_stat_activity
    where usename = 'minutebook_writer' and datname = current_database()
      and state <> 'idle' and query not like '%pg_type%'`;
  const writer = async (number: number): Promise<void> => {
    const numbers = [1, 2, 3, 4, 5].map((n) => number * 10 + n);
    for (const text of jobs(log, numbers)) {
      for (let tries = 0; ; tries += 1) {
        const submitted = door.submit(text);
        const [found] = await Promise.allSettled([submitted, tries % 2 === 0 && tear()]);
        if (found.status === "fulfilled") {
          expect(codes(found.value)).toEqual(["accepted"]);
          break;
        }
        expect(found.reason).toMatchObject({ code: "busy" });
      }
    }
  };
  await Promise.all(Array.from({ length: 8 }, (_, number) => writer(number)));
  expect(ofKind(await readBack(house, log), "usage")).toHaveLength(40);
});

test("a log whose archive is away is not written, and says so", async () => {
  const astray = house.open({ archive: `${house.archive}/nowhere` });
  const log = await newLog(door, "astray");
  await newAgent(door, log, 1);
  const before = await readBack(house, log);
  const request = astray.submit(reported(1, log));
  await expect(request).rejects.toMatchObject({ code: "archive-unavailable", status: 503 });
  expect(await readBack(house, log)).toEqual(before);
});

test("an instance has one log, also when two processes create it at once", async () => {
  const other = house.open();
  const both = await Promise.allSettled([newLog(door, "only one"), newLog(other, "only one")]);
  expect(both.filter(({ status }) => status === "fulfilled")).toHaveLength(1);
  const refused = both.find(({ status }) => status === "rejected");
  expect(refused).toMatchObject({ reason: { code: "log-exists" } });
  await expect(newLog(door, "only one")).rejects.toMatchObject({ code: "log-exists" });
});

test("a log that does not exist is not found", async () => {
  const control = door.appender.control("f".repeat(32), "rate_card", () => CARD);
  await expect(control).rejects.toMatchObject({ code: "not-found" });
});

test("a door that is closing answers what it has taken and refuses the rest", async () => {
  const closing = house.open();
  const log = await newLog(closing, "closing");
  await newAgent(closing, log, 1);
  const verdicts = await closing.verifier.verify(jobs(log, [1, 2]));
  const fits = verdicts.filter((verdict) => verdict.kind === "signed");
  const taken = closing.appender.reports(log, fits);
  const closed = closing.appender.close();
  await expect(closing.appender.reports(log, fits)).rejects.toMatchObject({ code: "busy" });
  expect((await taken).map(({ code }) => code)).toEqual(["accepted", "accepted"]);
  await closed;
});
