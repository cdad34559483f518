import { expect, onTestFinished, test } from "vitest";
import { instantText } from "../../../src/core/unit.ts";
import { completeness } from "../../../src/flow/reconcile/completeness.ts";
import { GitLabError } from "../../../src/flow/reconcile/gitlab.ts";
import { isLastPage, matchDue } from "../../../src/flow/reconcile/match.ts";
import { isNoticed, notice } from "../../../src/flow/reconcile/notice.ts";
import { pullStep } from "../../../src/flow/reconcile/pull.ts";
import { readCoverages } from "../../../src/store/breaks.ts";
import { claimPull, movePull } from "../../../src/store/pull-marks.ts";
import { entriesOf, newAgent, ofKind, reported, sha256 } from "../door.ts";
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

withPlatform("pull");

/** The newest has the highest number; they are so far apart. */
const jobsOf = (count: number, apartMs: number): ApiJob[] =>
  Array.from({ length: count }, (_, i) => jobOf(i + 1, (count - i) * apartMs + 2 * HOUR));

const stored = async () =>
  await house.database.reader<
    { job_id: bigint; finished_at: Date | null; duration_ms: bigint; status: string }[]
  >`
    select job_id, finished_at, duration_ms, status from platform_jobs where log = ${log} order by job_id`;
const storedIds = async () => (await stored()).map(({ job_id }) => Number(job_id));
const coverages = async () => ofKind(await entriesOf(house.database.reader, log), "coverage");

const walked = () => walkAll(pulling, log);

test("every job of every page is kept, and coverage says how far they are known, with a count and a digest", async () => {
  standIn.jobs = jobsOf(250, 60_000);
  await walked();
  expect(await storedIds()).toEqual(standIn.jobs.map(({ id }) => id).sort((a, b) => a - b));
  const [entry, ...more] = await coverages();
  expect(more).toEqual([]);
  expect(entry?.body).toMatchObject({ jobs: "250", runner_id: "700", source: "pull" });
  expect(entry?.body.from).toBe(instantText(door.now - 9 * DAY));
  expect(entry?.body.to).toBe(instantText(door.now - 60_000));
  expect(standIn.asked).toHaveLength(3);
});

test("the next walk goes no further down than it has to, and its coverage goes on where the last one ended", async () => {
  standIn.jobs = jobsOf(450, 30 * 60_000);
  await walked();
  standIn.asked = [];
  door.now += HOUR;
  standIn.jobs.push(jobOf(1_000, 10_000_000));
  await walked();
  const pages = standIn.asked.filter((path) => path.includes("/runners/"));
  expect(pages).toHaveLength(2);
  expect(await storedIds()).toContain(1_000);
  const [first, second] = await coverages();
  expect(second?.body.from).toBe(first?.body.to);
  expect(await readCoverages(house.database.reader, log, [700n])).toMatchObject([
    { from: first?.body.from, to: second?.body.to },
  ]);
});

test("G05: errors, rate limits and cut connections lose no job, and are waited out as GitLab asks", async () => {
  standIn.jobs = jobsOf(350, 60_000);
  const reset = String(Math.floor(door.now / 1_000) + 90);
  standIn.faults = [
    { status: 500 },
    undefined,
    { status: 429, headers: { "retry-after": "77" } },
    { status: 429, headers: { "ratelimit-reset": reset, "ratelimit-remaining": "0" } },
    "cut",
    "half",
    undefined,
    { status: 503 },
    { status: 302, headers: { location: "http://elsewhere.test/" } },
  ];
  const { refused, restsMs } = await walked();
  expect(refused).toEqual(["500", "429", "429", "unreachable", "unreachable", "503", "redirect"]);
  expect(restsMs[1]).toBeGreaterThan(70_000);
  expect(restsMs[1]).toBeLessThan(78_000);
  expect(restsMs[2]).toBeGreaterThan(80_000);
  // Where it does not say, each failure in a row waits longer than the one before.
  expect(restsMs[4]).toBeGreaterThan((restsMs[3] ?? 0) * 1.2);
  expect(await storedIds()).toHaveLength(350);
  expect(await coverages()).toHaveLength(1);
});

test("a budget that is used up is waited for before the next page", async () => {
  standIn.jobs = jobsOf(150, 60_000);
  const reset = String(Math.floor(door.now / 1_000) + 40);
  standIn.headers = { "ratelimit-remaining": "0", "ratelimit-reset": reset };
  await pullStep(pulling);
  await pullStep(pulling);
  expect(await pullStep(pulling)).toBeUndefined();
  expect(await storedIds()).toHaveLength(100);
});

test("a runner that turns out to be the log's for longer is covered from there on, without a hole", async () => {
  standIn.jobs = [jobOf(1, 15 * DAY), jobOf(2, 2 * HOUR)];
  await walked();
  const earlier = instantText(door.now - 20 * DAY);
  await newAgent(door, log, 100 + seed, [{ uuid: `again ${seed}`, effective_from: earlier }]);
  door.now += HOUR;
  await walked();
  const [first, second] = (await coverages()).map(({ body }) => body);
  expect([second?.from, second?.jobs]).toEqual([earlier, "2"]);
  expect(first && first.from > earlier).toBe(true);
  expect(await readCoverages(house.database.reader, log, [700n])).toMatchObject([
    { from: second?.from, to: second?.to },
  ]);
});

test("a job that ends between two pages, and one that is made meanwhile, are both known by the next walk", async () => {
  standIn.jobs = jobsOf(250, 60_000);
  const running = { status: "running", finished_at: null, duration: null };
  standIn.jobs = standIn.jobs.map((job) => (job.id === 240 ? { ...job, ...running } : job));
  standIn.afterPage = (page) => {
    if (page !== 1) return;
    standIn.jobs = standIn.jobs.map((job) => (job.id === 240 ? jobOf(240, 0) : job));
    standIn.jobs.push(jobOf(900, 0));
  };
  await walked();
  expect((await stored()).find(({ job_id }) => job_id === 240n)?.status).toBe("running");
  expect(await storedIds()).not.toContain(900);
  door.now += HOUR;
  await walked();
  expect((await stored()).find(({ job_id }) => job_id === 240n)).toMatchObject({
    status: "success",
    duration_ms: 60_000n,
  });
  expect(await storedIds()).toHaveLength(251);
  const [, second] = await coverages();
  expect(second?.body.jobs).toBe("2");
});

test("a job that runs for longer than walks overlap is asked after by its number until it ends", async () => {
  standIn.jobs = [jobOf(1, 0, { status: "running", finished_at: null, duration: null })];
  await walked();
  for (let i = 2; i < 350; i += 1) standIn.jobs.push(jobOf(i, -2 * DAY - i));
  door.now += 4 * DAY;
  await walked();
  standIn.jobs = standIn.jobs.map((job) =>
    job.id === 1 ? jobOf(1, HOUR, { created_at: job.created_at }) : job,
  );
  for (let i = 350; i < 500; i += 1) standIn.jobs.push(jobOf(i, HOUR));
  door.now += 2 * DAY;
  standIn.asked = [];
  await walked();
  expect(standIn.asked).toContain("/api/v4/projects/50/jobs/1");
  expect((await stored())[0]).toMatchObject({ status: "success", duration_ms: 60_000n });
});

test("a report of a job that was made long before it ran is no missing job: it is asked after by number", async () => {
  const matching = {
    ...pulling,
    hash: sha256,
    bounds: { tolerance_ms: 5_000n, grace_ms: 30 * DAY },
  };
  standIn.jobs = [...jobsOf(120, HOUR / 2).map((job) => ({ ...job, id: job.id + 1_000 }))];
  await walked();
  // The one was made months ago and ran now; of the other the platform knows nothing.
  standIn.jobs.push(jobOf(3, 2 * HOUR, { created_at: "2026-06-01T00:00:00.000Z" }));
  for (let i = 0; i < 100; i += 1) standIn.jobs.push(jobOf(2_000 + i, 2 * HOUR));
  for (const [counter, id] of ["3", "4"].entries()) {
    const ended = { finished_at: instantText(door.now - 2 * HOUR) };
    const usage = { ...ended, started_at: instantText(door.now - 2 * HOUR - 60_000) };
    await door.submit(
      reported(seed, log, { counter: String(counter + 1), uuid: `u${seed}`, job: { id }, usage }),
    );
  }
  await notice(matching, log);
  door.now += HOUR;
  await walked();
  await notice(matching, log);
  for (;;) if (isLastPage(await matchDue(matching, log))) break;
  const found = ofKind(await entriesOf(house.database.reader, log), "break").map(({ body }) => [
    body.code,
    body.job_id,
  ]);
  expect(found).toEqual([["missing-job", "4"]]);
});

test("the walk over a month's end finds a manual job that was made 40 days before and was never reported; others stay shallow", async () => {
  const noon = door.now;
  onTestFinished(() => {
    door.now = noon;
  });
  const matching = { ...pulling, hash: sha256, bounds: { tolerance_ms: 5_000n, grace_ms: HOUR } };
  const pages = async (at: string): Promise<number> => {
    standIn.asked = [];
    door.now = Date.parse(at);
    await walked();
    return standIn.asked.filter((path) => path.includes("/runners/")).length;
  };
  const madeSince = async () => {
    const { lookbackMs, monthLookbackMs } = pulling;
    const looking = { sql: house.database.reader, lookbackMs, monthLookbackMs };
    return (await completeness(looking, log, "2026-11-30")).made_since;
  };
  // A page of these is twelve and a half days.
  door.now = Date.parse("2026-11-30T22:00:00.000Z");
  standIn.jobs = jobsOf(1_000, 3 * HOUR).map((job) => ({ ...job, id: 10 * job.id }));
  expect(await pages("2026-11-30T22:00:00.000Z")).toBe(3);
  const created_at = instantText(door.now - 40 * DAY);
  standIn.jobs.push(jobOf(10 * (1_000 - 40 * 8) + 5, -HOUR / 2, { created_at }));
  expect(await pages("2026-11-30T23:00:00.000Z")).toBe(2);
  expect(await storedIds()).not.toContain(6_805);
  expect(await madeSince()).toBe("2026-11-30T00:00:00.000Z");

  expect(await pages("2026-12-01T01:00:00.000Z")).toBe(9);
  expect(await storedIds()).toContain(6_805);
  expect(await madeSince()).toBe("2026-09-02T00:00:00.000Z");
  expect(await pages("2026-12-01T02:00:00.000Z")).toBe(2);
  for (;;) if (isLastPage(await matchDue(matching, log))) break;
  const found = ofKind(await entriesOf(house.database.reader, log), "break");
  expect(found.map(({ body }) => body)).toContainEqual(
    expect.objectContaining({ code: "missing-report", job_id: "6805", month: "2026-11-01" }),
  );
});

test("a page of news that is not full is the last: nobody looks at the log once more to see that there is none", async () => {
  await walked();
  const page = await notice(pulling, log);
  expect(page.entries).toBeGreaterThan(0n);
  expect(isNoticed(page)).toBe(true);
  expect(isNoticed({ entries: 5_000n })).toBe(false);
});

test("a cursor that has run out begins the walk anew, and what cannot be read is no empty page", async () => {
  standIn.jobs = jobsOf(250, 60_000);
  standIn.faults = [undefined, { status: 400 }];
  const { refused } = await walked();
  expect(refused).toEqual(["400"]);
  expect(await storedIds()).toHaveLength(250);
  standIn.jobs = [jobOf(1, 0, { status: "Not a status" })];
  await house.database.writer`update pull_marks set due_at = '-infinity' where log = ${log}`;
  await pullStep(pulling);
  expect((await pullStep(pulling))?.failure).toMatchObject({ reason: "unreadable" });
});

test("a time that no job can have is as good as none, and keeps no other job of its page from being known", async () => {
  const finished_at = [
    "9999-12-31T23:59:59-23:00",
    "0000-01-01T00:00:00+23:00",
    "2026-13-01T00:00:00Z",
  ];
  standIn.jobs = [jobOf(1, 0), ...finished_at.map((at, i) => jobOf(2 + i, 0, { finished_at: at }))];
  expect((await walked()).refused).toEqual([]);
  expect(await storedIds()).toHaveLength(4);
  expect(await coverages()).toHaveLength(1);
});

test("what fails on our side is waited out, too", async () => {
  standIn.jobs = jobsOf(1, 0);
  await pullStep(pulling);
  const failing = () => Promise.reject(new Error("down"));
  const appender = { ...pulling.appender, prefix: failing };
  await expect(pullStep({ ...pulling, appender })).rejects.toThrow("down");
  expect(await pullStep(pulling)).toBeUndefined();
});

test("a next page that is elsewhere is not asked for: the token would go there", async () => {
  standIn.jobs = [jobOf(1, 0)];
  standIn.headers = { link: '<http://127.0.0.1:1/api/v4/runners/700/jobs?x>; rel="next"' };
  await pullStep(pulling);
  const failed = (await pullStep(pulling))?.failure;
  expect(failed).toBeInstanceOf(GitLabError);
  expect(failed?.reason).toBe("redirect");
  expect(`${failed?.message} ${failed?.stack}`).not.toContain(standIn.token);
});

test("two processes walk as one: no page is read twice while both go on", async () => {
  standIn.jobs = jobsOf(350, 60_000);
  await Promise.all([pullStep(pulling), pullStep(pulling)]);
  const both = async (): Promise<boolean> => {
    const steps = await Promise.all([pullStep(pulling), pullStep(pulling)]);
    return steps.some((step) => step !== undefined);
  };
  while (await both());
  expect(new Set(standIn.asked).size).toBe(standIn.asked.length);
  expect(await storedIds()).toHaveLength(350);
  expect(await coverages()).toHaveLength(1);
});

test("a step that is due at once can be claimed at once, whatever part of a millisecond it is", async () => {
  await house.database.writer`update pull_marks set due_at = '-infinity' where log = ${log}`;
  for (let i = 0; i < 50; i += 1) {
    const step = await claimPull(house.database.writer, [log], HOUR);
    if (step === undefined) throw new Error(`step ${i} is not due`);
    await movePull(house.database.writer, step, { ...step, restMs: 0 });
  }
});
