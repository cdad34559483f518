/** Ten thousand jobs of a platform against the reports of its runners, with differences that are known. */
import { afterAll, beforeAll, expect, test } from "vitest";
import { GRACE_MS, TOLERANCE_MS } from "../../../src/core/match.ts";
import { instantText } from "../../../src/core/unit.ts";
import { cover } from "../../../src/flow/reconcile/cover.ts";
import { isLastPage, type Matching, matchDue } from "../../../src/flow/reconcile/match.ts";
import { notice } from "../../../src/flow/reconcile/notice.ts";
import type { SeenJob } from "../../../src/flow/reconcile/seen-job.ts";
import { take } from "../../../src/flow/reconcile/take.ts";
import { readDueJobs, settleJobs } from "../../../src/store/platform-jobs.ts";
import { transact } from "../../../src/store/transact.ts";
import { addUnseen, countUnseen } from "../../../src/store/unseen-usages.ts";
import {
  closeHouse,
  type Door,
  entriesOf,
  type House,
  newAgent,
  newLog,
  ofKind,
  openHouse,
  reported,
  sha256,
} from "../door.ts";

const JOBS = 10_000;
const SEED = 5;
const RUNNERS = ["700", "701", "702", "703"];
const DAY = 86_400_000;
const SALT = Buffer.alloc(16).toString("base64");

/** How a job of a number differs; the last that fits. */
const PLANTED: [name: string, every: number][] = [
  ["within", 3],
  ["longer", 271],
  ["shorter", 911],
  ["unreported", 193],
  ["awaited", 347],
  ["unknown", 577],
  ["foreign", 769],
  ["elsewhere", 1_429],
  ["canceled", 521],
  ["running", 1_999],
  ["held", 3_331],
];
const kindOf = (job: number): string =>
  PLANTED.findLast(([, every]) => job % every === 0)?.[0] ?? "alike";
const ofKindOf = (...kinds: string[]): string[] =>
  numbers.filter((job) => kinds.includes(kindOf(job))).map(String);
const numbers = Array.from({ length: JOBS }, (_, i) => i + 1);

let house: House;
let door: Door;
let log: string;
let matching: Matching;

const uuid = (runner: string): string => `runner-${runner}`;
const runnerOf = (job: number): string => RUNNERS[job % RUNNERS.length] ?? "700";

/** All that the runner measured; awaited ones ended within the last day. */
function measured(job: number): { started: number; ended: number; ms: number } {
  const ago = kindOf(job) === "awaited" ? (job % 20) + 1 : 30 + ((job * 7) % 200);
  const ended = door.now - ago * 3_600_000 - job;
  const ms = 1_000 + ((job * 7_919) % 3_600_000);
  return { started: ended - ms, ended, ms };
}

function reportFor(job: number, counter: number): string {
  const { ended, ms, started } = measured(job);
  const usage = {
    duration_ms: String(ms),
    finished_at: instantText(ended),
    started_at: instantText(started),
  };
  const id = { id: String(job), project_id: String(50 + (job % 9)), root_namespace_id: "7" };
  const runner = kindOf(job) === "held" ? "nobody" : uuid(runnerOf(job));
  return reported(SEED, log, { counter: String(counter), uuid: runner, job: id, usage });
}

function seenAs(job: number): SeenJob[] {
  const { ended, ms, started } = measured(job);
  const kind = kindOf(job);
  if (kind === "unknown") return [];
  const more = { within: (job % 10_001) - 5_000, longer: 48 * 60_000, shorter: -6_000 }[kind] ?? 0;
  const run = { started_at: instantText(started), duration_ms: BigInt(ms + more) };
  const seen = {
    job_id: String(job),
    runner_id: kind === "foreign" ? (RUNNERS[(job + 1) % 4] ?? "") : runnerOf(job),
    project_id: kind === "elsewhere" ? "99" : String(50 + (job % 9)),
    status: "success",
  };
  if (kind === "canceled")
    return [{ ...seen, status: "canceled", finished_at: instantText(ended) }];
  if (kind === "running") return [{ ...seen, status: "running", ...run }];
  return [{ ...seen, ...run, finished_at: instantText(ended) }];
}

const isReported = (job: number): boolean =>
  !["unreported", "awaited", "canceled", "running"].includes(kindOf(job));

beforeAll(async () => {
  house = await openHouse();
  door = house.open();
  log = await newLog(door, "population");
  const lines = RUNNERS.map((runner_id) => ({ runner_id, uuid: uuid(runner_id) }));
  await newAgent(door, log, SEED, lines);
  const { writer: sql } = house.database;
  const bounds = { tolerance_ms: TOLERANCE_MS, grace_ms: GRACE_MS };
  const clock = { now: () => door.now };
  matching = { ...door, sql, clock, hash: sha256, bounds };
});
afterAll(() => closeHouse(house));

async function reconciled(): Promise<{ opened: number; healed: number }> {
  const total = { opened: 0, healed: 0 };
  for (;;) {
    const { entries, opened } = await notice(matching, log);
    total.opened += opened;
    if (entries === 0n) break;
  }
  for (;;) {
    const matched = await matchDue(matching, log);
    total.opened += matched.opened;
    total.healed += matched.healed;
    if (isLastPage(matched)) return total;
  }
}

async function breaks(): Promise<Record<string, string[]>> {
  const found: Record<string, string[]> = {};
  for (const { body } of ofKind(await entriesOf(house.database.reader, log), "break")) {
    found[body.code] = [...(found[body.code] ?? []), body.job_id];
  }
  for (const jobs of Object.values(found)) jobs.sort((a, b) => Number(a) - Number(b));
  return found;
}

async function submitted(jobs: readonly number[], first: number): Promise<void> {
  for (let at = 0; at < jobs.length; at += 500) {
    const texts = jobs.slice(at, at + 500).map((job, i) => reportFor(job, first + at + i));
    await door.submit(...texts);
  }
}

async function seen(jobs: readonly number[]): Promise<void> {
  for (let at = 0; at < jobs.length; at += 1_000) {
    const page = jobs.slice(at, at + 1_000).flatMap(seenAs);
    await take({ ...matching }, log, page, "upload");
  }
}

async function covered(to: number): Promise<void> {
  for (const runner of RUNNERS) {
    const source = "upload" as const;
    await cover(matching, { log, runner, to: instantText(to), by: "platform", source });
  }
}

const EXPECTED = () => ({
  duration: ofKindOf("longer", "shorter"),
  "foreign-runner": ofKindOf("foreign"),
  "missing-job": ofKindOf("unknown"),
  "missing-report": ofKindOf("unreported"),
  "other-namespace": ofKindOf("elsewhere"),
});

test("of 10,000 jobs each difference is found, named and counted, and none is invented", async () => {
  const half = numbers.filter((job) => job % 2 === 0);
  const rest = numbers.filter((job) => job % 2 === 1);
  // The platform is first with one half, the runners with the other.
  await seen(half);
  await submitted(numbers.filter(isReported), 1);
  await reconciled();
  await seen(rest);
  await covered(door.now - 3_600_000);
  await reconciled();
  expect(await breaks()).toEqual(EXPECTED());
});

test("what was looked at is looked at no more: told again, it opens nothing and costs no second look", async () => {
  await seen(numbers);
  expect(await reconciled()).toEqual({ opened: 0, healed: 0 });
  expect(await breaks()).toEqual(EXPECTED());
});

test("what reconciliation keeps beside the log comes back when its mark is put to the beginning, and opens nothing twice", async () => {
  const { reader, writer } = house.database;
  const kept = () => reader`
    select index, job_id, runner_id, broken from unseen_usages where log = ${log} order by job_id`;
  const before = await kept();
  expect(before).toHaveLength(ofKindOf("unknown").length);
  await writer`delete from unseen_usages where log = ${log}`;
  await writer`update reconcile_marks set index = 0 where log = ${log} and part = 'population'`;
  expect(await reconciled()).toEqual({ opened: 0, healed: 0 });
  expect(await kept()).toEqual(before);
});

test("two that look at once open each break once", async () => {
  const { writer } = house.database;
  await writer`update platform_jobs set due_at = '-infinity' where log = ${log} and state = 'differs'`;
  await Promise.all([matchDue(matching, log), matchDue(matching, log)]);
  expect(await breaks()).toEqual(EXPECTED());
});

test("a report that comes after its break heals it, and one that comes in time never was one", async () => {
  const late = numbers.filter((job) => ["unreported", "awaited"].includes(kindOf(job)));
  const unreported = ofKindOf("unreported").length;
  await submitted(late, 100_000);
  expect(await reconciled()).toEqual({ opened: 0, healed: unreported });
  door.now += 2 * DAY;
  expect(await reconciled()).toEqual({ opened: 0, healed: 0 });
  const ends = ofKind(await entriesOf(house.database.reader, log), "break_resolved");
  expect(ends).toHaveLength(unreported);
  expect(ends.every(({ body }) => body.outcome === "healed" && body.evidence !== "")).toBe(true);
});

test("a job that the platform names after all heals the break that said it has none", async () => {
  const [job = ""] = ofKindOf("unknown");
  const { ended, ms, started } = measured(Number(job));
  const said = { status: "success", started_at: instantText(started), duration_ms: BigInt(ms) };
  const times = { ...said, finished_at: instantText(ended) };
  const named = { job_id: job, runner_id: runnerOf(Number(job)), ...times };
  await take({ ...matching }, log, [named], "webhook");
  expect(await reconciled()).toEqual({ opened: 0, healed: 1 });
});

/** The platform says that a job which was alike took so much longer. */
async function differing(job: string, more: number): Promise<{ opened: number; healed: number }> {
  const { ended, ms, started } = measured(Number(job));
  const duration_ms = BigInt(ms + more);
  const said = { status: "success", started_at: instantText(started), duration_ms };
  const times = { ...said, finished_at: instantText(ended) };
  const named = { job_id: job, runner_id: runnerOf(Number(job)), ...times };
  await take({ ...matching }, log, [named], "webhook");
  return await reconciled();
}

/** Two persons accept the newest break. */
async function accept(): Promise<void> {
  const entries = await entriesOf(house.database.reader, log);
  const { index = 0n } = ofKind(entries, "break").at(-1) ?? {};
  const end = { approval: "", break: String(index), by: "p_finance", evidence: "", salt: SALT };
  await door.appender.control(log, "break_resolved", () => {
    return { ...end, outcome: "accepted", reason: "goodwill", ticket: "T-1" };
  });
}

test("what differs by other figures is another break: an accepted one does not cover it", async () => {
  const [job = ""] = ofKindOf("alike");
  const round = (more: number) => differing(job, more);
  expect(await round(6_000)).toEqual({ opened: 1, healed: 0 });
  expect(await round(6_000)).toEqual({ opened: 0, healed: 0 });
  await accept();
  expect(await round(6_000)).toEqual({ opened: 0, healed: 0 });
  expect(await round(36_000_000)).toEqual({ opened: 1, healed: 0 });
  expect(await round(0)).toEqual({ opened: 0, healed: 1 });
  expect(await round(72_000_000)).toEqual({ opened: 1, healed: 0 });
});

test("what healed and differs again by the same figures is open again, until two persons have decided", async () => {
  const [, job = ""] = ofKindOf("alike");
  for (const _ of [1, 2, 3]) {
    expect(await differing(job, 6_000)).toEqual({ opened: 1, healed: 0 });
    expect(await differing(job, 6_001)).toEqual({ opened: 1, healed: 1 });
    expect(await differing(job, 0)).toEqual({ opened: 0, healed: 1 });
  }
  expect(await differing(job, 6_000)).toEqual({ opened: 1, healed: 0 });
  const { writer } = house.database;
  await writer`update platform_jobs set due_at = '-infinity' where log = ${log} and job_id = ${job}`;
  await Promise.all([matchDue(matching, log), matchDue(matching, log)]);
  await accept();
  expect(await differing(job, 0)).toEqual({ opened: 0, healed: 0 });
  expect(await differing(job, 6_000)).toEqual({ opened: 0, healed: 0 });
});

test("a job that the platform names while its usage is noticed counts as reported once", async () => {
  const { writer } = house.database;
  const span = { from: instantText(door.now - 300 * DAY), to: instantText(door.now + DAY) };
  const before = await countUnseen(writer, log, span);
  const job = JOBS + 1;
  await door.submit(reportFor(job, job));
  const to = BigInt((await entriesOf(house.database.reader, log)).length);
  await transact(writer, async (tx) => {
    await addUnseen(tx, log, { from: to - 1n, to });
    await take({ ...matching }, log, seenAs(job), "webhook");
  });
  expect(await countUnseen(writer, log, span)).toEqual(before);
});

test("a job that changed while it was judged is judged again, though another look has settled it", async () => {
  const [, , job = ""] = ofKindOf("alike");
  const { writer } = house.database;
  await differing(job, 6_000);
  await differing(job, 0);
  const before = { job_id: job, revision: 0n, state: "differs", usage: undefined } as const;
  await settleJobs(writer, log, [{ ...before, dueAt: undefined }]);
  const [due] = await readDueJobs(writer, log, { now: door.now, limit: 1 });
  expect(due?.job_id).toBe(job);
  expect(await reconciled()).toEqual({ opened: 0, healed: 0 });
});
