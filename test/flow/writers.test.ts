/** Many processes on one log, killed at random; and what they must obey that lands amid them. */
import { type ChildProcess, spawn } from "node:child_process";
import { EventEmitter, once } from "node:events";
import { createInterface } from "node:readline";
import { afterAll, beforeAll, expect, test } from "vitest";
import { enrol } from "../../src/flow/key/enrol.ts";
import { revoke } from "../../src/flow/key/revoke.ts";
import { card } from "../../src/flow/rate/card.ts";
import { compiled } from "../compile.ts";
import { CARD, kidOf, RUNNER } from "../core/history.ts";
import { closeHouse, type House, newAgent, newLog, ofKind, openHouse } from "./door.ts";
import { controlIndexOf, readBack } from "./replay.ts";
import { BATCH, BATCHES, type Plan, WRITERS } from "./writer.ts";

let house: House;

beforeAll(async () => {
  house = await openHouse();
});

afterAll(() => closeHouse(house));

const SCRIPT = compiled(new URL("./writer.ts", import.meta.url));
const PROCESSES = 4;
const REPORTS = WRITERS * BATCHES * BATCH;
/** Within the skew, and after what is to take effect amid the writers. */
const FINISHED = "2026-11-20T12:04:00.000Z";
const AMID = "2026-11-20T12:00:30.000Z";
const FUTURE = "2026-12-01T00:00:00.000Z";

/** A writer process, and every answer that it was heard to give. */
class Writers {
  readonly answers: string[] = [];
  readonly #plan: Plan;
  readonly #heard = new EventEmitter();
  #child: ChildProcess;
  #closed: Promise<number | null>;

  constructor(plan: Plan) {
    this.#plan = plan;
    [this.#child, this.#closed] = this.#start();
  }

  /** Until it has given so many answers, in all its lives. */
  async heard(count: number): Promise<void> {
    while (this.answers.length < count) await once(this.#heard, "line");
  }

  async killAndRestart(): Promise<void> {
    this.#child.kill("SIGKILL");
    await this.#closed;
    [this.#child, this.#closed] = this.#start();
  }

  /** Its exit code; what it says on standard error is the test's. */
  async ended(): Promise<number | null> {
    return await this.#closed;
  }

  #start(): [ChildProcess, Promise<number | null>] {
    const args = [SCRIPT, JSON.stringify(this.#plan)];
    const child = spawn(process.execPath, args, { stdio: ["ignore", "pipe", "inherit"] });
    createInterface({ input: child.stdout }).on("line", (line) => {
      this.answers.push(line);
      this.#heard.emit("line");
    });
    return [child, once(child, "close").then(([code]) => code)];
  }
}

/** Four processes with a key each; two and two report the same jobs of the same runner. */
async function startWriters(log: string): Promise<Writers[]> {
  const door = house.open();
  const { archive, database } = house;
  const url = database.urls.writer;
  const seeds = Array.from({ length: PROCESSES }, (_, i) => 101 + i);
  for (const [i, seed] of seeds.entries()) {
    await newAgent(door, log, seed, i === 0 ? [{}] : [{ effective_from: FUTURE }]);
  }
  return seeds.map((seed, i) => {
    const block = i % 2;
    return new Writers({ url, archive, log, seed, block, finished_at: FINISHED });
  });
}

/** Every answer that anybody heard is what the log says now. */
async function assertKept(log: string, writers: readonly Writers[]): Promise<void> {
  const rows = await house.database.reader<{ digest: string; code: string; index: bigint }[]>`
    select encode(digest, 'base64') as digest, code, index from reports where log = ${log}`;
  const kept = new Set(rows.map((row) => `${row.digest} ${row.code} ${row.index}`));
  for (const { answers } of writers) {
    expect(answers.filter((answer) => !kept.has(answer))).toEqual([]);
  }
}

test("forty writers in four processes leave no gap, no fork, no second entry for a job (L01, L29, T08)", async () => {
  const log = await newLog(house.open(), "forty writers");
  const writers = await startWriters(log);
  const ends = await Promise.all(writers.map((each) => each.ended()));
  expect(ends).toEqual(writers.map(() => 0));
  expect(writers.map(({ answers }) => answers.length)).toEqual(writers.map(() => REPORTS));
  const entries = await readBack(house, log);
  expect(ofKind(entries, "usage")).toHaveLength(2 * REPORTS);
  await assertKept(log, writers);
});

test("killed with -9 at random and restarted, still so; all that was answered is there, and what lands amid them is obeyed by every entry after it and by none before", async () => {
  const door = house.open();
  const log = await newLog(door, "killed writers");
  const writers = await startWriters(log);
  const [first, second, , fourth] = writers;
  const random = (): number => 1 + Math.floor(Math.random() * (REPORTS / 2));
  const kills = writers.map(async (each) => {
    await each.heard(random());
    await each.killAndRestart();
  });
  await first?.heard(REPORTS / 4);
  const newCard = { ...CARD, effective_from: AMID, runner_factors: { small: "2", tiny: "0.5" } };
  const carded = await card(door, { log, by: "finance" }, withoutOrigin(newCard));
  await second?.heard(REPORTS / 4);
  const line = { ...RUNNER, effective_from: AMID, machine_type: "tiny" };
  const enrolment = { namespaces: [], runners: [line], claim_seconds: 60 };
  const enrolled = await enrol(door, log, "ops", enrolment);
  await fourth?.heard(REPORTS / 4);
  const revocation = { last_trusted_counter: "20", reason: "stolen" };
  const revoked = await revoke(door, { log, kid: kidOf(104), by: "ops" }, revocation);
  await Promise.all(kills);
  const ends = await Promise.all(writers.map((each) => each.ended()));
  expect(ends).toEqual(writers.map(() => 0));

  // The replay judges each entry by those before it alone.
  const entries = await readBack(house, log);
  await assertKept(log, writers);
  const usages = ofKind(entries, "usage");
  expect(usages).toHaveLength(2 * REPORTS);
  for (const usage of usages) {
    const { card, machine_type } = usage.body;
    expect(card).toBe(usage.index > carded.index ? String(carded.index) : "1");
    expect(machine_type).toBe(usage.index > enrolled.index ? "tiny" : "small");
  }
  const ended = ofKind(entries, "hold").filter(({ body }) => body.code === "key-ended");
  expect(ended.every(({ index }) => index > revoked.index)).toBe(true);
  expect(controlIndexOf(entries)).toBe(revoked.index);
});

function withoutOrigin({ approval: _, by: __, salt: ___, ...input }: typeof CARD) {
  return input;
}
