import fc from "fast-check";
import { expect, test } from "vitest";
import {
  GRACE_MS,
  match,
  type PlatformJob,
  type Reported,
  TOLERANCE_MS,
} from "../../src/core/match.ts";
import type { Card } from "../../src/core/prefix.ts";
import { epochMs, instantText } from "../../src/core/unit.ts";

/** One card holds until the noon after the job, and another one from then on. */
const CHANGED = "2026-11-21T12:00:00.000Z";
const rates = {
  card: (_: unknown, at: string) => ({ index: at < CHANGED ? 1n : 2n }) as unknown as Card,
};
const BOUNDS = { tolerance_ms: TOLERANCE_MS, grace_ms: GRACE_MS, rates };
const FINISHED = "2026-11-20T12:00:00.000Z";
const SOON = "2026-11-20T12:10:00.000Z";
const LATE = instantText(epochMs(FINISHED) + GRACE_MS);

const JOB: PlatformJob = {
  job_id: "1",
  runner_id: "700",
  tracking: "hosted",
  project_id: "50",
  namespace_id: "7",
  status: "success",
  started_at: "2026-11-20T11:48:00.000Z",
  finished_at: FINISHED,
  duration_ms: 720_000n,
};
const USAGE: Reported = {
  index: 9n,
  runner_id: "700",
  tracking: "hosted",
  project_id: "50",
  namespace_id: "7",
  duration_ms: 720_000n,
  finished_at: FINISHED,
  usage_month: "2026-11-01",
};

const without = (...names: (keyof PlatformJob)[]): PlatformJob => {
  const kept = Object.entries(JOB).filter(([name]) => !names.includes(name as keyof PlatformJob));
  return Object.fromEntries(kept) as unknown as PlatformJob;
};
const codesOf = (job: PlatformJob, usage: Partial<Reported> = {}) =>
  match(job, { usage: { ...USAGE, ...usage } }, BOUNDS, SOON).differences.map(({ code }) => code);

test("a job that both saw alike is matched, and never looked at again", () => {
  expect(match(JOB, { usage: USAGE }, BOUNDS, LATE)).toEqual({ state: "matched", differences: [] });
});

test("T15, G01, G04: what the platform counts beyond the runner's own measure is a break, with the difference", () => {
  const hour = { ...JOB, duration_ms: 3_600_000n };
  const { state, differences } = match(hour, { usage: USAGE }, BOUNDS, SOON);
  expect(state).toBe("differs");
  expect(differences).toMatchObject([{ code: "duration", difference_ms: 48n * 60_000n }]);
});

test("a report that is longer than the platform's view is a break below zero", () => {
  const { differences } = match(
    JOB,
    { usage: { ...USAGE, duration_ms: 1_000_000n } },
    BOUNDS,
    SOON,
  );
  expect(differences).toMatchObject([{ code: "duration", difference_ms: -280_000n }]);
});

test("a difference is a break from the first millisecond beyond the tolerance, either way", () => {
  fc.assert(
    fc.property(fc.bigInt(-20_000n, 20_000n), (more) => {
      const codes = codesOf({ ...JOB, duration_ms: 720_000n + more });
      expect(codes).toEqual(more > 5_000n || more < -5_000n ? ["duration"] : []);
    }),
  );
});

test("T14: a job that still runs has no duration to be held against, and is shown as running", () => {
  const running = without("finished_at");
  expect(match(running, {}, BOUNDS, LATE)).toEqual({ state: "running", differences: [] });
  expect(codesOf({ ...running, duration_ms: 1n })).toEqual([]);
});

test("T16, G02, G28: what nobody reported awaits confirmation until the grace is over, and then is a break", () => {
  expect(match(JOB, {}, BOUNDS, SOON)).toEqual({
    state: "awaiting",
    differences: [],
    dueAt: LATE,
  });
  const { state, differences, dueAt } = match(JOB, {}, BOUNDS, LATE);
  expect([state, dueAt]).toEqual(["missing", undefined]);
  expect(differences).toMatchObject([{ code: "missing-report", difference_ms: 720_000n }]);
});

test("G23: a job that was canceled while it was pending is no break, however long it waited", () => {
  const canceled = { ...without("started_at", "duration_ms"), status: "canceled" };
  expect(match(canceled, {}, BOUNDS, LATE)).toEqual({ state: "never_started", differences: [] });
});

test("a job that ended and may have run is not taken for one that never did, whatever else was not said of it", () => {
  const silent = without("started_at", "duration_ms");
  expect(match(silent, {}, BOUNDS, SOON).state).toBe("awaiting");
  for (const status of ["success", "failed", "running"]) {
    expect(match({ ...silent, status }, {}, BOUNDS, LATE).state).toBe("missing");
  }
  const measured = { ...without("started_at"), status: "canceled" };
  expect(match(measured, {}, BOUNDS, LATE).differences).toMatchObject([
    { difference_ms: 720_000n },
  ]);
  const begun = { ...without("duration_ms"), status: "canceled" };
  expect(match(begun, {}, BOUNDS, LATE).differences).toMatchObject([{ difference_ms: 720_000n }]);
  const pending = { ...without("started_at", "finished_at", "duration_ms"), status: "pending" };
  expect(match(pending, {}, BOUNDS, LATE).state).toBe("never_started");
});

test("a job that ran and that the platform has no more is missing when the grace is over", () => {
  const gone = { ...without("finished_at", "duration_ms"), status: "running", gone_at: FINISHED };
  expect(match(gone, {}, BOUNDS, SOON)).toMatchObject({ state: "awaiting", dueAt: LATE });
  const { differences, state } = match(gone, {}, BOUNDS, LATE);
  expect([state, differences]).toMatchObject(["missing", [{ code: "missing-report" }]]);
  expect(match(gone, { usage: USAGE }, BOUNDS, LATE).state).toBe("matched");
});

test("where the platform says no duration, its own times say one", () => {
  const late = { ...without("duration_ms"), started_at: "2026-11-20T02:00:00.000Z" };
  expect(match(late, { usage: USAGE }, BOUNDS, SOON).differences).toMatchObject([
    { code: "duration", difference_ms: 35_280_000n, figures: { platform: "36000000" } },
  ]);
  expect(codesOf(without("duration_ms"))).toEqual([]);
  expect(codesOf(without("duration_ms", "started_at"))).toEqual([]);
});

test("an end in another month, or under another rate card, is a break beyond the tolerance, and else none", () => {
  const ended = (seen: string, said: string) =>
    match({ ...JOB, finished_at: seen }, { usage: { ...USAGE, finished_at: said } }, BOUNDS, SOON);
  const [october, november] = ["2026-10-31T23:59:58.000Z", "2026-11-10T10:00:00.000Z"];
  expect(ended(november, october).differences).toMatchObject([
    {
      code: "duration",
      difference_ms: 0n,
      figures: { platform: `ended ${november}`, reported: `ended ${october}` },
    },
  ]);
  expect(ended("2026-11-01T00:00:03.000Z", october).state).toBe("matched");
  expect(ended("2026-11-01T00:00:03.001Z", october).state).toBe("differs");
  expect(ended(november, FINISHED).state).toBe("matched");
  expect(ended(CHANGED, FINISHED).state).toBe("differs");
});

test("hosted usage of a job that the customer's own runner ran is foreign, also beside the report of that runner", () => {
  const job = { ...JOB, runner_id: "900", tracking: "self_managed" } as const;
  const own = { ...USAGE, index: 10n, runner_id: "900", tracking: "self_managed" } as const;
  expect(match(job, { usage: own }, BOUNDS, SOON).state).toBe("matched");
  const both = match(job, { usage: own, beside: USAGE }, BOUNDS, SOON);
  expect(both).toEqual({
    state: "differs",
    differences: match(job, { usage: USAGE }, BOUNDS, SOON).differences,
  });
  expect(both.differences).toMatchObject([{ code: "foreign-runner", usage: USAGE }]);
});

test("a report that is held is not missing", () => {
  expect(match(JOB, { held: 4n }, BOUNDS, LATE)).toEqual({ state: "held", differences: [] });
});

test("another runner than the one that ran it, and another tracking, is a foreign runner", () => {
  expect(codesOf(JOB, { runner_id: "701" })).toEqual(["foreign-runner"]);
  expect(codesOf(JOB, { tracking: "self_managed" })).toEqual(["foreign-runner"]);
});

test("another namespace, or another project where the platform names no namespace, is a break", () => {
  expect(codesOf(JOB, { namespace_id: "8" })).toEqual(["other-namespace"]);
  expect(codesOf(without("namespace_id"), { namespace_id: "8" })).toEqual([]);
  expect(codesOf(without("namespace_id"), { project_id: "51" })).toEqual(["other-namespace"]);
  expect(codesOf(without("namespace_id", "project_id"), { project_id: "51" })).toEqual([]);
});

test("G29: how a job ended is not what is compared: the runner and the platform name it differently", () => {
  expect(codesOf({ ...JOB, status: "failed" })).toEqual([]);
});

test("each difference of one job is named by itself", () => {
  const job = { ...JOB, duration_ms: 1n };
  expect(codesOf(job, { runner_id: "1", namespace_id: "2" })).toEqual([
    "duration",
    "foreign-runner",
    "other-namespace",
  ]);
});
