/** What the platform names no more or not at all, also after the database was lost and came back. */
import { expect, test } from "vitest";
import { instantText } from "../../../src/core/unit.ts";
import { seal } from "../../../src/flow/log/seal.ts";
import { cover } from "../../../src/flow/reconcile/cover.ts";
import { isLastPage, matchDue } from "../../../src/flow/reconcile/match.ts";
import { notice } from "../../../src/flow/reconcile/notice.ts";
import { enlistRunners, type Pulling } from "../../../src/flow/reconcile/pull.ts";
import { take } from "../../../src/flow/reconcile/take.ts";
import { CARD } from "../../core/history.ts";
import { freshDatabase } from "../../postgres.ts";
import { entriesOf, newAgent, ofKind, openDoor, reported, sha256 } from "../door.ts";
import { restore, sealerOn } from "../restored.ts";
import { type ApiJob, walkAll } from "./gitlab.ts";
import {
  DAY,
  door,
  HOUR,
  house,
  jobOf,
  log,
  pulling,
  seed,
  standIn,
  withPlatform,
} from "./scene.ts";

withPlatform("kept");

/** Reports of these jobs as the platform has them. */
async function reportAll(jobs: readonly ApiJob[]): Promise<void> {
  const texts = jobs.map(({ finished_at, id, started_at }, i) => {
    const job = { id: String(id), project_id: "50" };
    const usage = { finished_at: String(finished_at), started_at: String(started_at) };
    return reported(seed, log, { counter: String(i + 1), uuid: `u${seed}`, job, usage });
  });
  await door.submit(...texts);
}

/** Codes and jobs of the breaks that are open when all has been looked at. */
async function openAfterLook(on: Pulling): Promise<string[]> {
  const bounds = { tolerance_ms: 5_000n, grace_ms: 5 * DAY };
  const matching = { ...on, hash: sha256, bounds };
  while ((await notice(matching, log)).entries > 0n);
  while (!isLastPage(await matchDue(matching, log)));
  const entries = await entriesOf(on.sql, log);
  const ended = ofKind(entries, "break_resolved").map(({ body }) => body.break);
  const open = ofKind(entries, "break").filter(({ index }) => !ended.includes(String(index)));
  return open.map(({ body }) => `${body.code} ${body.job_id}`);
}

test("a recovered database covers all jobs anew before it says of any that the platform has none", async () => {
  standIn.jobs = Array.from({ length: 6 }, (_, i) => jobOf(i + 1, (6 - i) * 30 * HOUR));
  for (let i = 0; i < 120; i += 1) standIn.jobs.push(jobOf(2_000 + i, HOUR));
  await reportAll([...standIn.jobs, jobOf(9, 40 * HOUR)]);
  await walkAll(pulling, log);
  expect(await openAfterLook(pulling)).toEqual(["missing-job 9"]);
  await seal({ ...sealerOn(pulling.sql, house.archive), log });
  const empty = await freshDatabase();
  const again = openDoor(empty.writer, { archive: house.archive, seed: "recovered" });
  try {
    await restore(empty, house.archive, log);
    again.now = door.now + HOUR;
    const { appender, random } = again;
    const clock = { now: () => again.now };
    const recovered = { ...pulling, sql: empty.writer, appender, random, clock };
    // Before any walk, behind an upload that says nothing of the jobs that were lost, and behind walks.
    expect(await openAfterLook(recovered)).toEqual(["missing-job 9"]);
    const told = { log, runner: "700", by: "p_platform", source: "upload" } as const;
    await cover(recovered, { ...told, to: instantText(again.now - 45 * 60_000) });
    expect(await openAfterLook(recovered)).toEqual(["missing-job 9"]);
    await enlistRunners(recovered);
    for (const _ of [1, 2]) {
      await walkAll(recovered, log);
      expect(await openAfterLook(recovered)).toEqual(["missing-job 9"]);
      again.now += 2 * HOUR;
    }
    const all = ofKind(await entriesOf(empty.reader, log), "coverage").map(({ body }) => body);
    expect(all.map(({ jobs }) => jobs)).toEqual(["126", "0", "126", "0"]);
    expect(all[2]?.from).toBe(all[0]?.from);
  } finally {
    await again.close();
    await empty.drop();
  }
});

test("an upload to a recovered database may say that all jobs are in it anew, and is then believed", async () => {
  const told = { log, runner: "700", by: "p_platform", source: "upload" } as const;
  await reportAll([jobOf(1, 30 * HOUR)]);
  await cover(pulling, { ...told, to: instantText(door.now - 40 * HOUR) });
  await pulling.sql`delete from reconcile_marks where log = ${log}`;
  await cover(pulling, { ...told, to: instantText(door.now - 20 * HOUR) });
  expect(await openAfterLook(pulling)).toEqual([]);
  await cover(pulling, { ...told, to: instantText(door.now - HOUR), anew: true });
  expect(await openAfterLook(pulling)).toEqual(["missing-job 1"]);
});

test("usage whose job the platform lacked is asked after once a day, and its break heals when it is found", async () => {
  const late = jobOf(3, 2 * HOUR, { created_at: "2026-06-01T00:00:00.000Z" });
  // A page of old ones keeps the second walk from going down to it.
  standIn.jobs = [1_000, 2_000].flatMap((first) => {
    return Array.from({ length: 100 }, (_, i) =>
      jobOf(first + i, first === 1_000 ? 3 * DAY : HOUR),
    );
  });
  await reportAll([late]);
  await openAfterLook(pulling);
  await walkAll(pulling, log);
  expect(await openAfterLook(pulling)).toEqual(["missing-job 3"]);
  const asked = () => standIn.asked.filter((path) => path.endsWith("/jobs/3")).length;
  standIn.jobs.push(late);
  door.now += HOUR;
  await walkAll(pulling, log);
  expect([asked(), await openAfterLook(pulling)]).toEqual([1, ["missing-job 3"]]);
  door.now += DAY;
  await walkAll(pulling, log);
  expect([asked(), await openAfterLook(pulling)]).toEqual([2, []]);
});

test("a job that was seen running and is gone awaits its report for the grace, and then is a break", async () => {
  standIn.jobs = [jobOf(1, 0, { status: "running", finished_at: null, duration: null })];
  await walkAll(pulling, log);
  standIn.jobs = [];
  door.now += HOUR;
  await walkAll(pulling, log);
  expect(await openAfterLook(pulling)).toEqual([]);
  door.now += 5 * DAY;
  // It is asked after no more: what it waits for is its report.
  standIn.asked = [];
  await walkAll(pulling, log);
  expect(standIn.asked.filter((path) => path.includes("/projects/"))).toEqual([]);
  expect(await openAfterLook(pulling)).toEqual(["missing-report 1"]);
  await reportAll([jobOf(1, 2 * DAY)]);
  expect(await openAfterLook(pulling)).toEqual([]);
});

test("hosted usage of a job that ran on the customer's own runner stays a break when that one reports too", async () => {
  await door.appender.control(log, "rate_card", () => {
    return { ...CARD, tracking: "self_managed", project_factors: {} };
  });
  const own = { runner_id: "900", tracking: "self_managed", runner_type: "project" } as const;
  await newAgent(door, log, 200 + seed, [{ uuid: `own${seed}`, ...own }], ["7"]);
  await reportAll([jobOf(1, 5 * HOUR)]);
  const job = { id: "1", project_id: "50", root_namespace_id: "7" };
  const { finished_at, started_at } = jobOf(1, 5 * HOUR);
  const usage = { finished_at: String(finished_at), started_at: String(started_at) };
  const times = { ...usage, duration_ms: 60_000n };
  const seen = { job_id: "1", runner_id: "900", project_id: "50", status: "success", ...times };
  await take(pulling, log, [seen], "upload");
  expect(await openAfterLook(pulling)).toEqual(["foreign-runner 1"]);
  await door.submit(reported(200 + seed, log, { uuid: `own${seed}`, job, usage }));
  expect(await openAfterLook(pulling)).toEqual(["foreign-runner 1"]);
});

test("of jobs that ended before the runner was the log's nothing is kept or said, however they were heard of", async () => {
  const before = [jobOf(1, 40 * DAY), jobOf(2, 15 * DAY)];
  const running = jobOf(3, 5 * DAY, { started_at: instantText(door.now - 20 * DAY) });
  standIn.jobs = [...before, running];
  await walkAll(pulling, log);
  const told = before.map(({ finished_at, id, started_at }) => {
    const times = { started_at: String(started_at), finished_at: String(finished_at) };
    return { job_id: String(id), runner_id: "700", status: "success", ...times };
  });
  expect(await take(pulling, log, told, "webhook")).toBe(0);
  expect(await openAfterLook(pulling)).toEqual(["missing-report 3"]);
});

test("a walk goes down to jobs that were made so long before what is covered as it was told to look back", async () => {
  standIn.jobs = [1_000, 2_000].flatMap((first) => {
    return Array.from({ length: 100 }, (_, i) =>
      jobOf(first + i, first === 1_000 ? 3 * DAY : HOUR),
    );
  });
  await walkAll(pulling, log);
  // A manual job of a week ago runs now, and nobody reports it.
  const made = { created_at: instantText(door.now - 7 * DAY) };
  door.now += HOUR;
  standIn.jobs.push(jobOf(3, HOUR / 2, made));
  const known = async () =>
    await pulling.sql`select from platform_jobs where log = ${log} and job_id = 3`;
  await walkAll(pulling, log);
  expect(await known()).toHaveLength(0);
  await walkAll({ ...pulling, lookbackMs: 8 * DAY }, log);
  expect(await known()).toHaveLength(1);
});
