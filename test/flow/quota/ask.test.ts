/** The loop that brings ledger and live usage together, over a real database and the machine itself. */
import { afterAll, beforeAll, expect, test } from "vitest";
import { Problem } from "../../../src/core/problem.ts";
import type { Answer, Ask, Command, NamespaceKey } from "../../../src/core/quota/live.ts";
import { type Asking, askNamespace } from "../../../src/flow/quota/ask.ts";
import { type Ledger, openLedger } from "../../../src/flow/quota/ledger.ts";
import { Seen } from "../../../src/flow/quota/seen.ts";
import { openLive } from "../../../src/flow/quota/standing.ts";
import type { Sql } from "../../../src/store/connect.ts";
import { openLiveProcess } from "../../../src/store/live-process.ts";
import { NOW } from "../../core/history.ts";
import {
  closeHouse,
  type Door,
  type House,
  newAgent,
  newLog,
  openHouse,
  reported,
} from "../door.ts";

const MINUTE = 60_000_000_000n;
const ANY_AGE = { maxAgeMs: Number.MAX_SAFE_INTEGER };

let house: House;
let door: Door;
let log: string;
let counter = 0;
const clock = { time: Date.parse(NOW), now: () => clock.time };
const ledgers: Ledger[] = [];

beforeAll(async () => {
  house = await openHouse();
  door = house.open();
  log = await newLog(door, "ask");
  await newAgent(door, log, 1);
});
afterAll(async () => {
  await Promise.all(ledgers.map((ledger) => ledger.close()));
  await closeHouse(house);
});

/** What a test sees of one live usage, shared by as many processes as it wants. */
function openPlace() {
  const store = openLiveProcess();
  const live = openLive({ process: store, clock, failed: () => undefined });
  const commands: { command: Command; answer: Answer }[] = [];
  const run = async (key: NamespaceKey, command: Command) => {
    const answered = await live.run(key, command);
    commands.push({ command, answer: answered.answer });
    return answered;
  };
  return { live: { run, state: live.state }, commands };
}

/** One process: its ledger polls nothing by itself while the test runs. */
function openProcess({ live }: Pick<Asking, "live">, sql: Sql = house.database.writer): Asking {
  const ledger = openLedger({ sql, clock, failed: () => undefined, pollMs: 3_600_000 });
  ledgers.push(ledger);
  return { ledger, live, clock, seen: new Seen() };
}

/** So old that what is known by now is read anew. */
const NEWEST = { maxAgeMs: -1 };

async function report(namespace: string, id: string, minutes = 1): Promise<void> {
  counter += 1;
  const job = { id, root_namespace_id: namespace };
  const usage = { duration_ms: String(minutes * 60_000) };
  const text = reported(1, log, { counter: String(counter), job, usage });
  const { results } = await door.submit(text);
  if (results[0]?.code !== "accepted") throw new Error(results[0]?.code);
}

function run(job: string, minutes: number): Ask {
  const [amount, elapsedMs] = [BigInt(minutes) * MINUTE, BigInt(minutes) * 60_000n];
  return { kind: "run", job, amount, elapsedMs, until: clock.time + 3_600_000, by: 2n };
}

/** Used by the figures, and live. */
async function standing(asking: Asking, namespace: string, options = ANY_AGE) {
  const { live, shown } = await askNamespace(asking, { log, namespace }, [], options);
  return { used: shown.used / MINUTE, live: live / MINUTE };
}

test("a heartbeat that comes after its report adds nothing, at a process that never heard of the job", async () => {
  const process = openProcess(openPlace());
  await report("11", "1101", 3);
  const key = { log, namespace: "11" };
  const { results } = await askNamespace(process, key, [run("1101", 9)], ANY_AGE);
  expect(results).toEqual([{ allowed: true, known: false, onLog: true }]);
  expect(await standing(process, "11")).toEqual({ used: 3n, live: 0n });
});

test("nor at one that has heard it before, and whose figures do not hold the report", async () => {
  const place = openPlace();
  const [late, early] = [openProcess(place), openProcess(place)];
  const key = { log, namespace: "12" };
  for (const process of [late, early]) await askNamespace(process, key, [run("1201", 2)], ANY_AGE);
  await report("12", "1201", 3);
  expect(await standing(early, "12", NEWEST)).toEqual({ used: 3n, live: 0n });
  // Its own figures are of before the report, and by them the job is live.
  const asked = await askNamespace(late, key, [run("1201", 4)], ANY_AGE);
  expect(asked.results[0]?.onLog).toBe(true);
  expect(await standing(late, "12")).toEqual({ used: 3n, live: 0n });
  expect(place.commands.map(({ answer }) => answer.kind)).toContain("behind");
});

test("a job that is on the log already when it is first heard is waited for, and given back to nobody", async () => {
  const process = openProcess(openPlace());
  const key = { log, namespace: "13" };
  await askNamespace(process, key, [run("1301", 2)], ANY_AGE);
  await report("13", "1301", 3);
  await report("13", "1302", 1);
  // 1302 is looked up: figures have to hold it, and with it all that is before it.
  const asked = await askNamespace(process, key, [run("1302", 1)], ANY_AGE);
  expect(asked.results[0]?.onLog).toBe(true);
  expect([asked.shown.used / MINUTE, asked.live]).toEqual([4n, 0n]);
});

test("a process that comes back after others went on looks up who has ended meanwhile", async () => {
  const place = openPlace();
  const [old, fresh] = [openProcess(place), openProcess(place)];
  const key = { log, namespace: "14" };
  await askNamespace(old, key, [run("1401", 2), run("1402", 2)], ANY_AGE);
  await report("14", "1401", 3);
  // It has read nothing of the time before: to it the report is no news.
  const asked = await askNamespace(fresh, key, [], ANY_AGE);
  expect(place.commands.map(({ answer }) => answer.kind)).toContain("gap");
  expect([asked.shown.used / MINUTE, asked.live / MINUTE]).toEqual([3n, 2n]);
  expect(await standing(old, "14")).toEqual({ used: 3n, live: 2n });
});

test("what is handed over once is not handed over again", async () => {
  const place = openPlace();
  const process = openProcess(place);
  const key = { log, namespace: "15" };
  await askNamespace(process, key, [run("1501", 2)], ANY_AGE);
  await report("15", "1501", 3);
  await askNamespace(process, key, [], NEWEST);
  await askNamespace(process, key, [], NEWEST);
  const handed = place.commands.map(({ command }) => command.settled);
  expect(handed).toEqual([[], ["1501"], []]);
});

test("a job is looked up once, and after that what is committed tells", async () => {
  const process = openProcess(openPlace());
  const looked: string[] = [];
  const { ledger } = process;
  const counting: Asking = {
    ...process,
    ledger: {
      known: (key, wants) => ledger.known(key, wants),
      hold: (key, wants) => ledger.hold(key, wants),
      onLog: (of, jobs) => {
        looked.push(...jobs);
        return ledger.onLog(of, jobs);
      },
    },
  };
  const key = { log, namespace: "16" };
  for (let minute = 1; minute < 5; minute += 1) {
    await askNamespace(counting, key, [run("1601", minute), run("1602", minute)], NEWEST);
    await report("16", `16${10 + minute}`);
  }
  expect(looked).toEqual(["1601", "1602"]);
  await report("16", "1601", 9);
  const asked = await askNamespace(counting, key, [run("1601", 5), run("1602", 5)], NEWEST);
  expect(asked.results.map(({ onLog = false }) => onLog)).toEqual([true, false]);
  expect(looked).toHaveLength(2);
});

test("a log that lost its tail replaces what live usage knew of it", async () => {
  const place = openPlace();
  const process = openProcess(place);
  const key = { log, namespace: "17" };
  const { figures } = await askNamespace(process, key, [], ANY_AGE);
  // As another process left it that has seen a hundred entries more, one of which was of this namespace.
  const ahead = { ...figures, asOf: figures.asOf + 100n, touched: figures.asOf + 99n };
  const command = { now: clock.time, figures: ahead, since: figures.asOf, settled: [], asks: [] };
  await place.live.run(key, command);
  clock.time += 1;
  const asked = await askNamespace(process, key, [run("1701", 2)], ANY_AGE);
  expect(asked.figures.asOf).toBe(figures.asOf);
  expect(asked.live / MINUTE).toBe(2n);
});

test("a log that there is not is not found", async () => {
  const process = openProcess(openPlace());
  const missing = askNamespace(process, { log: "f".repeat(32), namespace: "1" }, [], ANY_AGE);
  await expect(missing).rejects.toEqual(new Problem("not-found"));
});
