import { expect, test } from "vitest";
import { canonical } from "../../../src/core/json.ts";
import { headerSegment } from "../../../src/core/jws.ts";
import {
  HEARTBEAT_JOBS_MAX,
  Heartbeat,
  type RunningJob,
} from "../../../src/core/quota/heartbeat.ts";
import { TYP } from "../../../src/core/report.ts";
import { kidOf, LOG, NOW, UUID } from "../history.ts";

const JOB: RunningJob = {
  elapsed_ms: "0",
  id: "9007199254740993",
  project_id: "50",
  root_namespace_id: "7",
};

function heartbeat(change: object = {}): unknown {
  return {
    issued_at: NOW,
    jobs: [JOB],
    log: LOG,
    runner: { system_id: "", uuid: UUID },
    ...change,
  };
}

const fits = (change: object): boolean => Heartbeat.safeParse(heartbeat(change)).success;

test("a heartbeat says 1 to 64 jobs, with or without their timeouts", () => {
  const jobs = (count: number) => ({ jobs: new Array(count).fill(JOB) });
  expect(fits({ jobs: [JOB, { ...JOB, timeout_ms: "3600000" }] })).toBe(true);
  expect([0, 1, HEARTBEAT_JOBS_MAX, HEARTBEAT_JOBS_MAX + 1].map((n) => fits(jobs(n)))).toEqual([
    false,
    true,
    true,
    false,
  ]);
});

test.each([
  ["a negative time", { jobs: [{ ...JOB, elapsed_ms: "-1" }] }],
  ["a time past 2^63", { jobs: [{ ...JOB, elapsed_ms: "9223372036854775808" }] }],
  ["a number", { jobs: [{ ...JOB, elapsed_ms: 1 }] }],
  ["a member more of a job", { jobs: [{ ...JOB, status: "running" }] }],
  ["a member more", { counter: "1" }],
  ["a finer instant", { issued_at: "2026-11-20T12:00:00.0000Z" }],
  ["no runner", { runner: { system_id: "", uuid: "" } }],
])("a heartbeat with %s has not the shape", (_, change) => {
  expect(fits(change)).toBe(false);
});

test("two dozen jobs of usual length fit into the 4,096 bytes of a JWS", () => {
  const job = {
    ...JOB,
    elapsed_ms: "86400000",
    project_id: "50010000",
    root_namespace_id: "1001000",
  };
  const payload = heartbeat({ jobs: new Array(24).fill({ ...job, id: "3000000228" }) });
  const header = headerSegment(kidOf(1), TYP.heartbeat).length;
  const bytes = canonical(Heartbeat.parse(payload) as never).length;
  expect(header + 1 + Math.ceil((bytes * 4) / 3) + 1 + 86).toBeLessThanOrEqual(4_096);
});
